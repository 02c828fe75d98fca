"""Views in place: a tensor takes on the shape, the strides and the history of a view of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_autograd import _autograd
from plait_autograd._modes import enable_grad


def view_in_place(tensor: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Give a tensor the layout of ``make(tensor)``, a view of it, as the method `name` does.

    It counts as a write: what has saved the tensor would read it with the new layout.

    Raises:
        RuntimeError: in grad mode, if the tensor is a leaf that requires grad or a view of one.
    """
    recorded = _autograd.requires_grad(tensor)
    leaf = recorded and _autograd.grad_fn(tensor) is None
    if _autograd.is_grad_enabled() and _autograd.is_part_of_leaf(tensor):
        raise RuntimeError(
            f"{name}: {'a leaf' if leaf else 'a view of a leaf'} that requires grad, of shape "
            f"{tuple(tensor.shape)}, would be changed in place, and its gradient would be that of "
            "another value; use the method without _ on it, or change it within no_grad()"
        )
    level = _autograd.level()
    tangent = _autograd.tangent(tensor) if level else None
    if (recorded and not leaf) or tangent is not None:
        with enable_grad():  # the history follows the layout, within no_grad too
            view = make(tensor)
    else:
        view = make(_autograd.alias(tensor))
    moved = None if tangent is None else _autograd.tangent(view)
    _autograd.become(tensor, view, recorded and not leaf)
    if tangent is not None:
        _autograd.set_tangent(tensor, moved)
