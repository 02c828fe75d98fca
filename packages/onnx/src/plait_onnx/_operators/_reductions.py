"""Operators that reduce dimensions, and running sums."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_onnx._builder import Builder, Unsupported, Value
from plait_onnx._table import lowers


def axes_of(x: Value, dim: Any) -> list[int]:
    """Return the dimensions that a reduction names: all, if it names none."""
    if dim is None or dim == ():
        return list(range(x.ndim))
    dims = (dim,) if isinstance(dim, int) else dim
    return sorted({each % max(x.ndim, 1) for each in dims}) if x.ndim else []


def _reduced(b: Builder, kind: str, self: Value, dim: Any, keepdim: bool, dtype: Any) -> str:
    axes = axes_of(self, dim)
    narrow = dtype.name not in ("float32", "float64", "int32", "int64")
    wide = ("float32" if "float" in dtype.name else "int32") if narrow else dtype.name
    x = b.cast(self, wide)
    result = b.reduce(kind, x, axes, keepdim) if axes else x
    return b.cast(result, dtype) if narrow else result


@lowers("sum")
def sum_(b: Builder, self: Value, dim: Any, keepdim: bool) -> str:
    return _reduced(b, "ReduceSum", self, dim, keepdim, b.results[0].dtype)


@lowers("mean")
def mean(b: Builder, self: Value, dim: Any, keepdim: bool) -> str:
    return _reduced(b, "ReduceMean", self, dim, keepdim, b.results[0].dtype)


@lowers("amax", "max")
def amax(b: Builder, self: Value, arguments: dict[str, Any]) -> str:
    keepdim = arguments.get("keepdim", False)
    return _reduced(b, "ReduceMax", self, arguments.get("dim"), keepdim, self.dtype)


@lowers("amin", "min")
def amin(b: Builder, self: Value, arguments: dict[str, Any]) -> str:
    keepdim = arguments.get("keepdim", False)
    return _reduced(b, "ReduceMin", self, arguments.get("dim"), keepdim, self.dtype)


@lowers("prod", "prod.dim")
def prod(b: Builder, self: Value, arguments: dict[str, Any]) -> str:
    keepdim = arguments.get("keepdim", False)
    dtype = b.results[0].dtype
    return _reduced(b, "ReduceProd", self, arguments.get("dim"), keepdim, dtype)


def _quantified(b: Builder, kind: str, self: Value, arguments: dict[str, Any]) -> str:
    truths = b.cast(b.cast(self, "bool"), "int32") if self.dtype != pc.bool else None
    axes = axes_of(self, arguments.get("dim"))
    numbers = truths or b.cast(self, "int32")
    if axes:
        numbers = b.reduce(kind, numbers, axes, arguments.get("keepdim", False))
    return b.cast(numbers, b.results[0].dtype)


@lowers("any", "any.dim")
def any_(b: Builder, self: Value, arguments: dict[str, Any]) -> str:
    return _quantified(b, "ReduceMax", self, arguments)


@lowers("all", "all.dim")
def all_(b: Builder, self: Value, arguments: dict[str, Any]) -> str:
    return _quantified(b, "ReduceMin", self, arguments)


@lowers("count_nonzero")
def count_nonzero(b: Builder, self: Value, dim: Any, keepdim: bool) -> str:
    truths = b.cast(b.cast(self, "bool"), "int64")
    axes = axes_of(self, dim)
    return b.reduce("ReduceSum", truths, axes, keepdim) if axes else truths


def arg_extreme(b: Builder, kind: str, x: Value, dim: Any, keepdim: bool) -> str:
    """Return the position of the first extreme value."""
    narrow = x.dtype.name not in ("float32", "float64", "int32", "int64")
    wide = ("float32" if "float" in x.dtype.name else "int32") if narrow else x.dtype.name
    source = b.cast(x, wide)
    if not x.ndim:
        return b.op("Squeeze", b.op(kind, b.unsqueeze(source, 0), axis=0, keepdims=0))
    if dim is None:
        result = b.op(kind, b.flat(source), axis=0, keepdims=0)
        return b.reshape(result, [1] * x.ndim) if keepdim else result
    return b.op(kind, source, axis=dim % x.ndim, keepdims=int(keepdim))


@lowers("argmax")
def argmax(b: Builder, self: Value, dim: Any, keepdim: bool) -> str:
    return arg_extreme(b, "ArgMax", self, dim, keepdim)


@lowers("argmin")
def argmin(b: Builder, self: Value, dim: Any, keepdim: bool) -> str:
    return arg_extreme(b, "ArgMin", self, dim, keepdim)


@lowers("max.dim")
def max_dim(b: Builder, self: Value, dim: int, keepdim: bool) -> tuple[str, str]:
    if not self.ndim:
        return self.name, b.constant(0)
    values = _reduced(b, "ReduceMax", self, dim, keepdim, self.dtype)
    return values, arg_extreme(b, "ArgMax", self, dim, keepdim)


@lowers("min.dim")
def min_dim(b: Builder, self: Value, dim: int, keepdim: bool) -> tuple[str, str]:
    if not self.ndim:
        return self.name, b.constant(0)
    values = _reduced(b, "ReduceMin", self, dim, keepdim, self.dtype)
    return values, arg_extreme(b, "ArgMin", self, dim, keepdim)


@lowers("cumsum")
def cumsum(b: Builder, self: Value, dim: int) -> str:
    dtype = b.results[0].dtype
    if not self.ndim:
        return b.cast(self, dtype)
    return b.op("CumSum", b.cast(self, dtype), b.constant(dim % self.ndim))


_NORMS = {1.0: "ReduceL1", 2.0: "ReduceL2"}


@lowers("norm", "linalg_vector_norm")
def norm(b: Builder, arguments: dict[str, Any]) -> str:
    x, order, *_ = arguments.values()
    dtype, keepdim = b.results[0].dtype, arguments["keepdim"]
    axes = axes_of(x, arguments["dim"])
    source = b.cast(x, dtype)
    if not axes:
        if order == 0:
            return b.cast(b.cast(source, "bool"), dtype)
        return b.op("Abs", source)
    order = float(order)
    if order in _NORMS:
        return b.reduce(_NORMS[order], source, axes, keepdim)
    size = b.op("Abs", source)
    if order == 0:
        return b.reduce("ReduceSum", b.cast(b.cast(source, "bool"), dtype), axes, keepdim)
    if order in (float("inf"), float("-inf")):
        return b.reduce("ReduceMax" if order > 0 else "ReduceMin", size, axes, keepdim)
    total = b.reduce("ReduceSum", b.op("Pow", size, b.number(order, dtype)), axes, keepdim)
    return b.op("Pow", total, b.number(1 / order, dtype))


@lowers("logsumexp")
def logsumexp(b: Builder, self: Value, dim: Any, keepdim: bool) -> str:
    x, axes = b.cast(self, b.results[0].dtype), axes_of(self, dim)
    return b.reduce("ReduceLogSumExp", x, axes, keepdim) if axes else x


def _moments(
    b: Builder, self: Value, dim: Any, correction: Any, keepdim: bool
) -> tuple[str, str, list[int]]:
    """Return variance and mean over dimensions, both with dimensions of size 1 kept."""
    axes, dtype = axes_of(self, dim), b.results[0].dtype
    x = b.cast(self, dtype)
    if not axes:
        raise Unsupported("a variance of tensors without dimensions")
    average = b.reduce("ReduceMean", x, axes, True)
    centred = b.op("Sub", x, average)
    total = b.reduce("ReduceSumSquare", centred, axes, True)
    count = b.product([b.size(self, axis) for axis in axes])
    correction = 1 if correction is None else correction
    if isinstance(count, int):
        freedom = b.number(float(max(count - correction, 0)), dtype)
    else:
        number = b.cast(b.scalar(count), dtype)
        freedom = b.op("Sub", number, b.number(float(correction), dtype))
        freedom = b.op("Max", freedom, b.number(0.0, dtype))
    return b.op("Div", total, freedom), average, axes


def _without(b: Builder, x: str, axes: list[int], keepdim: bool) -> str:
    return x if keepdim else b.squeeze(x, *axes)


@lowers("var")
def var(b: Builder, self: Value, dim: Any, correction: Any, keepdim: bool) -> str:
    result, _, axes = _moments(b, self, dim, correction, keepdim)
    return _without(b, result, axes, keepdim)


@lowers("std")
def std(b: Builder, self: Value, dim: Any, correction: Any, keepdim: bool) -> str:
    return b.op("Sqrt", var(b, self, dim, correction, keepdim))


@lowers("var_mean")
def var_mean(b: Builder, self: Value, dim: Any, correction: Any, keepdim: bool) -> tuple[str, str]:
    result, average, axes = _moments(b, self, dim, correction, keepdim)
    return _without(b, result, axes, keepdim), _without(b, average, axes, keepdim)


@lowers("std_mean")
def std_mean(b: Builder, self: Value, dim: Any, correction: Any, keepdim: bool) -> tuple[str, str]:
    result, average = var_mean(b, self, dim, correction, keepdim)
    return b.op("Sqrt", result), average


# ---- extremes, products and sums so far --------------------------------------------------------


def _so_far(b: Builder, x: Value, dim: int, fill: float) -> str:
    """Return a tensor that has, in a new last dimension, the elements up to each one along `dim`,
    and `fill` in the place of those behind it.
    """
    order = [*(axis for axis in range(x.ndim) if axis != dim), dim]
    row = b.unsqueeze(b.permute(b.cast(x, b.results[0].dtype), order), x.ndim - 1)
    places = b.positions(b.size(x, dim))
    before = b.op("LessOrEqual", places, b.unsqueeze(places, 1))
    return b.op("Where", before, row, b.number(fill, b.results[0].dtype))


def _back(b: Builder, x: str, ndim: int, dim: int) -> str:
    order = [*range(dim), ndim - 1, *range(dim, ndim - 1)]
    return b.permute(x, order)


def _running(name: str, kind: str, fill: float) -> None:
    @lowers(name)
    def _(b: Builder, self: Value, dim: int) -> str:
        if not self.ndim:
            return b.cast(self, b.results[0].dtype)
        dim %= self.ndim
        result = b.reduce(kind, _so_far(b, self, dim, fill), [self.ndim], False)
        return _back(b, result, self.ndim, dim)


_running("cumprod", "ReduceProd", 1)
_running("logcumsumexp", "ReduceLogSumExp", float("-inf"))


def _running_extreme(name: str, kind: str, sign: int) -> None:
    @lowers(name)
    def _(b: Builder, self: Value, dim: int) -> tuple[str, str]:
        if not self.ndim:
            return self.name, b.constant(0)
        if not self.is_floating:
            raise Unsupported("running extremes of integers")
        dim %= self.ndim
        parts = _so_far(b, self, dim, -sign * float("inf"))
        values = b.reduce(f"Reduce{kind}", parts, [self.ndim], False)
        places = b.op(f"Arg{kind}", parts, axis=self.ndim, keepdims=0, select_last_index=1)
        return _back(b, values, self.ndim, dim), _back(b, places, self.ndim, dim)


_running_extreme("cummax", "Max", 1)
_running_extreme("cummin", "Min", -1)
