"""Operators with indices: gathering, scattering, sorting, searching, masks."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_onnx._builder import Builder, Unsupported, Value
from plait_onnx._operators._pointwise import operand
from plait_onnx._table import lowers


def _int64(b: Builder, x: Value) -> str:
    return b.cast(x, "int64")


@lowers("index_select")
def index_select(b: Builder, self: Value, dim: int, index: Value) -> str:
    if not self.ndim:
        return b.op("Squeeze", b.op("Gather", b.unsqueeze(self, 0), _int64(b, index), axis=0))
    places = b.flat(_int64(b, index)) if not index.ndim else _int64(b, index)
    return b.op("Gather", self, places, axis=dim % self.ndim)


@lowers("gather", "take_along_dim")
def gather(b: Builder, arguments: dict[str, Any]) -> str:
    x, index, dim = arguments["self"], arguments.get("index"), arguments["dim"]
    if index is None or dim is None:
        raise Unsupported("take_along_dim without its decomposition")
    if not x.ndim or not index.ndim:
        wide = x if x.ndim else b.unsqueeze(x, 0)
        places = b.flat(_int64(b, index))
        return b.reshape(b.op("Gather", wide, places, axis=0), list(index.dims))
    return b.op("GatherElements", x, _int64(b, index), axis=dim % x.ndim)


def _least(x: Value) -> float:
    if not x.is_floating:
        raise Unsupported("extremes of integers without `include_self`")
    return float("-inf")


@lowers("scatter", "scatter.value", "scatter_add", "scatter_reduce", "scatter.combined")
def scatter(b: Builder, arguments: dict[str, Any]) -> str:
    x, dim, index = arguments["self"], arguments["dim"], arguments["index"]
    kind = arguments.get("reduce")
    if "value" in arguments:
        source: Any = b.filled(arguments["value"], b.sizes_of(index), x.dtype)
    else:
        source = arguments["src"]
        if source.shape != index.shape:  # the part of it that is read
            for axis in range(source.ndim):
                source = b.slice(source, axis, 0, b.size(index, axis))
    names = {None: "none", "sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    names |= {"add": "add", "multiply": "mul"}
    reduction = "add" if b.call == "scatter_add" else names.get(kind)
    if reduction is None:
        raise Unsupported(f"scatter_reduce with {kind!r}")
    if reduction in ("max", "min"):
        b.need(18, f"scatter_reduce with {kind!r}")
    data: Any = x
    if not x.ndim:
        data, source = b.unsqueeze(x, 0), b.flat(source)
        places = b.flat(_int64(b, index))
    else:
        places = _int64(b, index)
    axis = dim % max(x.ndim, 1)
    if not arguments.get("include_self", True):  # elements that are written to begin with nothing
        first = {"add": 0, "mul": 1, "max": _least(x), "min": -_least(x)}[reduction]
        touched = b.op(
            "ScatterElements",
            b.op("Mul", b.cast(data, "float32"), b.number(0.0, "float32")),
            places,
            b.op(
                "Add",
                b.op("Mul", b.cast(source, "float32"), b.number(0.0, "float32")),
                b.number(1.0, "float32"),
            ),
            axis=axis,
        )
        data = b.op("Where", b.cast(touched, "bool"), b.number(first, x.dtype), data)
    result = b.op("ScatterElements", data, places, source, axis=axis, reduction=reduction)
    return result if x.ndim else b.squeeze(result, 0)


# ---- several indices ---------------------------------------------------------------------------


def _joined_indices(b: Builder, given: list[tuple[int, Value]]) -> tuple[str, int]:
    """Return the indices of several dimensions, broadcast and joined in a last dimension, and how
    many dimensions they have without it.
    """
    ndim = max(index.ndim for _, index in given)
    names = [_int64(b, index) for _, index in given]
    shapes = {index.dims for _, index in given}
    if len(shapes) > 1 or None in next(iter(shapes)):
        zero = b.constant(0)
        total = names[0]
        for name in names[1:]:
            total = b.op("Add", total, name)
        nothing = b.op("Mul", total, zero)
        names = [b.op("Add", name, nothing) for name in names]
    return b.op("Concat", *(b.unsqueeze(name, -1) for name in names), axis=-1), ndim


def _orders(x: Value, dims: list[int], ndim: int) -> tuple[list[int], list[int]]:
    """Return the order of dimensions of `x` with the indexed ones first, and that of the result,
    which begins with the dimensions of the indices, as the operator has it.
    """
    rest = [dim for dim in range(x.ndim) if dim not in dims]
    first = [*dims, *rest]
    adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
    at = dims[0] if adjacent else 0
    result = [*range(ndim, ndim + at), *range(ndim), *range(ndim + at, ndim + len(rest))]
    return first, result


def _turned(b: Builder, x: Any, order: list[int]) -> Any:
    return x if order == list(range(len(order))) else b.permute(x, order)


def _inverse(order: list[int]) -> list[int]:
    return sorted(range(len(order)), key=order.__getitem__)


@lowers("index_tensors", "index")
def index_tensors(b: Builder, self: Value, indices: Any) -> str:
    given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if not given:
        return self.name
    if any(index.dtype == pc.bool for _, index in given):
        raise Unsupported("indexing with masks and other indices at once")
    if len(given) == 1:
        ((dim, index),) = given
        return b.op("Gather", self, _int64(b, index), axis=dim)
    joined, ndim = _joined_indices(b, given)
    first, order = _orders(self, [dim for dim, _ in given], ndim)
    taken = b.op("GatherND", _turned(b, self, first), joined)
    return str(_name(_turned(b, taken, order)))


def _name(x: Any) -> str:
    return x.name if isinstance(x, Value) else x


@lowers("index_put_tensors_", "index_put_", "index_put")
def index_put(b: Builder, self: Value, indices: Any, values: Any, accumulate: bool) -> str:
    given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if not given:
        return b.op("Expand", operand(b, values, self.dtype), b.op("Shape", self))
    if any(index.dtype == pc.bool for _, index in given):
        return _masked_put(b, self, given, values, accumulate)
    joined, ndim = _joined_indices(b, given)
    first, order = _orders(self, [dim for dim, _ in given], ndim)
    data = _turned(b, self, first)
    count = len(given)
    shape = b.op("Shape", joined)
    lead = b.op("Slice", shape, *map(b.constant, ([0], [-1], [0])))
    rest = b.op("Slice", b.op("Shape", data), *map(b.constant, ([count], [self.ndim], [0])))
    # the shape of `self[indices]`, to which the values broadcast
    own = b.op("Gather", b.op("Concat", lead, rest, axis=0), b.constant(order), axis=0)
    wide = b.op("Expand", operand(b, values, self.dtype), own)
    updates = _turned(b, wide, _inverse(order))
    reduction = "add" if accumulate else None
    result = b.op("ScatterND", data, joined, updates, reduction=reduction)
    return str(_name(_turned(b, result, _inverse(first))))


def _masked_put(
    b: Builder, self: Value, given: list[tuple[int, Value]], values: Any, accumulate: bool
) -> str:
    if len(given) > 1 or (isinstance(values, Value) and values.shape and values.shape != (1,)):
        raise Unsupported("writing several values by a mask")
    ((dim, mask),) = given
    wide: Any = mask
    for _ in range(dim):
        wide = b.unsqueeze(wide, 0)
    for at in range(dim + mask.ndim, self.ndim):
        wide = b.unsqueeze(wide, at)
    new = operand(b, values, self.dtype)
    return b.op("Where", wide, b.op("Add", self, new) if accumulate else new, self)


@lowers("index_add")
def index_add(b: Builder, self: Value, dim: int, index: Value, source: Value, alpha: Any) -> str:
    dim = dim % max(self.ndim, 1)
    added: Any = source
    if alpha != 1:
        added = b.op("Mul", source, b.number(alpha, self.dtype))
    if self.ndim < 2:
        data, flat = b.flat(self), b.flat(added)
        places = b.flat(_int64(b, index))
        result = b.op("ScatterElements", data, places, flat, axis=0, reduction="add")
        return result if self.ndim else b.op("Squeeze", result, b.constant([0]))
    order = [dim, *(axis for axis in range(self.ndim) if axis != dim)]
    places = b.unsqueeze(b.flat(_int64(b, index)), 1)
    data, updates = _turned(b, self, order), _turned(b, added, order)
    result = b.op("ScatterND", data, places, updates, reduction="add")
    return str(_name(_turned(b, result, _inverse(order))))


# ---- masks and positions -----------------------------------------------------------------------


@lowers("nonzero", "argwhere", "nonzero_rows")
def nonzero(b: Builder, self: Value) -> str:
    x = b.cast(self, "bool")
    if not self.ndim:
        found = b.op("NonZero", b.unsqueeze(x, 0))
        return b.op("Slice", b.permute(found, [1, 0]), *map(b.constant, ([0], [0], [1])))
    return b.permute(b.op("NonZero", x), [1, 0])


@lowers("masked_select", "masked_values")
def masked_select(b: Builder, self: Value, mask: Value) -> str:
    x: Any = self
    if self.dims != mask.dims:
        x = b.op("Expand", self, b.op("Shape", mask))
        both = b.op("Shape", x)
        return b.op("Compress", b.flat(x), b.flat(b.op("Expand", mask, both)), axis=0)
    return b.op("Compress", b.flat(x), b.flat(mask), axis=0)


@lowers("repeat_interleave.tensor")
def repeat_interleave(b: Builder, self: Value, repeats: Value, dim: int | None) -> str:
    source = b.flat(self) if dim is None else self.name
    axis = 0 if dim is None else dim % self.ndim
    times: Any = _int64(b, repeats)
    if repeats.shape in ((), (1,)):
        count = b.product(b.sizes_of(self)) if dim is None else b.size(self, axis)
        times = b.expand(b.flat(times), [count])
    ends = b.op("CumSum", times, b.constant(0))
    total = b.op("ReduceSum", times, keepdims=0)
    positions = b.op("Range", b.constant(0), total, b.constant(1))
    passed = b.op("LessOrEqual", b.unsqueeze(ends, 0), b.unsqueeze(positions, 1))
    places = b.reduce("ReduceSum", b.cast(passed, "int64"), [1], False)
    return b.op("Gather", source, places, axis=axis)


@lowers("search_sorted")
def search_sorted(b: Builder, sorted_sequence: Value, input: Value, right: bool) -> str:
    dtype = pc.result_type(pc.empty(0, dtype=sorted_sequence.dtype), pc.empty(0, dtype=input.dtype))
    row = b.cast(sorted_sequence, dtype)
    if sorted_sequence.ndim > 1:
        row = b.unsqueeze(row, -2)
    sought = b.unsqueeze(b.cast(input, dtype), -1)
    before = b.op("LessOrEqual" if right else "Less", row, sought)
    return b.reduce("ReduceSum", b.cast(before, "int64"), [-1], False)


# ---- order -------------------------------------------------------------------------------------


def _ordered(b: Builder, x: Value, dim: int, count: Any, largest: bool) -> tuple[str, str]:
    if not x.ndim:
        return x.name, b.constant(0)
    narrow = x.dtype.name not in ("float32", "float64", "int32", "int64")
    wide = ("float32" if "float" in x.dtype.name else "int32") if narrow else x.dtype.name
    source, length = b.cast(x, wide), b.sizes_tensor([count])
    values, indices = b.ops(
        "TopK", 2, source, length, axis=dim % x.ndim, largest=int(largest), sorted=1
    )
    return b.cast(values, x.dtype) if narrow else values, indices


@lowers("sort")
def sort(b: Builder, self: Value, dim: int, descending: bool) -> tuple[str, str]:
    count = b.size(self, dim) if self.ndim else 1
    return _ordered(b, self, dim, count, descending)


@lowers("topk")
def topk(b: Builder, self: Value, k: Any, dim: int, largest: bool) -> tuple[str, str]:
    return _ordered(b, self, dim, k, largest)


@lowers("argsort")
def argsort(b: Builder, self: Value, dim: int, descending: bool) -> str:
    return sort(b, self, dim, descending)[1]


@lowers("masked_write_", "masked_scatter_")
def masked_write(b: Builder, self: Value, mask: Value, source: Value) -> str:
    """Write elements of a tensor, in their order, where a mask is true."""
    wide = b.op("Expand", mask, b.op("Shape", self))
    flat = b.flat(wide)
    before = b.op("CumSum", b.cast(flat, "int64"), b.constant(0))
    place = b.op("Max", b.op("Sub", before, b.constant(1)), b.constant(0))
    taken = b.op("Gather", b.flat(b.cast(source, self.dtype)), place, axis=0)
    return b.op("Where", wide, b.op("Reshape", taken, b.op("Shape", self)), self)
