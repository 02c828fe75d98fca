"""Reductions of groups of elements: `segment_reduce` and `histogramdd`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from plait_abi import ArgumentError, DTypeError, ShapeError
from plait_abi.binding import operator
from plait_core._core import Tensor, is_tensor
from plait_core._functions._lists import histogram

REDUCTIONS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -math.inf),
    "amax": ("amax", -math.inf),
    "min": ("amin", math.inf),
    "amin": ("amin", math.inf),
}
"""For each reduction: its name in `scatter_reduce`, and the result of no elements."""


class Histogram(NamedTuple):
    """The result of `histogramdd`: the counts, and the edges along each dimension."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Reduce consecutive runs along a dimension: the first ``lengths[0]`` elements, and so on.

    Args:
        data: a floating-point tensor.
        reduce: "sum", "mean", "max", "min" or "prod".
        lengths: of the runs, along the last dimension; the dimensions before it are those of `data`
            before `axis`.
        indices: not supported, as in PyTorch.
        offsets: instead of `lengths`: the beginnings of the runs, and the end of the last one.
        axis: the dimension.
        unsafe: don't check that the lengths add up.
        initial: the initial value of every run. None: a run without elements gives 0 ("sum"), 1
            ("prod"), -inf ("max"), inf ("min") or nan ("mean").

    Returns:
        A tensor of the shape of `data`, but as many along `axis` as there are runs.

    Raises:
        ValueError: for another `reduce`, neither or both of `lengths` and `offsets`, negative
            lengths, or lengths that don't add up.
        DTypeError: if `data` is not floating-point, or the lengths are not integers.
        ShapeError: if the dimensions of the lengths are not those of `data` before `axis`.

    Example:
        >>> import plait_core as pc
        >>> pc.segment_reduce(pc.tensor([1.0, 2.0, 3.0]), "sum", lengths=pc.tensor([2, 1]))
        tensor([3., 3.])
    """
    if not is_tensor(data):
        raise TypeError(f"segment_reduce: `data` must be a Tensor, got {type(data).__name__}")
    if reduce not in REDUCTIONS:
        raise ArgumentError(
            'segment_reduce: `reduce` must be "sum", "mean", "max", "min" or "prod", got '
            f"{reduce!r}"
        )
    if indices is not None:
        raise NotImplementedError("segment_reduce: `indices` is not supported; give `lengths`")
    if not data.dtype.is_floating_point:
        raise DTypeError(f"segment_reduce: `data` must be floating-point, got {data.dtype.name}")
    axis = axis + data.ndim if axis < 0 else axis
    ends = _ends(data, axis, lengths, offsets, unsafe)
    positions = operator("arange")(data.shape[axis], device=data.device)
    positions = positions.expand((*data.shape[:axis], data.shape[axis])).contiguous()
    runs = operator("searchsorted")(ends, positions, right=True)
    return _reduced(data, reduce, axis, ends, runs, initial)


def _ends(data: Tensor, axis: int, lengths: Any, offsets: Any, unsafe: bool) -> Tensor:
    """Return the end of each run, after a check."""
    sizes = lengths if lengths is not None else offsets
    name = "lengths" if lengths is not None else "offsets"
    if (lengths is None) == (offsets is None) or not is_tensor(sizes):
        raise ArgumentError("segment_reduce: one of `lengths` and `offsets` must be a tensor")
    if sizes.dtype.name not in ("int32", "int64"):
        raise DTypeError(f"segment_reduce: `{name}` must hold integers, got {sizes.dtype.name}")
    if not 0 <= axis < data.ndim or tuple(sizes.shape[:-1]) != tuple(data.shape[:axis]):
        raise ShapeError(
            f"segment_reduce: `{name}` must have the shape {(*data.shape[:axis], 'n')} for `data` "
            f"of shape {tuple(data.shape)} and axis {axis}, got {tuple(sizes.shape)}"
        )
    sizes = sizes.long()
    if name == "offsets":
        return sizes.narrow(-1, 1, sizes.shape[-1] - 1).contiguous()  # type: ignore[no-any-return]
    if not unsafe and sizes.numel() and sizes.min().item() < 0:
        raise ArgumentError("segment_reduce: `lengths` must not be negative")
    if not unsafe and (sizes.sum(-1) != data.shape[axis]).any():
        raise ArgumentError(
            f"segment_reduce: `lengths` must add up to {data.shape[axis]}, the size of `data` of "
            f"shape {tuple(data.shape)} along {axis}"
        )
    return sizes.cumsum(-1)  # type: ignore[no-any-return]


def _reduced(
    data: Tensor, reduce: str, axis: int, ends: Tensor, runs: Tensor, initial: float | None
) -> Tensor:
    """Reduce each run; elements after the last run form one more run, which is dropped."""
    word, nothing = REDUCTIONS[reduce]
    count, rest = ends.shape[-1], data.ndim - axis - 1
    shape = (*data.shape[:axis], count + 1, *data.shape[axis + 1 :])
    wide = runs.reshape((*runs.shape, *[1] * rest)).expand(data.shape)
    extreme = reduce in ("max", "min")
    start = operator("full")(
        shape, nothing if initial is None or extreme else initial, dtype=data.dtype,
        device=data.device,
    )  # fmt: skip
    result = operator("scatter_reduce")(start, axis, wide, data, word).narrow(axis, 0, count)
    if extreme and initial is not None:  # elements that equal it share the gradient without it
        result = result.clamp(min=initial) if reduce == "max" else result.clamp(max=initial)
    if reduce != "mean":
        return result  # type: ignore[no-any-return]
    first = operator("zeros")((*ends.shape[:-1], 1), dtype=ends.dtype, device=ends.device)
    sizes = operator("diff")(operator("cat")([first, ends], -1))
    if initial is not None:
        sizes = sizes.clamp(min=1)
    return result / sizes.reshape((*sizes.shape, *[1] * rest))  # type: ignore[no-any-return]


def histogramdd(
    input: Tensor,
    bins: int | Sequence[Any],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Return the number of points in each box of a grid, and the edges of the boxes.

    Args:
        input: points, a floating-point tensor of shape (..., d).
        bins: the number of equal bins in every dimension, one number for each, or a sequence of d
            ascending vectors of edges; the last edge belongs to the last bin.
        range: 2 * d numbers, the first and the last edge of each dimension; None: the smallest and
            the largest coordinate.
        weight: the weight of each point, of shape (...).
        density: divide by the total and by the volumes, so that the integral is 1.

    Returns:
        A named tuple: `hist`, the counts, with d dimensions, and `bin_edges`, d vectors of edges.

    Raises:
        ShapeError: if `input` has no dimension, or `weight` another shape.
        ValueError: if `bins` or `range` do not hold one entry (two of `range`) for a dimension.

    Example:
        >>> import plait_core as pc
        >>> points = pc.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [2.0, 2.0]])
        >>> pc.histogramdd(points, 2)[0].tolist()
        [[0.0, 1.0], [1.0, 2.0]]
    """
    if not is_tensor(input) or not input.ndim:
        raise ShapeError("histogramdd: `input` must be a tensor of points, of shape (..., d)")
    dims = input.shape[-1]
    points = input.reshape(-1, dims)
    kinds = [bins] * dims if isinstance(bins, int) else list(bins)
    if len(kinds) != dims or (range is not None and len(range) != 2 * dims):
        raise ArgumentError(
            f"histogramdd: `bins` must hold {dims} entries and `range` {2 * dims} for points of "
            f"{dims} coordinates, got {len(kinds)} and {None if range is None else len(range)}"
        )
    if weight is not None and tuple(weight.shape) != tuple(input.shape[:-1]):
        raise ShapeError(
            f"histogramdd: `weight` must have shape {tuple(input.shape[:-1])}, got "
            f"{tuple(weight.shape)}"
        )
    edges = tuple(
        _edges_of(points.select(1, d), kind, None if range is None else range[2 * d : 2 * d + 2])
        for d, kind in enumerate(kinds)
    )
    return Histogram(_counted(points, edges, weight, density), edges)


def _edges_of(values: Tensor, bins: Any, bounds: Sequence[float] | None) -> Tensor:
    return histogram(values, bins, range=None if is_tensor(bins) else bounds)[1]  # type: ignore[no-any-return]


def _counted(
    points: Tensor, edges: tuple[Tensor, ...], weight: Tensor | None, density: bool
) -> Tensor:
    shape = [len(each) - 1 for each in edges]
    at = points.new_zeros(points.shape[0], dtype="int64")
    mass = points.new_ones(points.shape[0]) if weight is None else weight.reshape(-1)
    for d, edge in enumerate(edges):
        values = points.select(1, d).contiguous()
        bin_index = operator("searchsorted")(edge, values, right=True) - 1
        bin_index = bin_index - (values == edge[-1])
        mass = mass * ((values >= edge[0]) & (values <= edge[-1]))
        at = at * shape[d] + bin_index.clamp(0, shape[d] - 1)
    result = points.new_zeros(math.prod(shape)).scatter_add(0, at, mass.to(points.dtype))
    result = result.reshape(shape)
    if density:
        result = result / result.sum()
        for d, edge in enumerate(edges):
            widths = operator("diff")(edge)
            result = result / widths.reshape([-1] + [1] * (len(shape) - 1 - d))
    return result
