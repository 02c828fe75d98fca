"""Shapes of the values of graphs with free sizes, as expressions of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import plait_abi
from plait_graph._computation_graph import Graph
from plait_graph._size_expressions import expression_text, holds, parse_relation
from plait_graph._size_fitting import SizeFit
from plait_graph._templates import spans
from plait_graph._values import Value

__all__ = ["infer_free_shapes", "with_types"]

_MOST_TRIES = 60
_FARTHEST = 24  # from the sizes of the recording
_SAMPLES = 8  # beyond those that tell the sizes apart


def _samples(graph: Graph) -> Iterator[dict[str, int]]:
    """Yield sizes that the graph may have, which differ in no simple way."""
    guards = [parse_relation(guard) for guard in graph.guards]
    numbers = random.Random(0)
    for _ in range(_MOST_TRIES):
        sizes = {}
        for name, size in graph.sizes.items():
            moved = size.value + numbers.randrange(-(size.value // 2), _FARTHEST)
            least = max(size.min, min(2, size.max))
            sizes[name] = least + (moved - least) % (size.max - least + 1)
        if all(holds(guard, sizes) for guard in guards):
            yield sizes


def infer_free_shapes(graph: Graph, infer: Callable[[Graph], Graph]) -> Graph:
    """Return a graph with the types of values that `infer` finds at several sizes.

    Sizes that fit no expression, and values of which one does not, stay unknown.
    """
    samples: list[dict[str, int]] = []
    found: list[dict[str, Value]] = []
    more = _SAMPLES
    error: plait_abi.ArgumentError | None = None
    for sizes in _samples(graph):
        if sizes in samples:
            continue
        try:
            inferred = infer(graph.at_sizes(sizes))
        except plait_abi.ArgumentError as problem:
            error = error or problem
            continue
        samples.append(sizes)
        found.append({value.name: value for value in inferred.values()})
        more -= spans(samples)
        if not more:
            break
    if not samples and error is not None:
        raise error
    if not samples or not spans(samples):
        return graph.copy()
    fit = SizeFit(samples)
    result = graph.copy()
    known = {
        value: typed
        for node in result.nodes
        for value in node.defines()
        if (typed := _fitted(value, [each[value.name] for each in found], fit)) is not None
    }
    return with_types(result, known)


def _fitted(value: Value, typed: Sequence[Value], fit: SizeFit) -> Value | None:
    last = typed[-1]
    shapes, strides = ([getattr(each, key) for each in typed] for key in ("shape", "strides"))
    if None in shapes:
        return None
    shape = _expressions(shapes, fit)
    dense = all(each is None for each in strides)
    steps = None if dense or None in strides else _expressions(strides, fit)
    if shape is None or (steps is None and not dense):
        return None
    return Value(value.name, last.dtype, shape, steps, last.device)


def _expressions(rows: Sequence[Any], fit: SizeFit) -> tuple[int | str, ...] | None:
    found = [fit.whole(column) for column in zip(*rows, strict=True)]
    if None in found:
        return None
    return tuple(e if isinstance(e, int) else expression_text(e) for e in found if e is not None)


def with_types(graph: Graph, known: Mapping[Value, Value]) -> Graph:
    """Put values with types in the place of those without; return the graph, which is changed."""
    for node in graph.nodes:
        node.args = [_known(argument, known) for argument in node.args]
        node.outputs = [_known(output, known) for output in node.outputs]
    graph.outputs = [_known(value, known) for value in graph.outputs]
    return graph


def _known(argument: Any, known: Mapping[Value, Value]) -> Any:
    if isinstance(argument, tuple):
        return tuple(_known(each, known) for each in argument)
    return known.get(argument, argument) if isinstance(argument, Value) else argument
