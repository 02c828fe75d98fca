"""Functions of any number of tensors, or whose number of results depends on a flag."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plait_abi import ArgumentError, ShapeError
from plait_abi.binding import operator
from plait_abi.frames import warn
from plait_core._core import Size, Tensor, is_tensor


def _as_list(tensors: tuple[Any, ...]) -> list[Tensor]:
    """Return the tensors of ``f(a, b)`` and of ``f([a, b])``."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return list(tensors[0])
    return list(tensors)


def _atleast(name: str, tensors: tuple[Any, ...]) -> Any:
    each = operator(name)
    if len(tensors) == 1 and not isinstance(tensors[0], (tuple, list)):
        result: Tensor = each(tensors[0])
        return result
    return tuple(each(tensor) for tensor in _as_list(tensors))


def atleast_1d(*tensors: Any) -> Any:
    """Return views of tensors, 0-d ones as vectors; a tuple for several tensors.

    Args:
        *tensors: The tensors, as arguments or in one list.

    Example:
        >>> import plait_core as pc
        >>> pc.atleast_1d(pc.tensor(5), pc.tensor([1]))
        (tensor([5]), tensor([1]))
    """
    return _atleast("atleast_1d", tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Return views of tensors with at least 2 dimensions; a vector becomes a row.

    Args:
        *tensors: The tensors, as arguments or in one list.

    Example:
        >>> import plait_core as pc
        >>> pc.atleast_2d(pc.tensor([5, 6]))
        tensor([[5, 6]])
    """
    return _atleast("atleast_2d", tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Return views of tensors with at least 3 dimensions; a matrix gets a depth of 1.

    Args:
        *tensors: The tensors, as arguments or in one list.

    Example:
        >>> import plait_core as pc
        >>> pc.atleast_3d(pc.tensor([5, 6])).shape
        plait.Size([1, 2, 1])
    """
    return _atleast("atleast_3d", tensors)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Return views of tensors in the shape to which they all broadcast.

    Args:
        *tensors: The tensors, as arguments or in one list.

    Raises:
        ShapeError: if they do not broadcast.

    Example:
        >>> import plait_core as pc
        >>> pc.broadcast_tensors(pc.tensor([1, 2]), pc.tensor([[3], [4]]))[1].tolist()
        [[3, 3], [4, 4]]
    """
    return tuple(operator("broadcast_tensors")(_as_list(tensors)))


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid, one tensor for each dimension.

    Args:
        tensors: vectors, the coordinates along each dimension.
        indexing: ``"ij"`` (the default): tensor `i` varies along dimension `i`; ``"xy"``: the first
            two dimensions are swapped.

    Raises:
        ShapeError: unless all have at most one dimension.
        ValueError: for another `indexing`.

    Example:
        >>> import plait_core as pc
        >>> x, y = pc.meshgrid(pc.tensor([1, 2]), pc.tensor([3, 4, 5]), indexing="ij")
        >>> x.tolist()
        [[1, 1, 1], [2, 2, 2]]
    """
    if indexing is None:
        warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
            'argument; without it plait takes "ij", and numpy.meshgrid "xy"'
        )
    return tuple(operator("meshgrid")(_as_list(tensors), indexing=indexing or "ij"))


