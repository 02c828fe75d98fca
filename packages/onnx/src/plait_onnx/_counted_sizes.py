"""Sizes of results that depend on values, such as the number of elements that are not 0."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from plait_abi import binding
from plait_graph import Node
from plait_onnx._builder import Size

__all__ = ["counted_sizes", "has_counted_sizes"]

_POSITIONS = ("nonzero", "argwhere", "nonzero_rows")
_COUNTED = (*_POSITIONS, "masked_select", "masked_values", "nms", "repeat_interleave.tensor")
Dims = tuple[Size, ...]


def has_counted_sizes(node: Node, operands: Sequence[Sequence[Dims]]) -> bool:
    """Return whether sizes of the results of a call depend on values.

    Args:
        node: the call.
        operands: the sizes of the tensors in each argument.
    """
    return node.op in _COUNTED or any(None in dims for each in operands for dims in each)


def counted_sizes(node: Node, operands: Sequence[Sequence[Dims]], shape: tuple[int, ...]) -> Dims:
    """Return the sizes of a result, with None for those that depend on values.

    Args:
        node: the call.
        operands: the sizes of the tensors in each argument.
        shape: the sizes in the recording.
    """
    if node.op in _POSITIONS:
        return (None, shape[1])
    own = operands[0][0] if operands and operands[0] else ()
    place: Any = node.args[1] if len(node.args) > 1 else None
    if node.op == "select":
        dim = place % len(own)
        return own[:dim] + own[dim + 1 :]
    if node.op == "unsqueeze":
        dim = place % (len(own) + 1)
        return (*own[:dim], 1, *own[dim:])
    if node.op in ("slice", "narrow"):
        dim = place % len(own)
        return (*own[:dim], None if own[dim] is None else shape[dim], *own[dim + 1 :])
    if node.op == "index_select":
        dim = place % len(own)
        (index,) = operands[2]
        return (*own[:dim], index[0] if index else 1, *own[dim + 1 :])
    if node.op == "index_tensors" and len(operands[1]) == 1:
        (dim,) = (at for at, each in enumerate(place) if each is not None)
        return (*own[:dim], *operands[1][0], *own[dim + 1 :])
    if node.op in _elementwise():
        return _broadcast([dims for each in operands for dims in each], shape)
    return (None,) * len(shape)


def _broadcast(operands: list[Dims], shape: tuple[int, ...]) -> Dims:
    def is_known(at: int) -> bool:
        return all(dims[-at] is not None for dims in operands if len(dims) >= at)

    return tuple(shape[-at] if is_known(at) else None for at in range(len(shape), 0, -1))


@functools.cache
def _elementwise() -> frozenset[str]:
    """Return the operators whose results have the shape to which their operands broadcast."""
    return frozenset({*dict(binding.operators_with("pointwise")), "cast", "where", "masked_fill"})
