"""Words of tensors and numbers."""

from __future__ import annotations

from plait_ops.value_types import AnyDType, HeldOperand, Operand, Shape, Tensor
from plait_ops.words.declaring import word

__all__ = [
    "conjugate",
    "has_values",
    "is_number",
    "is_recorded",
    "is_tensor",
    "is_unused",
    "item",
    "sum_to",
    "to_dtype",
]


@word(reads_values=False)
def is_tensor(value: Operand) -> bool:
    """Whether an operand is a tensor."""
    return hasattr(value, "shape")


@word(reads_values=False)
def is_number(value: Operand) -> bool:
    """Whether an operand is a number."""
    return isinstance(value, (bool, int, float, complex))


@word(on_call=True)
def conjugate(value: Operand) -> HeldOperand:
    """Return the conjugate of a complex tensor or number; real ones are returned as they are."""
    kind = str(getattr(value, "dtype", type(value).__name__))
    return value.conjugate() if kind.startswith("complex") else value


@word()
def has_values(tensor: Tensor) -> bool:
    """Return whether the tensor has elements, which it does not on the device meta."""
    return hasattr(tensor, "tobytes")


@word(on_call=True)
def is_recorded(tensor: Tensor) -> bool:
    """Return whether an engine records calls on the tensor, or forward mode runs: derivatives may
    follow."""
    return False


@word(on_call=True, reads_values=False)
def is_unused(gradient: Tensor) -> bool:
    """Return whether a derivative's gradient of a result is 0 because nothing used that result:
    what is multiplied by it need not be computed. It may be False, too, where the gradient is 0.
    """
    return False


@word(on_call=True)
def item(tensor: Tensor) -> int:
    """Return the integer in a tensor of one element; an error without values (device meta)."""
    return int(tensor.reshape(()))


@word(on_call=True)
def to_dtype(tensor: Tensor, dtype: AnyDType) -> Tensor:
    """Return the tensor in `dtype`; the tensor itself if it has that dtype."""
    return tensor if str(tensor.dtype) == str(dtype) else tensor.astype(dtype)


@word(on_call=True)
def sum_to(tensor: Tensor, shape: Shape) -> Tensor:
    """Return a floating-point or complex tensor summed over the dimensions in which `shape` was
    broadcast.
    """
    lead = tensor.ndim - len(shape)
    dims = tuple(
        i for i in range(tensor.ndim) if i < lead or (shape[i - lead] == 1 and tensor.shape[i] != 1)
    )
    return tensor.sum(dims, keepdims=True, dtype=tensor.dtype).reshape(shape) if dims else tensor