def cartesian_prod(*tensors: Any) -> Tensor:
    """Return all combinations of one element of each vector, as rows.

    Args:
        *tensors: The tensors, as arguments or in one list.

    Raises:
        ShapeError: unless all are vectors.

    Example:
        >>> import plait_core as pc
        >>> pc.cartesian_prod(pc.tensor([1, 2]), pc.tensor([3, 4])).tolist()
        [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    return operator("cartesian_prod")(_as_list(tensors))  # type: ignore[no-any-return]


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """Return the shape to which tensors of the given shapes broadcast.

    Args:
        *shapes: The shapes.

    Raises:
        ShapeError: if they do not broadcast.

    Example:
        >>> import plait_core as pc
        >>> pc.broadcast_shapes((2, 1), (3,))
        plait.Size([2, 3])
    """
    listed = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    result: list[int] = [1] * max((len(shape) for shape in listed), default=0)
    for shape in listed:
        lead = len(result) - len(shape)
        for at, size in enumerate(shape, lead):
            if size < 0:
                raise ShapeError(f"broadcast_shapes: sizes must not be negative; got {shape}")
            if size == 1 or size == result[at]:
                continue
            if result[at] != 1:
                raise ShapeError(
                    f"broadcast_shapes: shapes must broadcast; got {', '.join(map(str, listed))}"
                )
            result[at] = size
    return Size(result)


def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """Return the indices of the elements that are not 0, in order.

    Args:
        input: a tensor.
        as_tuple: False: one int64 tensor of shape (count, ndim); True: one vector for each
            dimension, which index `input`; a 0-d tensor counts as a vector.
        out: the tensor that gets the indices (without `as_tuple`).

    Example:
        >>> import plait_core as pc
        >>> pc.nonzero(pc.tensor([0, 5, 7]), as_tuple=True)
        (tensor([1, 2]),)
    """
    if as_tuple:
        return tuple(operator("nonzero_list")(input))
    result: Tensor = operator("nonzero")(input)
    if out is None:
        return result
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


def histogram(
    input: Tensor,
    bins: int | Sequence[float] | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Return how many elements fall into each bin, and the edges of the bins.

    Args:
        input: a tensor of float32 or float64.
        bins: the number of equal bins, or their ascending edges; the last edge belongs to the last
            bin.
        range: the first and the last edge for equal bins; None: the smallest and the largest
            element.
        weight: the weight of each element, in the shape of `input`.
        density: divide by the total and by the widths, so that the integral is 1.

    Raises:
        ValueError: for less than one bin, or a `range` that is not ascending and finite.
        ShapeError: if `weight` has another shape.

    Example:
        >>> import plait_core as pc
        >>> pc.histogram(pc.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0))[0].tolist()
        [0.0, 2.0, 1.0, 0.0]
    """
    if is_tensor(bins):
        edges = bins
    elif isinstance(bins, int):
        edges = _edges(input, bins, range)
    else:
        edges = operator("stack")(
            [
                operator("full")([], float(edge), dtype=input.dtype, device=input.device)
                for edge in bins
            ]
        )
    return operator("histogram")(input, edges, weight=weight, density=density)


def _edges(input: Tensor, bins: int, bounds: Sequence[float] | None) -> Tensor:
    if bins < 1:
        raise ArgumentError(f"histogram: `bins` must be at least 1; got {bins}")
    if bounds is not None:
        low, high = (float(bound) for bound in bounds)
    elif input.numel():
        low, high = float(input.detach().amin()), float(input.detach().amax())
    else:
        low, high = 0.0, 1.0
    if not -float("inf") < low <= high < float("inf"):
        raise ArgumentError(
            f"histogram: `range` must be ascending and finite; got {low} and {high}"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    result: Tensor = operator("linspace")(
        low, high, bins + 1, dtype=input.dtype, device=input.device
    )
    return result


def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Return the memory of a tensor seen with the given sizes and strides.

    Args:
        input: a tensor.
        size, stride: of the result, in elements; strides may be negative.
        storage_offset: offset of the result in elements, from the beginning of the storage; None:
            the offset of `input`.

    Raises:
        ShapeError: if `size` and `stride` differ in length or lead outside the storage.

    Example:
        >>> import plait_core as pc
        >>> pc.as_strided(pc.arange(4), (3, 2), (1, 1)).tolist()
        [[0, 1], [1, 2], [2, 3]]
        >>> pc.arange(4)[2:].as_strided((2,), (1,), 0)
        tensor([0, 1])
    """
    offset = 0 if storage_offset is None else storage_offset - input.storage_offset()
    return operator("as_strided")(input, size, stride, offset)  # type: ignore[no-any-return]


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Return the elements of the tensor where `condition` is True, those of `other` elsewhere.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([1, 2]).where(pc.tensor([True, False]), 0)
        tensor([1, 0])
    """
    return operator("where")(condition, self, other)  # type: ignore[no-any-return]


METHODS: dict[str, Callable[..., Any]] = {
    "as_strided": as_strided,
    "histogram": histogram,
    "nonzero": nonzero,
    "where": where,
}
