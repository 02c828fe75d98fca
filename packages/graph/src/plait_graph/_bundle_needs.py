"""What a graph needs of the kernels: operators, dtypes, and sizes of convolutions."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Sequence

from plait_graph._computation_graph import Graph, Node
from plait_graph._values import Value
from plait_graph.passes import infer_shapes

__all__ = [
    "ALL",
    "KNOWN_PRODUCTS",
    "Convolution",
    "Needs",
    "Product",
    "header",
    "joined",
    "needs_of",
    "products_header",
    "register_code_header",
]

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
_FLOATS = ("float32", "float64")
# The operators whose products of matrices have sizes that are read from a graph.
_CONVOLUTIONS = ("conv2d", "conv2d_activation", "conv2d_add_activation")
KNOWN_PRODUCTS = frozenset({"linear", "mm", "addmm", *_CONVOLUTIONS})


@dataclasses.dataclass(frozen=True)
class Convolution:
    """Sizes of a convolution, as ``plait::core::ConvolutionSizes`` has them.

    Attributes:
        window: the side of a square window; 0 if it is not a square.
        sizes: images, channels and filters of a group, rows and columns of results, and groups;
            None if they are not known.
    """

    window: int
    sizes: tuple[int, ...] | None


@dataclasses.dataclass(frozen=True)
class Product:
    """Sizes of a product of matrices, as ``plait::core::ProductSizes`` has them.

    Attributes:
        sizes: rows, columns and products of a sum; None if they are not known.
        turned: whether the columns of the second matrix are contiguous.
    """

    sizes: tuple[int, int, int] | None
    turned: bool = False


@dataclasses.dataclass(frozen=True)
class Needs:
    """What a build has.

    Attributes:
        operators: names; None are all.
        dtypes: names.
        convolutions: their sizes; None are all.
        has_sizes: whether a graph has free sizes.
        products: the sizes of matrix products of `KNOWN_PRODUCTS`.
        of_floats: the operators all of whose calls have float32 or float64 alone.
    """

    operators: frozenset[str] | None
    dtypes: frozenset[str]
    convolutions: frozenset[Convolution] | None
    has_sizes: bool
    products: frozenset[Product] = frozenset({Product(None)})
    of_floats: frozenset[str] = frozenset()


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
    nodes = [node for node in _nodes(graph) if "conv" in node.op]
    convolutions = frozenset(each for node in nodes for each in _convolutions(node))
    operators = {node.op for node in _nodes(graph) if not node.regions}
    operators |= _joined_operators(graph)
    products = {each for node in _nodes(graph) for each in _products(node)}
    products |= {each for one in convolutions for each in _products_of(one)}
    return Needs(
        frozenset(operators),
        frozenset(dtypes),
        convolutions,
        bool(graph.sizes),
        frozenset(products),
        frozenset(operators - {node.op for node in _nodes(graph) if not _is_of_floats(node)}),
    )


def _joined_operators(graph: Graph) -> set[str]:
    """Return the operators that programs call for a convolution and a sum behind it."""
    results = {value for node in graph.nodes if node.op == "conv2d" for value in node.defines()}
    sums = [node for node in graph.nodes if node.op == "add"]
    has_shortcut = any(not results.isdisjoint(node.reads()) for node in sums)
    return {"conv2d_add_activation"} if has_shortcut else set()


def _is_of_floats(node: Node) -> bool:
    """Return whether a node reads and gives tensors of float32, or of float64, alone."""
    values = [value for value in (*node.reads(), *node.defines()) if isinstance(value, Value)]
    dtypes = {value.dtype.name if value.dtype else None for value in values}
    return len(dtypes) == 1 and dtypes <= set(_FLOATS)


def _products(node: Node) -> Iterator[Product]:
    """Yield the sizes of a node's matrix product."""
    if node.op not in KNOWN_PRODUCTS or "conv" in node.op:
        return
    shapes = [value.shape for value in node.reads() if isinstance(value, Value)]
    a, b = shapes[-2:] if node.op != "linear" else shapes[:2]
    known = [size for size in (*(a or ()), *(b or ())) if isinstance(size, int)]
    if a is None or b is None or not a or len(b) != 2 or len(known) != len(a) + 2:
        yield Product(None)
        return
    *rows, depth = known[:-2]
    if node.op == "linear":
        yield Product((math.prod(rows), known[-2], depth), turned=True)
        return
    for turned in (False, True):
        yield Product((math.prod(rows), known[-1], depth), turned)


def _products_of(convolution: Convolution) -> Iterator[Product]:
    """Yield the product of filters and patches of a convolution's images."""
    if convolution.sizes is None or not convolution.window:
        yield Product(None)
        return
    images, channels, filters, rows, columns, _ = convolution.sizes
    depth = channels * convolution.window**2
    yield Product((filters, rows * columns, depth))
    if rows * columns == 1:
        yield Product((images, filters, depth), turned=True)


