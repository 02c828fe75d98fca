"""Control flow: graphs that a node runs once, several times, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plait_core as pc
from plait_core import Tensor
from plait_graph import cond, while_loop
from plait_graph._capture import current_capture
from plait_onnx._import._program import as_tensor, host_value
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]
_MOST_ROUNDS = 1 << 62


def _truth(value: Any) -> bool:
    flat = value.reshape(-1)
    if flat.shape[0] != 1:
        raise ValueError(f"a condition must have one element, got shape {list(value.shape)}")
    return bool(flat[0])


def _records(value: Any) -> bool:
    """Return whether a value is known only when a graph that is recorded runs."""
    return isinstance(value, Tensor) and current_capture() is not None


def _tensors(values: Sequence[Any], what: str) -> list[Tensor]:
    found = [as_tensor(value) for value in values]
    if not all(isinstance(value, Tensor) for value in found):
        raise NotImplementedError(f"compile: {what} of sequences cannot be recorded")
    return found


@operator("If")
def _if(node: Node) -> Function:
    branches = node.graph("then_branch"), node.graph("else_branch")
    for branch in branches:
        if branch.input_count or branch.output_count != len(node.outputs):
            raise node.error(f"a branch must have no inputs and {len(node.outputs)} outputs")

    def run(captured: list[Any], condition: Any) -> Any:
        if not _records(condition):
            i = 0 if _truth(condition) else 1
            return tuple(branches[i].program.run((), captured[i]))
        outside = [*captured[0], *captured[1]]
        places = [i for i, value in enumerate(outside) if isinstance(value, Tensor)]
        middle = len(captured[0])

        def branch(k: int, part: slice) -> Function:
            def run_branch(*tensors: Tensor) -> Any:
                values = _replaced(outside, places, tensors)
                return tuple(_tensors(branches[k].program.run((), values[part]), "branches"))

            return run_branch

        functions = branch(0, slice(middle)), branch(1, slice(middle, None))
        operands = tuple(outside[i] for i in places)
        return tuple(cond(condition.reshape(()), *functions, operands))

    return run


def _replaced(values: list[Any], places: list[int], tensors: Sequence[Tensor]) -> list[Any]:
    """Return values of which those at some places are others."""
    found = list(values)
    for i, tensor in zip(places, tensors, strict=True):
        found[i] = tensor
    return found


def _loop_while(
    node: Node, body: Any, count: Any, going: Any, values: list[Any], captured: Any
) -> Any:
    """Record a loop as a part of a graph; it cannot have results of each round."""
    if body.output_count != 1 + len(values):
        raise NotImplementedError(
            f"compile: {node.where} has results of each of an unknown number of rounds, which "
            "cannot be recorded"
        )
    carried = _tensors(values, "a loop")
    start = pc.tensor(0)
    condition = pc.tensor(True) if going is None else as_tensor(going).reshape(())
    limit = pc.tensor(_MOST_ROUNDS) if count is None else as_tensor(count).reshape(()).to(pc.int64)

    def more(i: Tensor, condition: Tensor, limit: Tensor, *_: Tensor) -> Tensor:
        return (i < limit) & condition

    def once(i: Tensor, condition: Tensor, limit: Tensor, *values: Tensor) -> Any:
        results = body.program.run([i, condition, *values], captured)
        following, *rest = _tensors(results, "a loop")
        return (i + 1, following.reshape(()), limit, *rest)

    result = while_loop(more, once, (start, condition, limit, *carried))
    return tuple(result[3:])


@operator("Loop", host=(0,))
def _loop(node: Node) -> Function:
    body = node.graph("body")
    count_carried = max(len(node.inputs) - 2, 0)
    if body.input_count != count_carried + 2 or body.output_count < count_carried + 1:
        raise node.error(
            f"the body must have {count_carried + 2} inputs and {count_carried + 1} outputs or more"
        )

    def run(captured: list[Any], count: Any = None, going: Any = None, *values: Any) -> Any:
        carried = list(values)
        if _records(count) or (_records(going) and count is None):
            return _loop_while(node, body, count, going, carried, captured[0])
        rounds = None if count is None else int(host_value(count).reshape(-1)[0])
        stays = count is not None and going is None
        collected: list[list[Any]] = [[] for _ in range(body.output_count - 1 - count_carried)]
        condition: Any = np.array(True) if going is None else going
        i, size = 0, 0
        while (rounds is None or i < rounds) and (stays or _truth(condition)):
            condition, *results = body.program.run([np.array(i), condition, *carried], captured[0])
            if stays and type(condition) is not np.ndarray and not _constant_true(condition):
                stays = False
            carried = results[:count_carried]
            for part, value in zip(collected, results[count_carried:], strict=True):
                tensor = as_tensor(value)
                size += tensor.numel() * tensor.itemsize + 1024
                part.append(tensor)
            if size > node.limit:
                raise ValueError(f"results of {i + 1} rounds have more bytes than `limit`")
            i += 1
        return (*carried, *(_stacked(node, body, k, part) for k, part in enumerate(collected)))

    return run


def _constant_true(condition: Any) -> bool:
    return current_capture() is not None or _truth(condition)


def _stacked(node: Node, body: Any, k: int, parts: list[Tensor]) -> Tensor:
    return pc.stack(parts) if parts else pc.empty(0)


@operator("SequenceMap")
def _sequence_map(node: Node) -> Function:
    body = node.graph("body")

    def run(captured: list[Any], first: list[Any], *more: Any) -> Any:
        results = []
        for i, value in enumerate(first):
            others = [m[i] if type(m) is list else m for m in more]
            results.append(body.program.run([value, *others], captured[0]))
        return tuple([row[k] for row in results] for k in range(body.output_count))

    return run


# ---- scan ----------------------------------------------------------------------------------------


def _scan_axes(node: Node, name: str, count: int) -> list[int]:
    values = node.integers(name, None) or [0] * count
    if len(values) != count:
        raise node.error(f"{name} must have {count} numbers, got {len(values)}")
    return list(values)


@operator("Scan", 9)
def _scan(node: Node) -> Function:
    body, inputs = node.graph("body"), node.integer("num_scan_inputs")
    states = len(node.inputs) - inputs
    outputs = body.output_count - states
    if inputs < 1 or states < 0 or outputs < 0 or body.input_count != len(node.inputs):
        raise node.error("the body's inputs and outputs do not fit num_scan_inputs")
    in_axes, in_back = (_scan_axes(node, f"scan_input_{n}", inputs) for n in ("axes", "directions"))
    out_axes, out_back = (
        _scan_axes(node, f"scan_output_{n}", outputs) for n in ("axes", "directions")
    )

    def run(captured: list[Any], *values: Any) -> Any:
        carried = [as_tensor(v) for v in values[:states]]
        scanned = [as_tensor(v) for v in values[states:]]
        counts = {v.shape[a] for v, a in zip(scanned, in_axes, strict=True)}
        if len(counts) != 1:
            raise ValueError(f"sequences have different lengths: {sorted(counts)}")
        count = counts.pop()
        node.check_count(count)
        collected: list[list[Any]] = [[] for _ in range(outputs)]
        for i in range(count):
            parts = [
                v.select(a, count - 1 - i if back else i)
                for v, a, back in zip(scanned, in_axes, in_back, strict=True)
            ]
            results = body.program.run([*carried, *parts], captured[0])
            carried = results[:states]
            for k, value in enumerate(results[states:]):
                collected[k].append(as_tensor(value))
        whole = []
        for part, axis, back in zip(collected, out_axes, out_back, strict=True):
            part = part[::-1] if back else part
            whole.append(pc.stack(part, axis) if part else pc.empty(0))
        return (*carried, *whole)

    return run


@operator("Scan", 8)
def _scan_8(node: Node) -> Function:
    body, inputs = node.graph("body"), node.integer("num_scan_inputs")
    states = len(node.inputs) - 1 - inputs
    directions = _scan_axes(node, "directions", inputs)
    if inputs < 1 or states < 0 or body.input_count != states + inputs:
        raise node.error("the body's inputs do not fit num_scan_inputs")

    def one(captured: Any, state: list[Any], scanned: list[Tensor], count: int) -> list[Any]:
        collected: list[list[Any]] = [[] for _ in range(body.output_count - states)]
        for i in range(count):
            parts = [
                v[count - 1 - i if back else i] for v, back in zip(scanned, directions, strict=True)
            ]
            results = body.program.run([*state, *parts], captured)
            state = results[:states]
            for k, value in enumerate(results[states:]):
                collected[k].append(as_tensor(value))
        return [*state, *(pc.stack(part) if part else pc.empty(0) for part in collected)]

    def run(captured: list[Any], lengths: Any, *values: Any) -> Any:
        tensors = [as_tensor(v) for v in values]
        batch = tensors[0].shape[0]
        rows = []
        for i in range(batch):
            scanned = [v[i] for v in tensors[states:]]
            count = scanned[0].shape[0]
            if lengths is not None:
                count = min(count, int(host_value(lengths).reshape(-1)[i]))
            node.check_count(count)
            rows.append(one(captured[0], [v[i] for v in tensors[:states]], scanned, count))
        return tuple(
            pc.stack([as_tensor(row[k]) for row in rows]) for k in range(body.output_count)
        )

    return run
