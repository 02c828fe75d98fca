"""Hooks: functions that see gradients during a backward pass and may replace them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from plait_autograd import _autograd
from plait_autograd._autograd import Node, unhook
from plait_autograd._removable_handle import RemovableHandle

_ARRIVED, _BEFORE, _AFTER, _ACCUMULATED = 0, 2, 3, 4  # constants of the engine


def register_hook(tensor: Any, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Call ``hook(grad)`` when the tensor's gradient is complete: ``Tensor.register_hook``.

    Hooks run in the order of registration, before the gradient goes on to ``.grad``, to the result
    of `grad` and to the operator that made the tensor. A hook returns None, or a gradient of the
    same shape and dtype to use instead; it must not write to its argument. After an
    in-gradient_edge operator the hook stays with the value that the tensor had when it was
    registered.

    Args:
        tensor: a tensor that requires grad.
        hook: called with the gradient, on the thread that runs the pass.

    Raises:
        RuntimeError: the tensor does not require grad.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(2, requires_grad=True)
        >>> handle = pa.register_hook(x, lambda g: g * 3)
        >>> x.sum().backward()
        >>> x.grad.tolist()
        [3.0, 3.0]
    """
    _check(hook, "register_hook")
    if not _autograd.requires_grad(tensor):
        raise RuntimeError("register_hook: the tensor must require grad")
    return RemovableHandle(_autograd.hook_tensor(tensor, _ARRIVED, hook), unhook)


class _Accumulated:
    """A callable that calls a hook with its leaf, without keeping the leaf alive."""

    __slots__ = ("_hook", "_tensor")

    def __init__(self, tensor: Any, hook: Callable[[Any], Any]) -> None:
        self._tensor = weakref.ref(tensor)
        self._hook = hook

    def __call__(self) -> None:
        tensor = self._tensor()
        if tensor is not None:
            self._hook(tensor)


def register_post_accumulate_grad_hook(tensor: Any, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Call ``hook(tensor)`` after a pass has added to the leaf's ``.grad``.

    The hook's result is ignored. The hook is not called if no Python object refers to the tensor.

    Args:
        tensor: a leaf that requires grad.
        hook: called with the tensor.

    Raises:
        RuntimeError: the tensor is not a leaf, or does not require grad.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(2, requires_grad=True)
        >>> handle = pa.register_post_accumulate_grad_hook(x, lambda p: print(p.grad.tolist()))
        >>> (2 * x).sum().backward()
        [2.0, 2.0]
    """
    _check(hook, "register_post_accumulate_grad_hook")
    if not _autograd.requires_grad(tensor) or _autograd.grad_fn(tensor) is not None:
        raise RuntimeError(
            "register_post_accumulate_grad_hook: a leaf that requires grad is required"
        )
    adaptor = _Accumulated(tensor, hook)
    return RemovableHandle(_autograd.hook_tensor(tensor, _ACCUMULATED, adaptor), unhook)


def has_hooks(tensor: Any) -> bool:
    """Return whether a hook of `register_hook` gets the gradient of a tensor.

    Args:
        tensor: The tensor.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(2, requires_grad=True)
        >>> before = pa.has_hooks(x)
        >>> handle = x.register_hook(print)
        >>> before, pa.has_hooks(x)
        (False, True)
    """
    return _autograd.hooked(tensor)


def retains_grad(tensor: Any) -> bool:
    """Return whether ``retain_grad`` was called on a non-leaf tensor.

    Args:
        tensor: The tensor.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> y = pc.ones(1, requires_grad=True) * 2
        >>> before = pa.retains_grad(y)
        >>> y.retain_grad()
        >>> before, pa.retains_grad(y)
        (False, True)
    """
    return _autograd.retained(tensor)


def output_nr(tensor: Any) -> int:
    """Return the index of a tensor among the results of its ``grad_fn``; 0 for a leaf.

    Args:
        tensor: The tensor.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> values, _ = pc.ones(2, requires_grad=True).sort()
        >>> pa.output_nr(values)
        0
    """
    if _autograd.grad_fn(tensor) is None:
        return 0
    return _autograd.gradient_edge(tensor)[1]


def _register_prehook(self: Node, fn: Callable[..., Any]) -> RemovableHandle:
    """Call ``fn(grad_outputs)`` before the node runs.

    It gets a tuple with one gradient (or None) for each output, and returns None or such a tuple.

    Example:
        >>> import plait_core as pc
        >>> x = pc.ones(2, requires_grad=True)
        >>> y = x * 3
        >>> handle = y.grad_fn.register_prehook(lambda gs: (gs[0] * 10,))
        >>> y.sum().backward()
        >>> x.grad.tolist()
        [30.0, 30.0]
    """
    _check(fn, "register_prehook")

    def before(*gradients: Any) -> Any:
        answer = fn(gradients)
        return gradients if answer is None else _tuple(answer, len(gradients), "register_prehook")

    return RemovableHandle(_autograd.hook_node(self, _BEFORE, before), unhook)


def _register_hook(self: Node, fn: Callable[..., Any]) -> RemovableHandle:
    """Call ``fn(grad_inputs, grad_outputs)`` after the node has run.

    Both are tuples, with None for gradients that are not needed or missing. It returns None, or a
    replacement of ``grad_inputs``.

    Example:
        >>> import plait_core as pc
        >>> x = pc.ones(2, requires_grad=True)
        >>> y = x * 3
        >>> handle = y.grad_fn.register_hook(lambda gi, go: (gi[0] + go[0], *gi[1:]))
        >>> y.sum().backward()
        >>> x.grad.tolist()
        [4.0, 4.0]
    """
    _check(fn, "register_hook")
    n = len(self.next_functions)

    def after(*gradients: Any) -> Any:
        answer = fn(gradients[:n], gradients[n:])
        return gradients[:n] if answer is None else _tuple(answer, n, "register_hook")

    return RemovableHandle(_autograd.hook_node(self, _AFTER, after), unhook)


def _tuple(answer: Any, n: int, name: str) -> tuple[Any, ...]:
    result = (answer,) if _autograd.is_tensor(answer) else answer
    if not isinstance(result, (tuple, list)) or len(result) != n:
        raise RuntimeError(
            f"{name}: a hook must return None or {n} gradients; got "
            + (f"{len(result)}" if isinstance(result, (tuple, list)) else type(answer).__name__)
        )
    return tuple(result)


def _check(hook: object, name: str) -> None:
    if not callable(hook):
        raise TypeError(f"{name}: a callable is required, got {type(hook).__name__}")


Node.register_hook = _register_hook  # type: ignore[method-assign]
Node.register_prehook = _register_prehook  # type: ignore[method-assign]
