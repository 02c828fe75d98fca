"""`Tensor._backward_hooks`: the hooks of a tensor's gradient, which libraries look at."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import plait

__all__ = ["backward_hooks", "register_hook"]

# by the id of a tensor: the tensor, and its hooks by the numbers of their handles
_hooks: dict[int, tuple[weakref.ref[Any], OrderedDict[int, Callable[..., Any]]]] = {}
_numbers = itertools.count()
_plain = plait.Tensor.register_hook


def backward_hooks(self: Any) -> OrderedDict[int, Callable[..., Any]] | None:
    """Return the hooks that `register_hook` has added; None if there was none.

    Example:
        >>> import plait
        >>> from plait_torch._tensor_hooks import backward_hooks
        >>> backward_hooks(plait.ones(1)) is None
        True
    """
    tensor, hooks = _hooks.get(id(self), (None, None))
    return hooks if tensor is not None and tensor() is self else None


@functools.wraps(_plain)
def register_hook(self: Any, hook: Callable[[Any], Any]) -> Any:
    """Call a function with the tensor's gradient, as `plait.Tensor.register_hook` does.

    Args:
        hook: returns None, or the gradient to use instead.

    Example:
        >>> import plait
        >>> from plait_torch._tensor_hooks import backward_hooks, register_hook
        >>> x = plait.ones(1, requires_grad=True)
        >>> handle = register_hook(x, lambda gradient: gradient * 2)
        >>> len(backward_hooks(x))
        1
        >>> handle.remove()
        >>> len(backward_hooks(x))
        0
    """
    handle = _plain(self, hook)
    hooks = backward_hooks(self)
    if hooks is None:
        key, hooks = id(self), OrderedDict()
        _hooks[key] = weakref.ref(self, lambda _: _hooks.pop(key, None)), hooks
    number, remove = next(_numbers), handle._unhook

    def unhook(token: Any) -> None:
        remove(token)
        hooks.pop(number, None)

    handle._unhook = unhook
    hooks[number] = hook
    return handle
