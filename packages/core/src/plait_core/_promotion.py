"""Type promotion: the dtype of a result, and allowed casts."""

from __future__ import annotations

from typing import Any

from plait_abi import binding
from plait_core._core import Tensor, is_tensor


def _tensor(name: str, value: Any) -> Tensor:
    if not is_tensor(value):
        raise TypeError(f"{name}: `input` must be a Tensor, got {type(value).__name__}")
    result: Tensor = value
    return result


def _dtype(name: str, argument: str, value: Any) -> binding.dtype:
    try:
        return binding.dtype(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: `{argument}` must be a dtype, got {value!r}") from None


def _sum(first: Any, second: Any) -> binding.dtype:
    """Return the dtype of a sum, by calling the operator, so that there is no second table."""
    result: binding.dtype = binding.operator("add")(first, second).dtype
    return result


def _empty(shape: tuple[int, ...], dtype: binding.dtype) -> Tensor:
    return binding.operator("empty")(shape, dtype=dtype, device="meta")  # type: ignore[no-any-return]


def promote_types(type1: Any, type2: Any) -> binding.dtype:
    """Return the dtype of a sum of two tensors, the smallest one that holds the values of both.

    Args:
        type1: The first dtype.
        type2: The second dtype.

    Raises:
        TypeError: if one of them is no dtype.
        DTypeError: for uint64 with a signed integer, for which there is no such dtype.

    Example:
        >>> import plait_core as pc
        >>> pc.promote_types(pc.int32, pc.float16), pc.promote_types(pc.uint8, pc.int8)
        (plait.float16, plait.int16)
    """
    one = _dtype("promote_types", "type1", type1)
    other = _dtype("promote_types", "type2", type2)
    return one if one is other else _sum(_empty((1,), one), _empty((1,), other))


def result_type(tensor1: Any, tensor2: Any) -> binding.dtype:
    """Return the dtype of an operator on two tensors or numbers.

    A number, or a tensor without dimensions, does not widen within a category: float32 with a
    0-d float64 is float32.

    Args:
        tensor1: A tensor or number.
        tensor2: A tensor or number.

    Raises:
        TypeError: if one of them is neither.

    Example:
        >>> import plait_core as pc
        >>> pc.result_type(pc.tensor([1, 2]), 1.0), pc.result_type(1, True)
        (plait.float32, plait.int64)
    """
    parts: list[Any] = []
    for argument, value in (("tensor1", tensor1), ("tensor2", tensor2)):
        if is_tensor(value):
            parts.append(_empty((1,) * min(value.ndim, 1), value.dtype))
        elif isinstance(value, (bool, int, float, complex)):
            parts.append(value)
        else:
            raise TypeError(
                f"result_type: `{argument}` must be a Tensor or a number, "
                f"got {type(value).__name__}"
            )
    first, second = parts
    if not is_tensor(first) and not is_tensor(second):
        first = binding.operator("scalar_tensor")(first, dtype=_of_number(first), device="meta")
    if not is_tensor(first):
        first, second = second, first
    return _sum(first, second)


def _of_number(value: Any) -> Any:
    """Return the dtype of a number; None: the default dtype."""
    for kind, name in ((bool, "bool"), (int, "int64"), (float, None)):
        if isinstance(value, kind):
            return name
    return "complex64"


def can_cast(from_: Any, to: Any) -> bool:
    """Return whether a dtype may be cast to another one in the same or a higher category.

    Categories are bool, integers, floating point and complex, in that order; casts to a lower
    category are not allowed.

    Args:
        from_: The dtype to convert from.
        to: The dtype to convert to.

    Raises:
        TypeError: if one of them is no dtype.

    Example:
        >>> import plait_core as pc
        >>> pc.can_cast(pc.float64, pc.float32), pc.can_cast(pc.float32, pc.int64)
        (True, False)
    """
    source, target = _dtype("can_cast", "from_", from_), _dtype("can_cast", "to", to)
    return _category(source) <= _category(target)


def _category(dtype: binding.dtype) -> int:
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else int(dtype.name != "bool")


def is_floating_point(input: Tensor) -> bool:
    """Return whether the elements are floating-point numbers; complex ones are not.

    Args:
        input: The tensor.

    Example:
        >>> import plait_core as pc
        >>> pc.is_floating_point(pc.zeros(2)), pc.is_floating_point(pc.arange(2))
        (True, False)
    """
    return _tensor("is_floating_point", input).is_floating_point()


def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element is not zero.

    Args:
        input: The tensor.

    Raises:
        RuntimeError: if there is another number of elements.

    Example:
        >>> import plait_core as pc
        >>> pc.is_nonzero(pc.tensor([2.0]))
        True
    """
    return bool(_tensor("is_nonzero", input))