def _convolutions(node: Node) -> Iterator[Convolution]:
    """Yield the sizes of a node's convolution; of one that is not forward, all that it may have."""
    values = [value for value in node.reads() if isinstance(value, Value)]
    shapes = [v.shape for v in (*values, *node.defines()) if v.shape and len(v.shape) == 4]
    if node.op in _CONVOLUTIONS and len(shapes) >= 3:
        (n, channels, *_), (filters, of_group, high, wide), *_, (*_, rows, columns) = shapes
        sizes = (n, channels, filters, of_group, high, wide, rows, columns)
        known = [size for size in sizes if isinstance(size, int)]
        if len(known) == len(sizes):
            n, channels, filters, of_group, high, wide, rows, columns = known
            groups = channels // of_group if of_group else 1
            each = (n, of_group, filters // max(groups, 1), rows, columns, groups)
            yield Convolution(high if high == wide else 0, each)
            return
    yield Convolution(0, None)
    for shape in shapes:
        if shape[2] == shape[3] and isinstance(shape[2], int):
            yield Convolution(shape[2], None)


def joined(all_needs: Sequence[Needs]) -> Needs:
    """Return what several graphs need together."""
    operators: set[str] = set()
    dtypes: set[str] = set()
    convolutions: set[Convolution] = set()
    for each in all_needs:
        operators |= each.operators or set()
        dtypes |= each.dtypes
        convolutions |= each.convolutions or set()
    has_sizes = any(each.has_sizes for each in all_needs)
    others = {name for each in all_needs for name in (each.operators or set()) - each.of_floats}
    return Needs(
        frozenset(operators),
        frozenset(dtypes),
        frozenset(convolutions),
        has_sizes,
        frozenset().union(*(each.products for each in all_needs)),
        frozenset(operators - others),
    )


def header(needs: Needs, operators: Iterable[str]) -> str:
    """Return the header of a build, which kernel/kernel.h includes.

    Args:
        needs: of the graph.
        operators: the names of all that the build has, with those that others call.
    """
    kinds = " | ".join(f"1u << {_KINDS[name]}" for name in sorted(needs.dtypes))
    conditions = "true"
    if needs.convolutions is not None:
        calls = [f"is({_literal(each)})" for each in needs.convolutions]
        conditions = " || ".join(sorted(calls)) or "false"
    return f"""#pragma once
namespace plait::core {{
{_selects(operators)}
constexpr bool selects(Kind k) {{ return k >= 0 && (({kinds}) >> k & 1); }}
template <class Condition>
constexpr bool any_convolution([[maybe_unused]] Condition is) {{
  return {conditions};
}}
constexpr bool kSelectsSettings = false;
}}  // namespace plait::core
"""


def _literal(convolution: Convolution) -> str:
    """Return a ``plait::core::ConvolutionSizes`` of C++."""
    known = convolution.sizes is not None
    numbers = (convolution.window, *(convolution.sizes or (0,) * 6))
    values = ", ".join(map(str, numbers))
    return f"ConvolutionSizes{{{values}, {_word(known)}}}"


def products_header(products: Iterable[Product]) -> str:
    """Return the header of a build, which linalg/product_sizes.h includes."""
    calls = []
    for each in products:
        known = each.sizes is not None
        m, n, k = each.sizes or (0, 0, 0)
        flags = f"{_word(each.turned)}, {_word(known)}"
        calls.append(f"is(ProductSizes{{{m}, {n}, {k}, {flags}}})")
    return f"""#pragma once
namespace plait::core {{
template <class Condition>
constexpr bool any_product([[maybe_unused]] Condition is) {{
  return {" || ".join(sorted(calls)) or "false"};
}}
}}  // namespace plait::core
"""


def _word(condition: bool) -> str:
    return "true" if condition else "false"


def register_code_header(needs: Needs, level: str) -> str:
    """Return the header of a build, which program/register_code.hpp includes.

    Args:
        needs: of the graph.
        level: the instructions of its kernels; ``"none"``: calls are not joined to register code.
    """
    selects = _selects(needs.operators or ())
    if needs.operators is None:
        selects = "constexpr bool selects(const char *) { return true; }"
    return f"""#pragma once
namespace plait::graph {{
{selects}
constexpr bool kSelectsFloats = {_word("float32" in needs.dtypes)};
constexpr bool kSelectsDoubles = {_word("float64" in needs.dtypes)};
constexpr bool kSelectsSizes = {_word(needs.has_sizes)};
constexpr bool kSelectsBase = {_word(level == "base")};
constexpr bool kSelectsAvx2 = {_word(level == "avx2")};
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
