"""Computations with sizes in the host's memory: plain numbers in arrays of NumPy.

Elements are numbers, or objects for sizes that a capture keeps free.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait_core import Tensor
from plait_onnx._dtypes import NUMPY
from plait_onnx._import._registry import Node, host_operator

__all__ = ["as_ints", "resolved_shape"]

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
_MOST = 1024  # elements of a result


def as_ints(values: Any) -> list[Any]:
    """Return the integers of an array as a list."""
    if isinstance(values, Tensor):
        values = np.array(values.tolist())
    if values.dtype == object:
        return list(values.reshape(-1))
    return [int(n) for n in values.reshape(-1).tolist()]


def resolved_shape(shape: Sequence[Any], old: Sequence[Any], allow_zero: bool) -> list[Any]:
    """Return the shape that Reshape's numbers mean, of which 0 keeps a size; -1 may stay."""
    if allow_zero:
        if 0 in shape and -1 in shape:
            raise ValueError(f"shape {list(shape)} has both 0 and -1, with allowzero")
        return list(shape)
    found = []
    for i, n in enumerate(shape):
        if type(n) is int and n == 0:
            if i >= len(old):
                raise ValueError(f"shape {list(shape)} keeps dimension {i} of {list(old)}")
            n = old[i]
        found.append(n)
    if -1 in found and 0 in old:  # nothing tells the size else
        rest = math.prod(n for n in found if n != -1)
        found[found.index(-1)] = math.prod(old) // rest if rest else 0
    return found


def _same(function: Function) -> Callable[[Node], Function]:
    return lambda node: function


def _guarded(function: Function) -> Function:
    """Return a function whose result is small; NotImplemented stands for a larger one."""

    def run(*args: Any) -> Any:
        if max(math.prod(np.broadcast_shapes(*(a.shape for a in args))), 0) > _MOST:
            return NotImplemented
        return function(*args)

    return run


def _divide(a: Array, b: Array) -> Any:
    if a.dtype.kind == "f" or b.dtype.kind == "f":
        return np.asarray(a / b)
    if a.dtype == object or b.dtype == object:
        return a // b
    if (b == 0).any():
        raise ZeroDivisionError("an integer is divided by 0")
    return np.asarray(a // b + ((a % b != 0) & ((a < 0) != (b < 0)))).astype(a.dtype)


def _modulo(node: Node) -> Function:
    return _guarded(np.fmod if node.flag("fmod") else np.mod)


_BINARY: dict[str, Function] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _divide, "Equal": np.equal,
    "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "Less": np.less,
    "LessOrEqual": np.less_equal, "And": np.logical_and, "Or": np.logical_or,
    "Not": np.logical_not, "Neg": np.negative, "Abs": np.abs, "Ceil": np.ceil, "Floor": np.floor,
    "Sqrt": np.sqrt,
    "Where": np.where,
}  # fmt: skip
for _name, _function in _BINARY.items():
    host_operator(_name)(_same(_guarded(_function)))
host_operator("Mod")(_modulo)
for _name, _function in {"Max": np.maximum, "Min": np.minimum}.items():
    host_operator(_name)(
        _same(_guarded(functools.partial(lambda f, *v: functools.reduce(f, v), _function)))
    )


@host_operator("Cast")
def _cast(node: Node) -> Function:
    kind = NUMPY.get(node.integer("to"))

    def cast(x: Array) -> Any:
        if kind is None or np.dtype(kind).kind == "c":
            return NotImplemented
        if x.dtype == object:
            # a size that is free stays one, as an integer
            return x if np.dtype(kind).kind == "i" else NotImplemented
        return x.astype(kind)

    return cast


@host_operator("Gather")
def _gather(node: Node) -> Function:
    axis = node.integer("axis", 0)

    def gather(x: Array, index: Array) -> Any:
        small = x.size * index.size <= _MOST * max(x.shape[axis], 1)
        return x.take(index, axis) if small else NotImplemented

    return gather


@host_operator("Concat")
def _concat(node: Node) -> Function:
    axis = node.integer("axis", 1)

    def concat(*parts: Array) -> Any:
        small = sum(part.size for part in parts) <= _MOST
        return np.concatenate(parts, axis) if small else NotImplemented

    return concat


