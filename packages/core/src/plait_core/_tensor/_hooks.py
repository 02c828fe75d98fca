"""Methods that the engine's package implements: hooks of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_core._core import Tensor
from plait_core.engine import part


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Any:
    """Call ``hook(grad)`` when a backward pass has this tensor's gradient.

    The hook returns None, or the gradient to use instead. Returns a handle with ``remove()``.

    Example:
        >>> import plait_core as pc
        >>> import plait_autograd  # the engine
        >>> x = pc.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> x.sum().backward()
        >>> x.grad
        tensor([10., 10.])
    """
    return part("register_hook")(self, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> Any:
    """Call ``hook(self)`` after a backward pass has added to this leaf's ``.grad``.

    Returns a handle with ``remove()``.

    Example:
        >>> import plait_core as pc
        >>> import plait_autograd  # the engine
        >>> x = pc.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))
        >>> x.sum().backward()
        tensor([1., 1.])
    """
    return part("register_post_accumulate_grad_hook")(self, hook)


METHODS = {
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
}
