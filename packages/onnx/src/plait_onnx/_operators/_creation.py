"""Operators that make tensors of numbers, write to whole tensors, or draw random numbers."""

from __future__ import annotations

from typing import Any

from plait_onnx._builder import Builder, Unsupported, Value
from plait_onnx._dtypes import element_type
from plait_onnx._operators._pointwise import operand
from plait_onnx._table import lowers


def _sizes(b: Builder, arguments: dict[str, Any]) -> list[Any]:
    """Return the sizes that a call names, or those of the tensor that it names."""
    if "size" in arguments:
        return list(arguments["size"])
    return b.sizes_of(arguments["self"])


def _filled(names: tuple[str, ...], value: Any) -> None:
    @lowers(*names)
    def _(b: Builder, arguments: dict[str, Any]) -> str:
        content = arguments.get("value", arguments.get("fill_value", value))
        return b.filled(content, _sizes(b, arguments), b.results[0].dtype)


_filled(("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty"), 0)
_filled(("empty_strided", "new_empty_strided"), 0)
_filled(("ones", "ones_like", "new_ones"), 1)
_filled(("full", "full_like", "new_full"), None)


@lowers("scalar_tensor")
def scalar_tensor(b: Builder, value: Any) -> str:
    return b.number(value, b.results[0].dtype)


@lowers("arange", "arange.start")
def arange(b: Builder, arguments: dict[str, Any]) -> str:
    dtype = b.results[0].dtype
    narrow = dtype.name not in ("float32", "float64", "int32", "int64")
    wide = ("float32" if "float" in dtype.name else "int64") if narrow else dtype.name
    start, end, step = (
        b.number(value, wide)
        for value in (arguments.get("start", 0), arguments["end"], arguments.get("step", 1))
    )
    result = b.op("Range", start, end, step)
    return b.cast(result, dtype) if narrow else result


def _spaced(b: Builder, arguments: dict[str, Any]) -> str:
    dtype, steps = b.results[0].dtype, arguments["steps"]
    positions = b.cast(b.positions(steps), dtype)
    count = b.op(
        "Max", b.op("Sub", b.cast(b.scalar(steps), dtype), b.number(1, dtype)), b.number(1, dtype)
    )
    first, last = (operand(b, arguments[name], dtype) for name in ("start", "end"))
    step = b.op("Div", b.op("Sub", last, first), count)
    return b.op("Add", first, b.op("Mul", positions, step))


@lowers("linspace", "linspace.tensors")
def linspace(b: Builder, arguments: dict[str, Any]) -> str:
    return _spaced(b, arguments)


@lowers("logspace.tensors")
def logspace(b: Builder, arguments: dict[str, Any]) -> str:
    dtype = b.results[0].dtype
    return b.op("Pow", b.number(arguments["base"], dtype), _spaced(b, arguments))


@lowers("eye")
def eye(b: Builder, n: Any, m: Any) -> str:
    dtype = b.results[0].dtype
    rows, columns = b.positions(n), b.positions(n if m is None else m)
    return b.cast(b.op("Equal", b.unsqueeze(rows, 1), b.unsqueeze(columns, 0)), dtype)


# ---- writes ------------------------------------------------------------------------------------


@lowers("copy_")
def copy_(b: Builder, self: Value, src: Value) -> str:
    name = b.cast(src, self.dtype)
    return name if src.dims == self.dims else b.expand(name, b.sizes_of(self))


@lowers("fill_", "fill_.tensor")
def fill_(b: Builder, self: Value, value: Any) -> str:
    return b.expand(operand(b, value, self.dtype), b.sizes_of(self))


@lowers("zero_")
def zero_(b: Builder, self: Value) -> str:
    return b.filled(0, b.sizes_of(self), self.dtype)


# ---- random numbers ----------------------------------------------------------------------------


def _drawn(b: Builder, kind: str, like: str, **attributes: float) -> str:
    dtype = b.results[0].dtype
    wide = dtype.name if dtype.name in ("float32", "float64") else "float32"
    result = b.op(kind, like, dtype=element_type(wide), **attributes)
    return result if wide == dtype.name else b.cast(result, dtype)


@lowers("rand", "rand_like")
def rand(b: Builder, arguments: dict[str, Any]) -> str:
    like = b.expand(b.number(0.0, "float32"), _sizes(b, arguments))
    return _drawn(b, "RandomUniformLike", like)


@lowers("randn", "randn_like")
def randn(b: Builder, arguments: dict[str, Any]) -> str:
    like = b.expand(b.number(0.0, "float32"), _sizes(b, arguments))
    return _drawn(b, "RandomNormalLike", like)


@lowers("uniform_")
def uniform_(b: Builder, self: Value, low: float, high: float) -> str:
    return _drawn(b, "RandomUniformLike", self.name, low=float(low), high=float(high))


@lowers("normal_")
def normal_(b: Builder, self: Value, mean: float, std: float) -> str:
    return _drawn(b, "RandomNormalLike", self.name, mean=float(mean), scale=float(std))


def _whole(b: Builder, sizes: list[Any], low: Any, high: Any) -> str:
    """Return random integers from `low` to below `high`."""
    like = b.expand(b.number(0.0, "float32"), sizes)
    drawn = b.op("RandomUniformLike", like, low=float(low), high=float(high))
    return b.cast(b.op("Floor", drawn), b.results[0].dtype)


@lowers("randint", "randint.high")
def randint(b: Builder, arguments: dict[str, Any]) -> str:
    return _whole(b, list(arguments["size"]), arguments.get("low", 0), arguments["high"])


@lowers("randint_like", "randint_like.high", "random_.from", "random_.to")
def randint_like(b: Builder, arguments: dict[str, Any]) -> str:
    low = arguments.get("low", 0)
    high = arguments.get("high", arguments.get("to"))
    if high is None:
        raise Unsupported("random_ without an end")
    return _whole(b, b.sizes_of(arguments["self"]), low, high)


@lowers("randperm")
def randperm(b: Builder, n: Any) -> str:
    drawn = b.op("RandomUniformLike", b.expand(b.number(0.0, "float32"), [n]))
    return b.cast(b.ops("TopK", 2, drawn, b.sizes_tensor([n]))[1], b.results[0].dtype)


@lowers("multinomial")
def multinomial(b: Builder, self: Value, num_samples: Any, replacement: bool) -> str:
    """With replacement the operator of ONNX; else the smallest of exponential variables that have
    the weights as rates.
    """
    weights = b.cast(self, "float32")
    rows = weights if self.ndim == 2 else b.unsqueeze(weights, 0)
    if replacement:
        drawn = b.op(
            "Multinomial", b.op("Log", rows), sample_size=num_samples, dtype=element_type("int64")
        )
    else:
        uniform = b.op("RandomUniformLike", rows, low=1e-30)
        waiting = b.op("Div", b.op("Log", uniform), rows)
        drawn = b.ops("TopK", 2, waiting, b.sizes_tensor([num_samples]), axis=1)[1]
    return drawn if self.ndim == 2 else b.squeeze(drawn, 0)


@lowers("bernoulli", "bernoulli_.Tensor")
def bernoulli(b: Builder, arguments: dict[str, Any]) -> str:
    p = arguments.get("p", arguments["self"])
    like = b.expand(b.number(0.0, "float32"), b.sizes_of(arguments["self"]))
    drawn = b.op("RandomUniformLike", like)
    return b.cast(b.op("Less", drawn, b.cast(p, "float32")), b.results[0].dtype)
