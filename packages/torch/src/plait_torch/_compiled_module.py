"""What `torch.compile` makes of a module: a wrapper, which calls the module."""

from __future__ import annotations

from typing import Any

import plait

# its own attributes; all others are those of the module
_OWN = frozenset({"_orig_mod", "forward", "dynamo_ctx", "_call"})


class OptimizedModule(plait.nn.Module):
    """A module that stands for a compiled one. It calls that one with its hooks, and shares its
    attributes; the names of its parameters begin with ``_orig_mod.``.

    Args:
        mod: the module.
        dynamo_ctx: a function that gives the compiled calls of a module; None: it is called as it
            is.

    Example:
        >>> import plait
        >>> from plait_torch._compiled_module import OptimizedModule
        >>> made = OptimizedModule(plait.nn.Linear(2, 1))
        >>> list(made.state_dict()), made.in_features, made(plait.ones(3, 2)).shape
        (['_orig_mod.weight', '_orig_mod.bias'], 2, plait.Size([3, 1]))
    """

    _orig_mod: plait.nn.Module

    def __init__(self, mod: plait.nn.Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        plait.nn.Module.__setattr__(self, "_orig_mod", mod)
        self.dynamo_ctx = dynamo_ctx
        self._call: tuple[plait.nn.Module, Any] | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        mod = self._orig_mod
        if self.dynamo_ctx is None:
            return mod(*args, **kwargs)
        call = self._call
        if call is None or call[0] is not mod:
            self._call = call = mod, self.dynamo_ctx(mod)
        return call[1](*args, **kwargs)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return bool(self._orig_mod.training)

    @training.setter
    def training(self, value: bool) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", {}):
            self._orig_mod.training = value

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if "_orig_mod" not in modules:  # while it is made or copied
            raise AttributeError(name)
        return modules["_orig_mod"] if name == "_orig_mod" else getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        whole = "_orig_mod" in self.__dict__.get("_modules", {})
        if name in _OWN or not whole or isinstance(getattr(type(self), name, None), property):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in _OWN:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __reduce__(self) -> tuple[Any, ...]:
        return OptimizedModule, (self._orig_mod, self.dynamo_ctx)
