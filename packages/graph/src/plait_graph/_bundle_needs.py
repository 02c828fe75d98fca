"""What a graph needs of the kernels: operators, dtypes, and kinds of convolutions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence

from plait_graph._computation_graph import Graph, Node
from plait_graph._values import Value
from plait_graph.passes import infer_shapes

__all__ = ["ALL", "Needs", "header", "joined", "needs_of"]

# Enumerators of plait::core::Kind.
_KINDS = {
    "bool": "Bool",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float32": "F32",
    "float64": "F64",
    "float16": "F16",
    "bfloat16": "BF16",
    "complex64": "C64",
    "complex128": "C128",
    "float8_e4m3fn": "F8E4M3",
    "float8_e4m3fnuz": "F8E4M3Z",
    "float8_e5m2": "F8E5M2",
    "float8_e5m2fnuz": "F8E5M2Z",
    "float8_e8m0fnu": "F8E8M0",
}
# The dtypes in which decompositions and kernels compute others.
_COMPUTED_IN = {
    "float16": "float32",
    "bfloat16": "float32",
    "complex64": "float32",
    "complex128": "float64",
    **dict.fromkeys((name for name in _KINDS if name.startswith("float8")), "float32"),
}
_ALWAYS = ("bool", "int64")  # conditions and positions


@dataclasses.dataclass(frozen=True)
class Needs:
    """What a build has.

    Attributes:
        operators: names; None are all.
        dtypes: names.
        windows: sizes of square windows of convolutions; None are all.
        groups: whether channels of convolutions are in groups.
    """

    operators: frozenset[str] | None
    dtypes: frozenset[str]
    windows: frozenset[int] | None
    groups: bool


ALL = Needs(None, frozenset(_KINDS), None, True)


def _nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for region in node.regions:
            yield from _nodes(region)


def _values(graph: Graph) -> Iterator[Value]:
    yield from (*graph.inputs, *graph.weights)
    for node in graph.nodes:
        yield from node.defines()
        for region in node.regions:
            yield from _values(region)


def needs_of(graph: Graph) -> Needs:
    """Return what a graph needs."""
    graph = infer_shapes(graph)
    dtypes = {value.dtype.name for value in _values(graph) if value.dtype is not None}
    if any(value.dtype is None for value in _values(graph)):
        dtypes = set(_KINDS)  # those of branches, and of shapes that depend on values
    dtypes |= {*_ALWAYS, *(_COMPUTED_IN[name] for name in dtypes if name in _COMPUTED_IN)}
    windows: set[int] = set()
    groups = False
    for node in _nodes(graph):
        if "conv" not in node.op:
            continue
        values = [value for value in node.reads() if isinstance(value, Value)]
        four = [v.shape for v in (*values, *node.defines()) if v.shape and len(v.shape) == 4]
        sizes = {shape[2] for shape in four if shape[2] == shape[3]}
        windows |= {size for size in sizes if isinstance(size, int)}
        forward = node.op.startswith("conv2d") and "backward" not in node.op and len(four) > 1
        # images and weights have one number of channels if they are not in groups
        groups |= not forward or four[0][1] != four[1][1]
    operators = {node.op for node in _nodes(graph) if not node.regions}
    return Needs(frozenset(operators), frozenset(dtypes), frozenset(windows), groups)


def joined(all_needs: Sequence[Needs]) -> Needs:
    """Return what several graphs need together."""
    operators: set[str] = set()
    dtypes: set[str] = set()
    windows: set[int] = set()
    for each in all_needs:
        operators |= each.operators or set()
        dtypes |= each.dtypes
        windows |= each.windows or set()
    groups = any(each.groups for each in all_needs)
    return Needs(frozenset(operators), frozenset(dtypes), frozenset(windows), groups)


def header(needs: Needs, operators: Iterable[str]) -> str:
    """Return the header of a build, which kernel/kernel.h includes.

    Args:
        needs: of the graph.
        operators: the names of all that the build has, with those that others call.
    """
    kinds = " | ".join(f"1u << {_KINDS[name]}" for name in sorted(needs.dtypes))
    sizes = "true"
    if needs.windows is not None:
        sizes = " || ".join(f"n == {n}" for n in sorted(needs.windows)) or "false"
    return f"""#pragma once
namespace plait::core {{
{_selects(operators)}
constexpr bool selects(Kind k) {{ return k >= 0 && (({kinds}) >> k & 1); }}
constexpr bool selects_window([[maybe_unused]] int64_t n) {{ return {sizes}; }}
constexpr bool kSelectsGroups = {"true" if needs.groups else "false"};
constexpr bool kSelectsSettings = false;
}}  // namespace plait::core
"""


def register_code_header(needs: Needs, level: str) -> str:
    """Return the header of a build, which program/register_code.hpp includes.

    Args:
        needs: of the graph.
        level: the instructions of its kernels; ``"none"``: calls are not joined to register code.
    """

    def word(condition: bool) -> str:
        return "true" if condition else "false"

    selects = _selects(needs.operators or ())
    if needs.operators is None:
        selects = "constexpr bool selects(const char *) { return true; }"
    return f"""#pragma once
namespace plait::graph {{
{selects}
constexpr bool kSelectsFloats = {word("float32" in needs.dtypes)};
constexpr bool kSelectsDoubles = {word("float64" in needs.dtypes)};
constexpr bool kSelectsBase = {word(level == "base")};
constexpr bool kSelectsAvx2 = {word(level == "avx2")};
}}  // namespace plait::graph
"""


def _selects(operators: Iterable[str]) -> str:
    """Return a function of C++ that tells whether an operator is one of these."""
    names = ", ".join(json.dumps(name) for name in sorted(operators)) or '""'
    return f"""constexpr bool selects(const char *op) {{
  constexpr const char *names[] = {{{names}}};
  for (const char *name : names) {{
    int i = 0;
    while (op[i] && op[i] == name[i]) i++;
    if (op[i] == name[i]) return true;
  }}
  return false;
}}"""
