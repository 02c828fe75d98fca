"""`unique` and `unique_consecutive`, whose number of results depends on flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import OutOfRangeError, ShapeError
from plait_abi.binding import operator
from plait_core._core import Tensor, is_tensor


def _check(name: str, input: Tensor, dim: int | None) -> int | None:
    if not is_tensor(input):
        raise TypeError(f"{name}: `input` must be a Tensor, got {type(input).__name__}")
    if dim is None:
        return None
    if not -input.ndim <= dim < input.ndim:
        raise OutOfRangeError(
            f"{name}: `dim` must be in [{-input.ndim}, {input.ndim - 1}] for shape "
            f"{tuple(input.shape)}; got {dim}. Dimension out of range"
        )
    if input.shape[dim] == 0 and input.numel() == 0 and input.ndim > 1:
        rest = [size for at, size in enumerate(input.shape) if at != dim % input.ndim]
        if 0 in rest:
            raise ShapeError(
                f"{name}: `input` of shape {tuple(input.shape)} must not have further sizes of 0 "
                f"beside dimension {dim}"
            )
    return dim % input.ndim


def _starts(lines: Tensor) -> Tensor:
    """Return a bool for each line: whether it is the first, or differs from the one before."""
    n = lines.shape[0]
    first = operator("ones")([min(n, 1)], dtype="bool", device=lines.device)
    if n < 2:
        return first  # type: ignore[no-any-return]
    other: Any = lines[1:] != lines[:-1]
    if other.ndim > 1:
        other = other.flatten(1).any(1)
    return operator("cat")([first, other])  # type: ignore[no-any-return]


def _grouped(
    lines: Tensor, order: Tensor | None, return_inverse: bool, return_counts: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the first line of each group, each line's group, and the sizes of the groups.

    `order` has the index of each line before sorting.
    """
    starts = _starts(lines)
    firsts: Any = starts.nonzero().select(1, 0)
    inverse = counts = None
    if return_inverse:
        inverse = starts.cumsum(0) - 1
        if order is not None:
            inverse = operator("zeros_like")(inverse).scatter(0, order, inverse)
    if return_counts:
        end = operator("full")([1], lines.shape[0], dtype="int64", device=lines.device)
        counts = operator("diff")(firsts, append=end) if lines.shape[0] else firsts
    return lines.index_select(0, firsts), inverse, counts


def _results(values: Tensor, inverse: Tensor | None, counts: Tensor | None) -> Any:
    rest = [each for each in (inverse, counts) if each is not None]
    return (values, *rest) if rest else values


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the different elements of a tensor, ascending.

    Args:
        input: a real tensor. Every nan is an element of its own.
        sorted: whether the elements must ascend; they do in any case.
        return_inverse: also return the index in the result for each element of `input`, in its
            shape.
        return_counts: also return how often each element occurs.
        dim: compare the slices along this dimension instead of elements; None: elements.

    Raises:
        IndexError: for a `dim` out of range.
        DTypeError: for complex numbers.

    Example:
        >>> import plait_core as pc
        >>> pc.unique(pc.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    at = _check("unique", input, dim)
    if at is None:
        values, order = input.reshape(-1).sort(0, False, True)
        result, inverse, counts = _grouped(values, order, return_inverse, return_counts)
        return _results(result, None if inverse is None else inverse.reshape(input.shape), counts)
    lines = input.movedim(at, 0)
    rows = lines.reshape(lines.shape[0], lines.numel() // max(lines.shape[0], 1))
    order = operator("argsort_rows")(rows.detach())
    result, inverse, counts = _grouped(
        lines.index_select(0, order), order, return_inverse, return_counts
    )
    return _results(result.movedim(0, at), inverse, counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the elements of a tensor without those that equal the one before.

    Args:
        input: a tensor.
        return_inverse: also return the index in the result for each element of `input`, in its
            shape.
        return_counts: also return the length of each run of equal elements.
        dim: compare the slices along this dimension instead of elements; None: elements.

    Raises:
        IndexError: for a `dim` out of range.

    Example:
        >>> import plait_core as pc
        >>> pc.unique_consecutive(pc.tensor([3, 3, 1, 3]))
        tensor([3, 1, 3])
    """
    at = _check("unique_consecutive", input, dim)
    if at is None:
        result, inverse, counts = _grouped(input.reshape(-1), None, return_inverse, return_counts)
        return _results(result, None if inverse is None else inverse.reshape(input.shape), counts)
    result, inverse, counts = _grouped(input.movedim(at, 0), None, return_inverse, return_counts)
    return _results(result.movedim(0, at), inverse, counts)


METHODS: dict[str, Callable[..., Any]] = {
    "unique": unique,
    "unique_consecutive": unique_consecutive,
}
