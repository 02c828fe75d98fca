"""Attributes of a tensor in the autograd graph, and the warning for a gradient that is not kept."""

from __future__ import annotations

from typing import Any

from plait_abi import binding
from plait_abi.frames import warn
from plait_core._core import Tensor
from plait_core.engine import part


def _ask_engine(self: Tensor, name: str, otherwise: Any) -> Any:
    """Return what a function of the engine's package says of a tensor with a history."""
    if self.is_leaf:
        return otherwise
    try:
        ask = part(name)
    except NotImplementedError:  # another engine
        return otherwise
    return ask(self)


def _retains_grad(self: Tensor) -> bool:
    """Whether `retain_grad` was called on this tensor; False for leaves.

    Example:
        >>> import plait_core as pc
        >>> import plait_autograd
        >>> y = pc.ones(1, requires_grad=True) * 2
        >>> y.retain_grad()
        >>> y.retains_grad
        True
    """
    return bool(_ask_engine(self, "retains_grad", False))


def _output_nr(self: Tensor) -> int:
    """Which result of ``grad_fn`` this tensor is.

    Example:
        >>> import plait_core as pc
        >>> import plait_autograd
        >>> values, _ = pc.ones(2, requires_grad=True).sort()
        >>> values.output_nr
        0
    """
    return int(_ask_engine(self, "output_nr", 0))


def no_gradient(self: Tensor) -> None:
    """Warn that ``.grad`` of a non-leaf tensor is None, when it is read.

    There is no warning if the engine does not say whether gradients are kept.
    """
    if not _ask_engine(self, "retains_grad", True):
        warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed: this "
            f"tensor of shape {tuple(self.shape)} was made by an operator, and no backward pass "
            "sets its .grad unless retain_grad() is called on it first"
        )


def _grad_dtype(self: Tensor) -> binding.dtype:
    """The dtype of a leaf's gradient: its own, which an assignment cannot change.

    Example:
        >>> import plait_core as pc
        >>> pc.ones(1, dtype=pc.float64).grad_dtype == pc.float64
        True
    """
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self.dtype


def _set_grad_dtype(self: Tensor, dtype: binding.dtype | None) -> None:
    if not isinstance(dtype, binding.dtype) and dtype is not None:
        raise RuntimeError(f"grad_dtype must be a dtype or None, but got {type(dtype).__name__}")
    if dtype is not _grad_dtype(self):
        raise NotImplementedError(
            f"grad_dtype: the gradient of a tensor of {self.dtype.name} has its dtype, got "
            f"{dtype}; to add gradients up in another dtype, convert them in a hook of "
            "register_post_accumulate_grad_hook"
        )


PROPERTIES: dict[str, property] = {
    "grad_dtype": property(_grad_dtype, _set_grad_dtype),
    "output_nr": property(_output_nr),
    "retains_grad": property(_retains_grad),
}
