"""Python's protocols for Tensor: copying, pickling, formatting."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import plait_core._core as _core
from plait_abi import binding
from plait_core._core import Tensor, is_tensor
from plait_core._tensor._html import shows_own_text, tensor_html
from plait_core._tensor._repr import text_of
from plait_core._tensor._storages import rebuild_on, reduce_arguments
from plait_core.engine import loaded_part


def __reduce_ex__(self: Tensor, protocol: int) -> tuple[Any, ...]:  # noqa: N807
    """Pickle the storage with dtype, shape, strides and whether grad is required, not the history.

    Tensors that share a storage share it again when they were pickled together.
    """
    return rebuild_on, reduce_arguments(self), self.__dict__ or None


def rebuild(
    cls: type[Tensor], data: bytes, dtype: binding.dtype, shape: tuple[int, ...], grad: bool
) -> Tensor:
    """Make the tensor of a pickle that holds elements in C order."""
    result = _core._from_bytes(data, dtype, shape)
    if cls is not Tensor:
        return Tensor._make_subclass(cls, result, grad)
    return result.requires_grad_() if grad else result


def _copied(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if _core._samples(self) is None:
        return rebuild_on(*reduce_arguments(self, memo))
    # in vmap: the memory has the elements of no sample
    result = self.detach().clone()
    return result.requires_grad_() if self.requires_grad else result


def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:  # noqa: N807
    """Copy storage, gradient, tangent and attributes of a leaf; views share the copied storage."""
    if id(self) in memo:
        return memo[id(self)]  # type: ignore[no-any-return]
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError(
            "deepcopy: a tensor that is not a leaf does not support deepcopy; call detach() first"
        )
    result = _copied(self, memo)
    forward = loaded_part("forward_ad")
    tangent = None if forward is None else forward.unpack_dual(self).tangent
    if tangent is not None:
        result = forward.make_dual(result, copy.deepcopy(tangent, memo))
    memo[id(self)] = result
    if self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return result


def __copy__(self: Tensor) -> Tensor:  # noqa: N807
    """Return another tensor on the same elements, with the same attributes."""
    result = Tensor._make_subclass(type(self), self, self.requires_grad and self.is_leaf)
    forward = loaded_part("forward_ad")
    tangent = None if forward is None else forward.unpack_dual(self).tangent
    if tangent is not None and not self.requires_grad:
        result = forward.make_dual(result, tangent)
    result.__dict__.update(self.__dict__)
    return result


def __format__(self: Tensor, spec: str) -> str:  # noqa: N807
    """Format a 0-d tensor as its number; other tensors accept no format specification."""
    if self.ndim == 0 and self.device.type != "meta":
        return (
            format(self.item(), spec) if spec else text_of(self) if self.grad_fn else _plain(self)
        )
    if spec:
        raise TypeError(
            f"format: a 0-d tensor is required for {spec!r}, got shape {tuple(self.shape)}"
        )
    return repr(self)


def _plain(self: Tensor) -> str:
    return str(self.item())


def __repr__(self: Tensor) -> str:  # noqa: N807
    batch = _core._samples(self)
    if batch is not None:  # the tensor of one sample for all of them, inside of vmap
        return f"BatchedTensor(level={batch[1]}, value={batch[0]!r})"
    return text_of(self)


def _repr_html_(self: Tensor) -> str | None:
    """Return the tensor as HTML for a notebook; None for a subclass with a text of its own."""
    return None if shows_own_text(type(self)) else tensor_html(self)


def __round__(self: Tensor, ndigits: int | None = None) -> Tensor:  # noqa: N807
    """Round the elements to a number of decimals, halves to even, as ``round(x, 2)`` asks."""
    return self.round(decimals=ndigits or 0)


METHODS: dict[str, Callable[..., Any]] = {
    "__copy__": __copy__,
    "__deepcopy__": __deepcopy__,
    "__format__": __format__,
    "__reduce_ex__": __reduce_ex__,
    "__repr__": __repr__,
    "__round__": __round__,
    "_repr_html_": _repr_html_,
}


def mark_written(tensor: Tensor) -> None:
    """Record that the elements were written to outside of plait.

    Plait does not see writes through a NumPy view or by a DLPack consumer. After this call a
    backward pass that needs the old values is an error instead of a wrong gradient.

    Raises:
        TypeError: if `tensor` is no Tensor.

    Example:
        >>> import plait_core as pc
        >>> x = pc.zeros(2)
        >>> x.numpy()[0] = 1.0
        >>> pc.mark_written(x)
        >>> x._version
        1
    """
    if not is_tensor(tensor):
        raise TypeError(f"mark_written: `tensor` must be a Tensor, got {type(tensor).__name__}")
    tensor._bump_version()
