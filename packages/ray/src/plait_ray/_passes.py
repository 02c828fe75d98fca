"""Backward passes over processes.

The graph of a context is cut at its messages. A pass first asks, from the roots on, which messages
each part of the graph received something from; then it runs the parts, each when all parts that
used its message are done, so each once. Parts that are ready together run together: at once in
different processes, as one pass in the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import plait_autograd as pa
from plait_abi.components import require
from plait_ray import _contexts
from plait_ray._agent import agent
from plait_ray._contexts import Context, Name

_ROOTS = -1  # in place of a sender: the roots of a pass


def run(context_id: int, roots: Sequence[Any], retain_graph: bool) -> None:
    """Compute the gradients of the sum of the roots in all processes of the context."""
    here, context = agent("backward"), _contexts.known("backward", context_id)
    for root in roots:
        if root.numel() != 1 or not root.requires_grad:
            raise RuntimeError(
                "backward: `roots` must have one element each and require a gradient, got shape "
                f"{tuple(root.shape)}, requires_grad={root.requires_grad}"
            )
    if context.ended:
        raise RuntimeError(
            "backward: the graph of this context was freed by another backward pass; give it "
            "retain_graph=True"
        )
    first: Name = (_ROOTS, here.rank)
    ones = [require("core").ones_like(root) for root in roots]
    with context.lock:
        context.kept[first], context.waiting[first] = list(roots), ones
    uses = _discover(context_id, first)
    _run_in_order(context_id, first, uses)
    with context.lock:
        del context.kept[first]
    if not retain_graph:
        for rank in {rank for rank, _ in uses} | {here.rank}:
            here.call(here.peers[rank], _free, (context_id,), {}, 0).wait()


Part = tuple[int, Name]  # the process that runs a part, and the message that it sent from there


def _discover(context_id: int, first: Name) -> dict[Part, list[Part]]:
    """Return which parts each part received messages from."""
    here = agent("backward")
    start: Part = (here.rank, first)
    uses: dict[Part, list[Part]] = {}
    new = [start]
    while new:
        by_rank = _by_rank(new)
        calls = [
            (rank, names, here.call(here.peers[rank], _reached, (context_id, names), {}, 0))
            for rank, names in by_rank.items()
        ]
        for rank, names, call in calls:
            for name, parts in zip(names, call.wait(), strict=True):
                uses[rank, name] = [(message[0], message) for message in parts]
        reached = dict.fromkeys(part for parts in uses.values() for part in parts)
        new = [part for part in reached if part not in uses]
    return uses


def _by_rank(parts: Sequence[Part]) -> dict[int, list[Name]]:
    result: dict[int, list[Name]] = defaultdict(list)
    for rank, name in parts:
        result[rank].append(name)
    return result


def _run_in_order(context_id: int, first: Name, uses: dict[Part, list[Part]]) -> None:
    here = agent("backward")
    missing: dict[Part, int] = defaultdict(int)
    for parts in uses.values():
        for part in parts:
            missing[part] += 1
    ready: list[Part] = [(here.rank, first)]
    while ready:
        calls = [
            here.call(here.peers[rank], _evaluate, (context_id, names), {}, 0)
            for rank, names in _by_rank(sorted(ready)).items()
        ]
        for call in calls:
            call.wait()
        done, ready = ready, []
        for each in done:
            for part in uses[each]:
                missing[part] -= 1
                if missing[part] == 0:
                    ready.append(part)


# what each process does


def _walk(tensors: Sequence[Any]) -> tuple[list[Any], list[Name]]:
    """Return the nodes of leaves and the messages that tensors were computed from."""
    leaves, messages, visited = [], list[Name](), set()
    nodes = [pa.graph.get_gradient_edge(tensor).node for tensor in tensors]
    while nodes:
        node = nodes.pop()
        if node is None or node in visited:
            continue
        visited.add(node)
        message = getattr(node, "plait_message", None)
        if message is not None:
            messages.append(message)
        elif node.name() == "AccumulateGrad":
            leaves.append(node)
        else:
            nodes += [before for before, _ in node.next_functions]
    return leaves, messages


def _reached(context_id: int, names: Sequence[Name]) -> list[list[Name]]:
    context = _contexts.known("backward", context_id)
    return [sorted(_walk(context.kept[name])[1]) for name in names]


def _evaluate(context_id: int, names: Sequence[Name]) -> None:
    """Run the parts of this process that begin at the tensors of some messages that it sent."""
    context = _contexts.known("backward", context_id)
    outputs, gradients = [], []
    for name in names:
        parts = _fetched(context, name)
        for tensor, gradient in zip(context.kept[name], parts, strict=True):
            if gradient is not None:
                outputs.append(tensor)
                gradients.append(gradient)
    if not outputs:
        return
    leaves, messages = _walk(outputs)
    edges = [pa.graph.GradientEdge(leaf, 0) for leaf in leaves]
    for message in messages:
        edges += context.edges[message]
    if not edges:
        return
    results = list(pa.grad(outputs, edges, gradients, retain_graph=True, allow_unused=True))
    with context.lock:
        for leaf in leaves:
            context.gradients[leaf] = _sum(context.gradients.get(leaf), results.pop(0))
        for message in messages:
            n = len(context.edges[message])
            before = context.waiting.get(message, [None] * n)
            now, results = results[:n], results[n:]
            context.waiting[message] = [_sum(a, b) for a, b in zip(before, now, strict=True)]


def _sum(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _fetched(context: Context, name: Name) -> list[Any]:
    """Return the gradients of a message's tensors, which its receiver computed."""
    if name[0] == _ROOTS:
        return _take(context.number, name)
    here = agent("backward")
    receiver = here.peers[context.receivers[name]]
    parts: list[Any] = here.call(receiver, _take, (context.number, name), {}, 0).wait()
    return parts


def _take(context_id: int, name: Name) -> list[Any]:
    context = _contexts.known("backward", context_id)
    with context.lock:
        return context.waiting.pop(name)


def _free(context_id: int) -> None:
    """Drop what the graph is held by."""
    context = _contexts.known("backward", context_id)
    with context.lock:
        context.kept.clear()
        context.edges.clear()
        context.ended = True
