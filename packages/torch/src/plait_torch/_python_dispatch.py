"""`torch.utils._python_dispatch`: modes and wrapper subclasses, for libraries that define them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import plait
from plait_torch import _torch_dispatch
from plait_torch._torch_dispatch import TorchDispatchMode

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]

_get_current_dispatch_mode_stack = _torch_dispatch.modes
_push_mode = _torch_dispatch.push


def _pop_mode(k: Any = None) -> Any:
    """Remove the innermost mode of this thread, and return it."""
    return _torch_dispatch.pop()


def _get_current_dispatch_mode() -> Any:
    """Return the innermost mode of this thread, or None."""
    modes = _torch_dispatch.modes()
    return modes[-1] if modes else None


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Return whether this thread has a mode."""
    return bool(_torch_dispatch.modes())


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """A context without the modes of this thread."""
    stack = _torch_dispatch.modes()
    before = list(stack)
    for _ in before:
        _torch_dispatch.pop()
    try:
        yield before
    finally:
        for mode in before:
            _torch_dispatch.push(mode)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that calls every operator as it is."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Return whether an object is a tensor whose class says of which tensors it is made.

    Example:
        >>> import plait
        >>> from plait_torch._python_dispatch import is_traceable_wrapper_subclass
        >>> is_traceable_wrapper_subclass(plait.ones(2))
        False
    """
    return isinstance(t, plait.Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Return whether a class derived from Tensor has ``__tensor_flatten__`` and
    ``__tensor_unflatten__``.
    """
    both = ("__tensor_flatten__", "__tensor_unflatten__")
    return t is not plait.Tensor and issubclass(t, plait.Tensor) and all(
        hasattr(t, each) for each in both
    )  # fmt: skip


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """Return an instance of the same class, of tensors that a function makes of the inner ones.

    Args:
        t: the tensor.
        callback: a function of the name of an inner tensor and that tensor.
        outer_size, outer_stride: those of the result; the same as before if None.
    """
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return the result of an operator as PyTorch's callers expect it: of one that writes to an
    argument, that argument.
    """
    written = [
        (i, each.name) for i, each in enumerate(func._schema.arguments) if each.is_write
    ]  # fmt: skip
    if "out" in (kwargs or {}):
        return kwargs["out"]
    if not written:
        return out
    results = [
        kwargs[name] if name in (kwargs or {}) else args[i] for i, name in written
        if name in (kwargs or {}) or i < len(args)
    ]  # fmt: skip
    return results[0] if len(results) == 1 and not isinstance(out, (tuple, list)) else out


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """A context without the innermost mode of this thread."""
    mode = _torch_dispatch.pop()
    try:
        yield mode
    finally:
        _torch_dispatch.push(mode)
