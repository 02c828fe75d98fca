"""The free sizes of a graph: their form in JSON, checks, and graphs for given sizes.

A `Graph` is any here, as its module imports this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import plait_abi
from plait_graph._size_expressions import (
    check_names,
    evaluate,
    holds,
    names_in,
    parse_expression,
    parse_relation,
    relation_text,
)
from plait_graph._values import SizeExpression, SizeQuotient, SizeRange, Value

__all__ = ["check_sizes", "graph_at_sizes", "read_sizes", "sizes_json", "sizes_of_inputs"]


def sizes_json(graph: Any) -> dict[str, Any]:
    """Return the members of the JSON of a graph that tell of free sizes; none if it has none."""
    if not graph.sizes:
        return {}
    names = {value.name for value in graph.values()}
    return {
        "sizes": {
            name: {"min": size.min, "max": size.max, "value": size.value}
            for name, size in graph.sizes.items()
        },
        "guards": graph.guards,
        "shapes": {name: list(shape) for name, shape in graph.shapes.items() if name in names},
    }


def read_sizes(
    form: dict[str, Any],
) -> tuple[dict[str, SizeRange], list[str], dict[str, tuple[int | str, ...]]]:
    """Take the members that `sizes_json` writes out of the JSON of a graph.

    Raises: ArgumentError if they have another form.
    """
    sizes, guards = form.pop("sizes", {}), form.pop("guards", [])
    shapes = form.pop("shapes", {})
    if not isinstance(sizes, dict) or not isinstance(guards, list) or not isinstance(shapes, dict):
        raise plait_abi.ArgumentError(
            "`sizes` and `shapes` must be objects, and `guards` a list of texts"
        )
    check_names(sizes)
    ranges = {}
    for name, entry in sizes.items():
        if not isinstance(entry, dict) or set(entry) != {"min", "max", "value"}:
            raise plait_abi.ArgumentError(f"the size {name!r} must have `min`, `max` and `value`")
        ranges[name] = SizeRange(**entry)
    texts = [relation_text(parse_relation(guard)) for guard in guards]
    known: dict[str, tuple[int | str, ...]] = {}
    for name, shape in shapes.items():
        known[name] = Value(name, "float32", shape).shape or ()  # type: ignore[arg-type]
    return ranges, texts, known


def _expressions(argument: Any) -> Iterator[str]:
    if isinstance(argument, tuple):
        for each in argument:
            yield from _expressions(each)
    elif isinstance(argument, SizeExpression):
        yield argument.text
    elif isinstance(argument, SizeQuotient):
        yield from (argument.above, argument.below)


def _texts(graph: Any) -> Iterator[str]:
    """Yield the texts of all expressions in shapes and arguments."""
    for value in graph.values():
        yield from (n for n in (*(value.shape or ()), *(value.strides or ())) if type(n) is str)
    for node in graph.nodes:
        for argument in node.args:
            yield from _expressions(argument)
        for region in node.regions:
            yield from _texts(region)
    for shape in graph.shapes.values():
        yield from (n for n in shape if isinstance(n, str))


def check_sizes(graph: Any) -> None:
    """Check that expressions name sizes of the graph, which are dimensions of its inputs.

    Raises: ArgumentError if they do not.
    """
    relations = [parse_relation(guard) for guard in graph.guards]
    expressions = [parse_expression(text) for text in dict.fromkeys(_texts(graph))]
    for expression in (*expressions, *(side for _, *sides in relations for side in sides)):
        for name in names_in(expression):
            if name not in graph.sizes:
                raise plait_abi.ArgumentError(f"graph: there is no size {name!r}")
    for value in graph.weights:
        if any(isinstance(n, str) for n in value.shape or ()):
            raise plait_abi.ArgumentError(f"graph: %{value.name} is a weight with a free size")
    dimensions = {n for value in graph.inputs for n in value.shape or ()}
    for name in graph.sizes:
        if name not in dimensions:
            raise plait_abi.ArgumentError(
                f"graph: the size {name!r} is not a dimension of an input"
            )


def _fixed_argument(argument: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(argument, tuple):
        return tuple(_fixed_argument(each, sizes) for each in argument)
    if isinstance(argument, (SizeExpression, SizeQuotient)):
        return argument.value(sizes)
    return argument


def _fixed_value(value: Value, sizes: Mapping[str, int]) -> Value:
    shape, strides = (
        None
        if numbers is None
        else tuple(n if isinstance(n, int) else SizeExpression(n).value(sizes) for n in numbers)
        for numbers in (value.shape, value.strides)
    )
    if (shape, strides) == (value.shape, value.strides):
        return value
    return Value(value.name, value.dtype, shape, strides, value.device)


def graph_at_sizes(graph: Any, sizes: Mapping[str, int]) -> Any:
    """Return a graph with numbers in the place of its free sizes; see `Graph.at_sizes`."""
    if set(sizes) != set(graph.sizes):
        raise plait_abi.ArgumentError(
            f"graph: the sizes {', '.join(graph.sizes)} are required, got {dict(sizes)}"
        )
    for name, size in graph.sizes.items():
        if not size.min <= sizes[name] <= size.max:
            raise plait_abi.ArgumentError(
                f"graph: the size {name} is {sizes[name]}; the graph is for {size.min} to "
                f"{size.max}"
            )
    for guard in graph.guards:
        if not holds(parse_relation(guard), sizes):
            raise plait_abi.ArgumentError(f"graph: it is for sizes with {guard}; got {dict(sizes)}")
    result = graph.copy()
    result.sizes, result.guards, result.shapes = {}, [], {}
    changed = {value: _fixed_value(value, sizes) for value in result.inputs}
    result.inputs = list(changed.values())
    result.replace_all(changed)
    for node in result.nodes:
        node.args = [_fixed_argument(argument, sizes) for argument in node.args]
    return result


def sizes_of_inputs(graph: Any, inputs: Sequence[Any]) -> dict[str, int]:
    """Return the sizes of a graph for tensors.

    Raises: ArgumentError if their shapes are no shapes of its inputs.
    """
    sizes: dict[str, int] = {}
    for value, tensor in zip(graph.inputs, inputs, strict=True):
        for expected, n in zip(value.shape or (), tensor.shape, strict=False):
            if expected in graph.sizes:
                sizes.setdefault(str(expected), n)
    for value, tensor in zip(graph.inputs, inputs, strict=True):
        shape = [
            n if isinstance(n, int) else evaluate(parse_expression(n), sizes)
            for n in value.shape or ()
        ]
        if list(tensor.shape) != shape:
            raise plait_abi.ArgumentError(
                f"graph: the input %{value} got the shape {list(tensor.shape)} for {sizes}"
            )
    return sizes
