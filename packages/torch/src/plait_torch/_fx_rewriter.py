"""`torch.fx.replace_pattern`: replaces the parts of a graph that match a pattern.

torchao, brevitas and nncf use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from plait import nn
from plait_torch._fx_graph import Graph
from plait_torch._fx_module import GraphModule, _copy_attr, symbolic_trace
from plait_torch._fx_node import Node, nodes_in

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A replaced part: its last node, and its node for each node of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A `Match`, and the nodes that replace it."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(source: Any) -> Graph:
    if isinstance(source, Graph):
        return source
    return source.graph if isinstance(source, GraphModule) else symbolic_trace(source).graph


def _same(pattern: Any, value: Any, result: dict[Node, Any]) -> bool:
    """Return whether a value looks like a value of the pattern; put its nodes into `result`."""
    if isinstance(pattern, Node):
        if pattern in result:
            return result[pattern] is value
        if pattern.op == "placeholder":
            result[pattern] = value
            return True
        if not isinstance(value, Node) or (pattern.op, pattern.target) != (value.op, value.target):
            return False
        result[pattern] = value
        return _same(pattern.args, value.args, result) and _same(
            pattern.kwargs, value.kwargs, result
        )
    if isinstance(pattern, (tuple, list)):
        return (
            isinstance(value, (tuple, list))
            and len(pattern) == len(value)
            and all(_same(p, v, result) for p, v in zip(pattern, value, strict=True))
        )
    if isinstance(pattern, dict):
        return (
            isinstance(value, dict)
            and pattern.keys() == value.keys()
            and all(_same(p, value[key], result) for key, p in pattern.items())
        )
    return type(pattern) is type(value) and bool(pattern == value)


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Any, replacement: Any, match_filters: Any = None, **options: Any
) -> list[ReplacedPatterns]:
    """Replace the parts of a graph that look like `pattern` and that all filters accept; see
    `replace_pattern`. Filters are called with the match, the graph and the pattern's graph.
    """
    required, new = _graph_of(pattern), _graph_of(replacement)
    results = list(nodes_in(required.output_node().args))
    inputs = required.find_nodes(op="placeholder")
    output: list[ReplacedPatterns] = []
    used: set[Node] = set()
    now: dict[Node, Node] = {}  # nodes that earlier replacements put in the place of others
    if len(results) != 1:
        raise NotImplementedError("replace_pattern: a pattern with one result is required")
    for node in list(gm.graph.nodes):
        entries: dict[Node, Any] = {}
        if node._erased or not _same(results[0], node, entries):
            continue
        inner = {v for p, v in entries.items() if p.op != "placeholder"}
        hidden = inner - {node}
        if inner & used or any(user not in inner for each in hidden for user in each.users):
            continue
        match = Match(node, entries)
        if not all(accept(match, gm.graph, required) for accept in match_filters or ()):
            continue
        used |= inner
        values: dict[Node, Any] = dict(
            zip(new.find_nodes(op="placeholder"),
                [now.get(entries[each], entries[each]) if isinstance(entries.get(each), Node)
                 else entries.get(each) for each in inputs], strict=True)
        )  # fmt: skip
        before = set(gm.graph.nodes)
        with gm.graph.inserting_before(node):
            result = gm.graph.graph_copy(new, values)
        node.replace_all_uses_with(result)
        now[node] = result
        for each in reversed(list(gm.graph.nodes)):
            if each in inner and not each.users:
                gm.graph.erase_node(each)
        added = [each for each in gm.graph.nodes if each not in before]
        output.append(ReplacedPatterns(node, entries, added))
    source = replacement if isinstance(replacement, nn.Module) else None
    if source is not None:
        for each in gm.graph.nodes:
            if each.op in ("get_attr", "call_module") and not _holds(gm, each.target):
                _copy_attr(source, gm, each.target)
    gm.recompile()
    return output


def _holds(module: Any, path: str) -> bool:
    for atom in path.split("."):
        if not hasattr(module, atom):
            return False
        module = getattr(module, atom)
    return True


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace all parts of a graph that look like `pattern` by `replacement`, in place.

    A part looks like the pattern if its operations and constants are equal and nothing else uses
    its inner values. Arguments of the pattern stand for any value. Parts do not overlap.

    Args:
        gm: the module that is changed.
        pattern: a function, a module or a graph, with one result.
        replacement: the same, with as many arguments.

    Example:
        >>> import plait
        >>> from plait_torch._fx_module import symbolic_trace
        >>> from plait_torch._fx_rewriter import replace_pattern
        >>> traced = symbolic_trace(lambda x: plait.relu(x + 1))
        >>> len(replace_pattern(traced, lambda a: plait.relu(a), lambda a: plait.neg(a)))
        1
        >>> traced(plait.ones(1))
        tensor([-2.])
    """
    return [Match(m.anchor, m.nodes_map)
            for m in replace_pattern_with_filters(gm, pattern, replacement)]  # fmt: skip
