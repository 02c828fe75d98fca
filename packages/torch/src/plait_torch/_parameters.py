"""`torch.nn.Parameter` of tensors of a program's own class: it stays an instance of that class."""

from __future__ import annotations

import sys
from typing import Any

import plait
from plait_abi.origins import module_of

_own: dict[str, Any] = {}  # what the class Parameter had before


def _parameter() -> Any:
    """Return the class, or None if it is not imported."""
    module = sys.modules.get("plait_nn._parameter")
    return getattr(module, "Parameter", None)


def _instancecheck(cls: Any, instance: Any) -> bool:
    """Return whether an object is an instance, or a marked parameter of another class."""
    if type.__instancecheck__(cls, instance):
        return True
    marked = cls is _parameter() and isinstance(instance, plait.Tensor)
    return bool(marked and instance.__dict__.get("_is_param", False))


def _new(cls: Any, data: Any = None, requires_grad: bool = True, *more: Any, **others: Any) -> Any:
    parameter, tensor = _parameter(), plait.Tensor
    kind = type(data)
    plain = cls is not parameter or kind is tensor or kind is parameter
    if plain or not isinstance(data, tensor) or module_of(kind).startswith("plait_nn."):
        return _own["__new__"](cls, data, requires_grad, *more, **others)
    result = data.detach().requires_grad_(requires_grad)
    if type(result) is not kind:
        raise RuntimeError(
            f"Parameter: detach() of {kind.__name__} gave {type(result).__name__}; it must give "
            "an instance of the same class"
        )
    setattr(type(parameter), "__instancecheck__", _instancecheck)  # noqa: B010, for type checkers
    tensor.__setattr__(result, "_is_param", True)
    return result


def change(cls: Any) -> None:
    """Let the class Parameter keep the classes of tensors."""
    if not _own:
        _own["__new__"] = cls.__dict__["__new__"].__func__
        cls.__new__ = staticmethod(_new)


def bind() -> None:
    """Do so now, or as soon as the class is there."""
    if _parameter() is not None:
        change(_parameter())


def unbind() -> None:
    """Restore what was before `bind`."""
    if _own:
        _parameter().__new__ = staticmethod(_own.pop("__new__"))
        if "__instancecheck__" in type(_parameter()).__dict__:
            del type(_parameter()).__instancecheck__
