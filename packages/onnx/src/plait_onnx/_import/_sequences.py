"""Sequences of tensors, as lists, and values that may be absent, as None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_onnx._import._program import as_tensor, host_value
from plait_onnx._import._registry import Node, operator
from plait_onnx._import._sizes import as_ints

Function = Callable[..., Any]


def _place(index: Any, count: int, beyond: int = 0) -> int:
    i = int(host_value(index).reshape(-1)[0])
    if not -count <= i < count + beyond:
        raise IndexError(f"index {i} is out of range for a sequence of {count}")
    return i + count if i < 0 else i


@operator("SequenceEmpty")
def _empty(node: Node) -> Function:
    node.dtype("dtype", None)
    return list


@operator("SequenceConstruct")
def _construct(_: Node) -> Function:
    return lambda *values: [as_tensor(value) for value in values]


@operator("SequenceAt")
def _at(_: Node) -> Function:
    return lambda values, index: values[_place(index, len(values))]


@operator("SequenceInsert")
def _insert(node: Node) -> Function:
    def insert(values: list[Any], value: Any, index: Any = None) -> list[Any]:
        node.check_count(len(values) + 1)
        i = len(values) if index is None else _place(index, len(values), 1)
        return [*values[:i], as_tensor(value), *values[i:]]

    return insert


@operator("SequenceErase")
def _erase(_: Node) -> Function:
    def erase(values: list[Any], index: Any = None) -> list[Any]:
        if not values:
            raise IndexError("the sequence is empty")
        i = len(values) - 1 if index is None else _place(index, len(values))
        return [*values[:i], *values[i + 1 :]]

    return erase


@operator("SequenceLength")
def _length(_: Node) -> Function:
    return lambda values: pc.tensor(len(values))


@operator("ConcatFromSequence")
def _concat(node: Node) -> Function:
    axis, new = node.integer("axis"), node.flag("new_axis")
    return lambda values: pc.stack(values, axis) if new else pc.cat(values, axis)


@operator("SplitToSequence", host=(1,))
def _split(node: Node) -> Function:
    axis, keep = node.integer("axis", 0), node.flag("keepdims", True)

    def split(x: Tensor, sizes: Any = None) -> list[Tensor]:
        n = x.shape[axis]
        node.check_count(n)
        if sizes is None:
            parts = pc.split(x, 1, axis)
            return list(parts) if keep else [part.squeeze(axis) for part in parts]
        if sizes.ndim == 0:
            size = int(sizes)
            if size < 1:
                raise ValueError(f"a part's size must be positive, got {size}")
            return list(pc.split(x, size, axis))
        lengths = as_ints(sizes)
        if sum(lengths) != n:
            raise ValueError(f"sizes {lengths} do not make {n}")
        return list(pc.split(x, lengths, axis))

    return split


@operator("Optional")
def _optional(_: Node) -> Function:
    return lambda value=None: value


@operator("OptionalHasElement")
def _has_element(_: Node) -> Function:
    return lambda value=None: pc.tensor(value is not None)


@operator("OptionalGetElement")
def _get_element(_: Node) -> Function:
    def get(value: Any) -> Any:
        if value is None:
            raise ValueError("the optional value is absent")
        return value

    return get
