"""Templates: one recording for all values of some sizes, made of recordings at several sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import plait_abi
import plait_autograd
import plait_core as pc
from plait_graph import _graph
from plait_graph._capture import Json, Recording, description
from plait_graph._differences import difference_besides_nodes
from plait_graph._size_expressions import (
    RELATIONS,
    Expression,
    Relation,
    combine,
    evaluate,
    expression_text,
    holds,
    names_in,
    relation_text,
)
from plait_graph._size_fitting import Quotient, SizeFit
from plait_graph._symbolic_size import SizeReads

__all__ = ["NoTemplate", "Sample", "Template", "mismatch", "spans"]

_DIVISIONS = {6: "%", 7: "//"}  # beside comparisons, in ops/cpp/comparisons.hpp
_OPPOSITES = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class NoTemplate(Exception):
    """Recordings at several sizes are not one for all sizes; the text says why."""


@dataclasses.dataclass
class Sample:
    """A recording at some sizes, and what the function did with sizes."""

    recording: Recording
    reads: SizeReads
    sizes: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class _Place:
    """An argument of a node, or an item of one, that depends on sizes."""

    node: int
    argument: int
    item: int | None
    expression: Expression | Quotient

    def value(self, sizes: Mapping[str, int]) -> int | float:
        """Return the number for sizes."""
        if isinstance(self.expression, Quotient):
            return self.expression.value(sizes)
        return evaluate(self.expression, sizes)

    def json(self) -> Json:
        """Return what the JSON of a graph has for the number."""
        if not isinstance(self.expression, Quotient):
            return {"size": expression_text(self.expression)}
        parts = (self.expression.above, self.expression.below)
        return {"quotient": [self.expression.factor, *map(expression_text, parts)]}


def spans(samples: Sequence[Mapping[str, int]]) -> bool:
    """Return whether sizes are enough to tell their expressions apart: no size is a sum of
    multiples of others in all samples, each has three values, of which the third verifies, and
    there is one sample more than sizes and constants.
    """
    if any(len({sample[name] for sample in samples}) < 3 for name in samples[0]):
        return False
    names = list(samples[0])
    rows = [[Fraction(1), *(Fraction(sample[name]) for name in names)] for sample in samples]
    for column in range(len(names) + 1):
        at = next((i for i in range(column, len(rows)) if rows[i][column]), None)
        if at is None:
            return False
        rows[column], rows[at] = rows[at], rows[column]
        pivot = rows[column]
        for i in range(column + 1, len(rows)):
            factor = rows[i][column] / pivot[column]
            rows[i] = [x - factor * y for x, y in zip(rows[i], pivot, strict=True)]
    return len(samples) >= len(names) + 2


# ---- what two recordings have in common ----------------------------------------------------------


def mismatch(a: Sample, b: Sample) -> str | None:
    """Return why two recordings are not the same but for numbers, or None."""
    x, y = a.recording, b.recording
    if len(x.nodes) != len(y.nodes):
        return f"one makes {len(x.nodes)} operator calls, the other {len(y.nodes)}"
    for i, (one, other) in enumerate(zip(x.nodes, y.nodes, strict=True)):
        if _skeleton(one) != _skeleton(other):
            return _calls_text(i, one, other)
    for (op, *_, outcome), (_, *_, result) in zip(
        a.reads.relations, b.reads.relations, strict=False
    ):
        if outcome != result:
            return f"a comparison of sizes ({op}) is {outcome} in one and {result} in the other"
    answers = [[_answer(*each) for each in x.reads.comparisons] for x in (a, b)]
    if answers[0] != answers[1]:
        return "operators find other relations of sizes"
    if _events(a.reads) != _events(b.reads):
        return "they read other sizes"
    if (x.inputs, x.n_forward, x.gradients, x.tangents) != (
        y.inputs,
        y.n_forward,
        y.gradients,
        y.tangents,
    ) or [bool(text) for text in x.failures] != [bool(text) for text in y.failures]:
        return "their gradients differ"
    if {name: _kind(entry) for name, entry in x.types.items()} != {
        name: _kind(entry) for name, entry in y.types.items()
    }:
        return "they compute values of other dtypes or numbers of dimensions"
    return difference_besides_nodes(x, y)


def _events(reads: SizeReads) -> Any:
    return len(reads.values), reads.relations, [expression for expression, _ in reads.fixed]


def _answer(relation: int, a: int, b: int) -> str:
    """Return the relation that two numbers have, which were compared by one."""
    if relation in _DIVISIONS:
        return ""
    op = RELATIONS[relation]
    return op if holds((op, a, b), {}) else _OPPOSITES[op]


def _kind(entry: Json) -> tuple[Any, ...]:
    return entry["dtype"], len(entry["shape"]), entry["device"]


def _skeleton(node: Json) -> Any:
    # the numbers of regions are those of all sizes
    arguments = [_blank(argument) for argument in node["in"]]
    return node["op"], node.get("form"), node["out"], arguments, node.get("regions")


def _blank(argument: Any) -> Any:
    """Return an argument with the type in the place of each number."""
    if isinstance(argument, list):
        return [_blank(item) for item in argument]
    return type(argument) if type(argument) in (int, float) else argument


def _calls_text(i: int, one: Json, other: Json) -> str:
    """Return how two calls differ, of which not only numbers are others."""
    if one["op"] == other["op"] and "regions" in one:
        return f"{one['op']} (operator call {i}) has regions, whose sizes are fixed"
    if one["op"] == other["op"]:
        names = _graph.argument_names(one["op"])
        for name, a, b in zip(names, one["in"], other["in"], strict=True):
            if isinstance(a, list) and isinstance(b, list) and len(a) != len(b):
                return (
                    f"{one['op']} (operator call {i}): `{name}` has {len(a)} items in one and "
                    f"{len(b)} in the other"
                )
    return f"operator call {i} is {_text(one)} in one and {_text(other)} in the other"


def _text(node: Json) -> str:
    arguments = ", ".join("..." if isinstance(a, list) else str(a) for a in node["in"])
    return f"{node['op']}({arguments})"[:100]


def _numbers(node: Json) -> Iterator[tuple[int, int | None, int | float]]:
    for i, argument in enumerate(node["in"]):
        if type(argument) in (int, float):
            yield i, None, argument
        elif isinstance(argument, list):
            yield from (
                (i, k, item) for k, item in enumerate(argument) if type(item) in (int, float)
            )


# ---- templates -----------------------------------------------------------------------------------


class Template:
    """A recording whose numbers and shapes are expressions in free sizes.

    Args:
        samples: recordings that have no `mismatch`, at sizes that `spans` holds for.

    Raises:
        NoTemplate: if a number fits no expression, or the function reads a free size as a number.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.base = samples[-1].recording
        self.names = list(samples[0].sizes)
        self._fit = SizeFit([sample.sizes for sample in samples])
        # shapes are found one from the other, in the order of the calls
        self._add_arguments(samples, self._resolved_reads(samples, only_known=True))
        self.shapes = self._fit_shapes(samples)
        reads = self._resolved_reads(samples)
        self._add_arguments(samples, reads)
        self._are_dense = {
            name: all(_is_dense(sample.recording.types[name]) for sample in samples)
            for name in self.base.inputs
        }
        for name, is_dense in self._are_dense.items():
            if not is_dense and None in self.shapes[name]["strides"]:
                entry = samples[0].recording.types[name]
                raise NoTemplate(
                    f"an argument of shape {tuple(entry['shape'])} has the strides "
                    f"{tuple(entry['strides'])}, with gaps, which say nothing of other sizes; pass "
                    "it as x.contiguous()"
                )
        self.places = list(self._fit_numbers(samples))
        self.guards = self._guards(samples, reads)
        self.operator_guards = self._operator_guards(samples)

    def _resolved_reads(
        self, samples: Sequence[Sample], *, only_known: bool = False
    ) -> dict[str, Expression]:
        """Return the expressions of the sizes that the function read, as far as there are some."""
        find = self._fit.known if only_known else self._fit.whole
        columns = zip(*(sample.reads.values for sample in samples), strict=True)
        found = {f"r{i}": find(column) for i, column in enumerate(columns)}
        return {name: value for name, value in found.items() if value is not None}

    def _add_arguments(self, samples: Sequence[Sample], reads: Mapping[str, Expression]) -> None:
        """Add what the function computed of sizes for calls to what numbers are compared with."""
        for expression in samples[-1].reads.arguments:
            resolved = _substitute(expression, reads)
            if resolved is not None:
                self._fit.add(resolved)

    def _fit_shapes(self, samples: Sequence[Sample]) -> dict[str, Json]:
        """Return the entries of values with expressions in shapes; None for a size without one."""
        result: dict[str, Json] = {}
        for name, entry in self.base.types.items():
            entries = [sample.recording.types[name] for sample in samples]
            result[name] = {**entry}
            for key in ("shape", "strides"):
                columns = zip(*(each[key] for each in entries), strict=True)
                result[name][key] = [self._fit.whole(column) for column in columns]
        return result

    def _fit_numbers(self, samples: Sequence[Sample]) -> Iterator[_Place]:
        for at, node in enumerate(self.base.nodes):
            others = [_numbers(sample.recording.nodes[at]) for sample in samples]
            for column in zip(*others, strict=True):
                i, k, first = column[0]
                values = [value for _, _, value in column]
                if all(repr(value) == repr(first) for value in values):
                    continue
                expression: Expression | Quotient | None
                if type(first) is int:
                    expression = self._fit.whole(values)
                else:
                    expression = self._fit.quotient(values)
                if expression is None:
                    raise NoTemplate(
                        f"{node['op']} (operator call {at}) gets {values} for the sizes "
                        f"{[sample.sizes for sample in samples]}, which fits no expression of them"
                    )
                yield _Place(at, i, k, expression)

    def _guards(self, samples: Sequence[Sample], reads: Mapping[str, Expression]) -> list[Relation]:
        guards: dict[str, Relation] = {}
        last = samples[-1].reads
        relations = [(op, a, b, is_true, "") for op, a, b, is_true in last.relations]
        for expression, place in last.fixed:
            values = {
                evaluate(expression, {f"r{i}": v for i, v in enumerate(sample.reads.values)})
                for sample in samples
            }
            if len(values) > 1:
                resolved = _substitute(expression, reads)
                text = "" if resolved is None else f" ({expression_text(resolved)})"
                raise NoTemplate(
                    f"the function reads a free size{text} as a number of Python, as by int(), "
                    f"range(), /, or as a key, at {place}"
                )
            relations.append(("==", expression, values.pop(), True, place))
        for op, a, b, is_true, place in relations:
            left, right = _substitute(a, reads), _substitute(b, reads)
            if left is None or right is None:
                where = f" at {place}" if place else ""
                raise NoTemplate(f"the function reads a size that fits no expression{where}")
            relation = (op if is_true else _OPPOSITES[op], left, right)
            if left != right and any(map(_has_names, (left, right))):
                guards[relation_text(relation)] = relation
        return list(guards.values())

    def _operator_guards(self, samples: Sequence[Sample]) -> list[Relation]:
        guards: dict[str, Relation] = {}
        rows = zip(*(sample.reads.comparisons for sample in samples), strict=True)
        for row in dict.fromkeys(rows):
            left, right = (self._fit.whole([each[i] for each in row]) for i in (1, 2))
            if left is None or right is None:
                raise NoTemplate(
                    f"an operator compares {row[0][1]} and {row[0][2]}, which fit no expression"
                )
            relation: Relation
            if row[0][0] in _DIVISIONS:
                op = _DIVISIONS[row[0][0]]
                results = {evaluate((op, a, b), {}) for _, a, b in row}
                if len(results) > 1:
                    continue  # what it is compared with is a number of its own
                relation = ("==", combine(op, left, right), results.pop())
            else:
                relation = (_answer(*row[0]), left, right)
            if relation[1] != relation[2] and any(map(_has_names, relation[1:])):
                guards[relation_text(relation)] = relation
        return list(guards.values())

    def admits(self, sizes: Mapping[str, int], *, with_operators: bool = True) -> bool:
        """Return whether all that was asked about sizes has the same answers.

        Args:
            sizes: of a call.
            with_operators: whether that holds also for what operators ask, not the function alone.
        """
        guards = [*self.guards, *(self.operator_guards if with_operators else ())]
        try:
            return all(holds(guard, sizes) for guard in guards)
        except plait_abi.ArgumentError:
            return False

    # ---- a recording for other sizes -------------------------------------------------------------

    def recording(self, sizes: Mapping[str, int], given: Sequence[pc.Tensor]) -> Recording | None:
        """Return the recording for sizes; None if the arguments have other shapes or strides."""
        types = {name: self._type(entry, sizes) for name, entry in self.shapes.items()}
        for name, tensor in zip(self.base.inputs, given, strict=True):
            if types[name] != description(name, tensor):
                return None
        outside = dict(self.base.outside)
        with plait_autograd.no_grad():
            for name in filter(None, self.base.tangents):
                entry = types[name]
                if None in entry["shape"] or None in entry["strides"]:
                    return None
                outside[name] = pc.empty_strided(
                    entry["shape"],
                    entry["strides"],
                    dtype=outside[name].dtype,
                    device=outside[name].device,
                ).fill_(1)
        return dataclasses.replace(
            self.base,
            capture=None,
            given=list(given),
            types=types,
            outside=outside,
            nodes=self.nodes(lambda place: place.value(sizes)),
        )

    @staticmethod
    def _type(entry: Json, sizes: Mapping[str, int]) -> Json:
        return {
            **entry,
            **{
                key: [None if e is None else evaluate(e, sizes) for e in entry[key]]
                for key in ("shape", "strides")
            },
        }

    def nodes(self, value: Any) -> list[Json]:
        """Return the nodes with ``value(place)`` for each number that depends on sizes."""
        nodes = list(self.base.nodes)
        changed: set[int] = set()
        for place in self.places:
            if place.node not in changed:
                changed.add(place.node)
                node = nodes[place.node]
                arguments = [list(a) if isinstance(a, list) else a for a in node["in"]]
                nodes[place.node] = {**node, "in": arguments}
            arguments = nodes[place.node]["in"]
            if place.item is None:
                arguments[place.argument] = value(place)
            else:
                arguments[place.argument][place.item] = value(place)
        return nodes

    # ---- the graph with expressions --------------------------------------------------------------

    def symbolic_nodes(self) -> list[Json]:
        """Return the nodes with expressions, as the JSON of a graph has them."""
        return self.nodes(lambda place: place.json())

    def symbolic_type(self, name: str) -> Json:
        """Return the entry of an input with expressions; without strides if they are in C order."""
        entry = {**self.shapes[name]}
        if self._are_dense[name]:
            del entry["strides"]
        return {
            key: [_json(e) for e in value] if isinstance(value, list) else value
            for key, value in entry.items()
        }

    def symbolic_shapes(self) -> dict[str, list[Any]]:
        """Return the shapes of values that depend on sizes, by name."""
        return {
            name: [_json(e) for e in entry["shape"]]
            for name, entry in self.shapes.items()
            if None not in entry["shape"] and any(type(e) is not int for e in entry["shape"])
        }


def _is_dense(entry: Json) -> bool:
    """Return whether a value is in C order; the stride of one element may be any."""
    stride = 1
    for size, own in zip(reversed(entry["shape"]), reversed(entry["strides"]), strict=True):
        if size != 1 and own != stride:
            return False
        stride *= max(size, 1)
    return True


def _has_names(expression: Expression) -> bool:
    return any(names_in(expression))


def _json(expression: Expression) -> int | str:
    return expression if isinstance(expression, int) else expression_text(expression)


def _substitute(expression: Expression, reads: Mapping[str, Expression]) -> Expression | None:
    """Return an expression in free sizes for one in the sizes that were read; None if there is
    none.
    """
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        return reads.get(expression)
    op, a, b = expression
    left, right = _substitute(a, reads), _substitute(b, reads)
    return None if left is None or right is None else combine(op, left, right)
