"""Methods that belong to the engine's package: hooks of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi.components import require
from plait_core._core import Tensor

__all__ = ["METHODS"]


def _of_engine(name: str) -> Callable[..., Any]:
    package = require("autograd")
    function: Callable[..., Any] | None = getattr(package, name, None)
    if function is None:
        raise NotImplementedError(f"{name}: the engine {package.__name__} has no hooks")
    return function


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Any:
    """Call ``hook(grad)`` when a backward pass has this tensor's gradient.

    The hook returns None, or the gradient to use instead. Returns a handle with ``remove()``.

    Example:
        >>> import plait_core as pc
        >>> import plait_autograd
        >>> x = pc.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 2)
        >>> x.sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """
    return _of_engine("register_hook")(self, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> Any:
    """Call ``hook(self)`` after a backward pass has added to this leaf's ``.grad``.

    Returns a handle with ``remove()``.

    Example:
        >>> import plait_core as pc
        >>> import plait_autograd
        >>> x = pc.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> x.sum().backward()
        tensor([1., 1.])
    """
    return _of_engine("register_post_accumulate_grad_hook")(self, hook)


METHODS = {
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
}
