"""`torch.distributed.algorithms._checkpoint.checkpoint_wrapper`: modules whose intermediate results
are computed again in the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

import plait
from plait.autograd.graph import save_on_cpu
from plait_torch._checkpoint import checkpoint

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_INNER = "_checkpoint_wrapped_module"
_PREFIX = _INNER + "."


class CheckpointImpl(Enum):
    """How PyTorch computes again; plait does it in one way, with the same results."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(plait.nn.Module):
    """A module around another that has the other's attributes and the names of its parameters."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = module
        self.register_state_dict_post_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Raise: a subclass says what it does."""
        raise NotImplementedError("ActivationWrapper.forward: a subclass must define it")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == _INNER:
                raise
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: Any) -> Any:
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Return the parameters with the names that they have without the wrapper."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), parameter


def _without_prefix(module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    for name in list(state):
        if name.startswith(prefix + _PREFIX):
            state[prefix + name[len(prefix + _PREFIX) :]] = state.pop(name)


def _with_prefix(module: Any, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    for name in list(state):
        if name.startswith(prefix) and not name.startswith(prefix + _PREFIX):
            state[prefix + _PREFIX + name[len(prefix) :]] = state.pop(name)


class CheckpointWrapper(ActivationWrapper):
    """A module that is called through `checkpoint`; see `checkpoint_wrapper`."""

    def __init__(
        self,
        mod: Any,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        reentrant = checkpoint_impl == CheckpointImpl.REENTRANT
        function = checkpoint_fn or partial(checkpoint, use_reentrant=reentrant)
        self.checkpoint_fn = partial(function, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module; what its derivatives need is computed again by the backward pass."""
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)


def checkpoint_wrapper(
    module: Any,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Any:
    """Return a module that keeps its inputs only, and computes again what derivatives need.

    Args:
        module: what is called.
        checkpoint_impl: has no effect.
        checkpoint_fn: a function of the module and its arguments in place of `checkpoint`.
        checkpoint_fn_kwargs: further arguments of that function.

    Example:
        >>> import plait
        >>> from plait_torch._checkpoint_wrapper import checkpoint_wrapper
        >>> layer = checkpoint_wrapper(plait.nn.Linear(2, 1))
        >>> [name for name, _ in layer.named_parameters()], layer.in_features
        (['weight', 'bias'], 2)
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


class OffloadWrapper(ActivationWrapper):
    """A module that is called within `save_on_cpu`; see `offload_wrapper`."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module; what its derivatives need is kept in the memory of the host."""
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


def offload_wrapper(module: Any) -> Any:
    """Return a module that keeps what its derivatives need in the memory of the host.

    Example:
        >>> import plait
        >>> from plait_torch._checkpoint_wrapper import offload_wrapper
        >>> layer = offload_wrapper(plait.nn.Linear(2, 1, bias=False))
        >>> layer(plait.ones(3, 2)).sum().backward()
        >>> layer.weight.grad
        tensor([[3., 3.]])
    """
    return OffloadWrapper(module)


def apply_activation_checkpointing(
    model: Any,
    checkpoint_wrapper_fn: Callable[[Any], Any] = checkpoint_wrapper,
    check_fn: Callable[[Any], bool] = lambda module: True,
    auto_wrap_policy: Any = None,
) -> None:
    """Replace the modules within a model for which ``check_fn`` is true by wrapped ones.

    Raises:
        NotImplementedError: for an `auto_wrap_policy`.

    Example:
        >>> import plait
        >>> from plait_torch._checkpoint_wrapper import apply_activation_checkpointing
        >>> model = plait.nn.Sequential(plait.nn.Linear(2, 2), plait.nn.ReLU())
        >>> apply_activation_checkpointing(
        ...     model, check_fn=lambda module: isinstance(module, plait.nn.Linear)
        ... )
        >>> [type(module).__name__ for module in model]
        ['CheckpointWrapper', 'ReLU']
    """
    if auto_wrap_policy is not None:
        raise NotImplementedError(
            "apply_activation_checkpointing: `auto_wrap_policy` is not available; use `check_fn`"
        )
    for module in list(model.modules()):
        if isinstance(module, ActivationWrapper):
            continue
        for name, child in list(module.named_children()):
            if check_fn(child) and not isinstance(child, ActivationWrapper):
                setattr(module, name, checkpoint_wrapper_fn(child))