@host_operator("Unsqueeze")
def _unsqueeze(node: Node) -> Function:
    attribute = node.integers("axes", None)

    def unsqueeze(x: Array, axes: Any = None) -> Array:
        return np.expand_dims(x, tuple(attribute if axes is None else as_ints(axes)))

    return unsqueeze


@host_operator("Squeeze")
def _squeeze(node: Node) -> Function:
    attribute = node.integers("axes", None)

    def squeeze(x: Array, axes: Any = None) -> Any:
        places = attribute if axes is None else as_ints(axes)
        return np.squeeze(x, None if places is None else tuple(places))

    return squeeze


@host_operator("Reshape")
def _reshape(node: Node) -> Function:
    zero = node.flag("allowzero")
    attribute = node.integers("shape", None)

    def reshape(x: Array, shape: Any = None) -> Array:
        sizes = attribute if shape is None else as_ints(shape)
        return x.reshape(resolved_shape(sizes, x.shape, zero))

    return reshape


@host_operator("Slice")
def _slice(node: Node) -> Function:
    own = [node.integers(name, None) for name in ("starts", "ends", "axes")]

    def run(
        x: Array, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None
    ) -> Any:
        first, last = (own[0], own[1]) if starts is None else (as_ints(starts), as_ints(ends))
        places = own[2] if axes is None else as_ints(axes)
        every = [1] * len(first) if steps is None else as_ints(steps)
        index: list[Any] = [slice(None)] * x.ndim
        for i, axis in enumerate(places or range(len(first))):
            end: Any = last[i]
            if every[i] < 0 and end < -x.shape[axis]:
                end = None
            index[axis] = slice(first[i], end, every[i])
        return x[tuple(index)]

    return run


@host_operator("Split")
def _split(node: Node) -> Function:
    axis, own, count = node.integer("axis", 0), node.integers("split", None), len(node.outputs)

    def split(x: Array, sizes: Any = None) -> Any:
        lengths = own if sizes is None else as_ints(sizes)
        if lengths is None:
            size = -(-x.shape[axis] // count)
            lengths = [size] * count
        if x.size > _MOST or len(lengths) > _MOST or any(n < 0 for n in lengths):
            return NotImplemented
        return tuple(np.split(x, np.cumsum(lengths)[:-1], axis))

    return split


@host_operator("ConstantOfShape")
def _constant_of_shape(node: Node) -> Function:
    value = node.tensor("value", None)
    element = np.zeros(1, np.float32)
    if value is not None and value.numel() == 1 and value.itemsize > 1:
        element = value.reshape(1).double().numpy() if value.is_floating_point() else value.numpy()

    def run(shape: Array) -> Any:
        sizes = as_ints(shape)
        if element.dtype.kind != "i" or any(type(n) is not int or n < 0 for n in sizes):
            return NotImplemented
        if math.prod(sizes) > _MOST:
            return NotImplemented
        return np.full(sizes, element.reshape(-1)[0])

    return run


@host_operator("Expand")
def _expand(node: Node) -> Function:
    def run(x: Array, shape: Any) -> Any:
        sizes = as_ints(shape)
        if any(type(n) is not int or n < 0 for n in sizes) or math.prod(sizes) > _MOST:
            return NotImplemented
        return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(sizes)))

    return run


def _reduction(function: Function) -> Callable[[Node], Function]:
    def build(node: Node) -> Function:
        attribute, keep = node.integers("axes", None), node.flag("keepdims", True)
        skip = node.flag("noop_with_empty_axes")

        def run(x: Array, axes: Any = None) -> Any:
            places = attribute if axes is None else as_ints(axes)
            if not places and skip:
                return x
            return function(x, axis=tuple(places) if places else None, keepdims=keep)

        return run

    return build


_REDUCTIONS: dict[str, Function] = {
    "ReduceProd": np.prod, "ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMin": np.min,
}  # fmt: skip
for _name, _function in _REDUCTIONS.items():
    host_operator(_name)(_reduction(_function))


@host_operator("Transpose")
def _transpose(node: Node) -> Function:
    order = node.integers("perm", None)
    return lambda x: x.transpose(order)
