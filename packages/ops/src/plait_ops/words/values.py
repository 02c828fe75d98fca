"""Words of tensors and numbers."""

from __future__ import annotations

from typing import Any

from plait_ops.words.calling import Shape, word

__all__ = ["conjugate", "has_values", "is_number", "is_tensor", "item", "sum_to", "to_dtype"]


@word("operand -> bool")
def is_tensor(value: Any) -> bool:
    """Whether an operand is a tensor."""
    return hasattr(value, "shape")


@word("operand -> bool")
def is_number(value: Any) -> bool:
    """Whether an operand is a number."""
    return isinstance(value, (bool, int, float, complex))


@word("@operand -> held")
def conjugate(value: Any) -> Any:
    """Return the conjugate of a complex tensor or number; real ones are their own."""
    kind = str(getattr(value, "dtype", type(value).__name__))
    return value.conjugate() if kind.startswith("complex") else value


@word("tensor -> bool")
def has_values(tensor: Any) -> bool:
    """Whether there are elements to look at, as on device meta there are not."""
    return hasattr(tensor, "tobytes")


@word("@tensor -> int")
def item(tensor: Any) -> int:
    """Return the integer in a tensor of one element; an error without values (device meta)."""
    return int(tensor.reshape(()))


@word("@tensor dtype -> tensor")
def to_dtype(tensor: Any, dtype: Any) -> Any:
    """Return the tensor in `dtype`: itself if it has it already."""
    return tensor if str(tensor.dtype) == str(dtype) else tensor.astype(dtype)


@word("@tensor ints -> tensor")
def sum_to(tensor: Any, shape: Shape) -> Any:
    """Return the tensor summed over the dimensions in which `shape` was broadcast."""
    lead = tensor.ndim - len(shape)
    dims = tuple(
        i for i in range(tensor.ndim) if i < lead or (shape[i - lead] == 1 and tensor.shape[i] != 1)
    )
    return tensor.sum(dims, keepdims=True, dtype=tensor.dtype).reshape(shape) if dims else tensor
