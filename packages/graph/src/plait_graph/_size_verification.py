"""Graphs with free sizes, compared with the function at sizes that were not recorded."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import plait_autograd
import plait_core as pc
from plait_func.pytree import tree_flatten
from plait_graph import _graph
from plait_graph._capture import Json
from plait_graph._export_sizes import FreeRecording, moved_sizes
from plait_graph._resized_calls import restored
from plait_graph._size_expressions import holds

__all__ = ["verify"]

_UNSEEN = ((4, 3, 9), (0.75, 0.9, 0.55), (6, 4, 2), (0.6, 0.8, 0.9))  # sizes that are compared


def verify(
    free: FreeRecording, graph_of: Callable[[FreeRecording], Json], weights: Mapping[str, str]
) -> FreeRecording:
    """Compare results of the graph with those of the function at sizes that were not recorded, and
    at the least ones; return the recording with the ranges for which they are the same.

    Args:
        free: the recording.
        graph_of: gives its graph.
        weights: the names that the graph has for tensors of the recording.

    Raises:
        RuntimeError: if results differ.
    """
    base, dims = free.calls.base, free.calls.dims
    for factors in _UNSEEN:
        sizes = moved_sizes(base, free.steps, factors)
        if _is_in_range(free, sizes):
            problem = _difference(free, graph_of(free), weights, sizes)
            if problem is not None:
                raise RuntimeError(f"export: sizes cannot be free: at {sizes} {problem}")
            break
    for name, size in base.items():
        least = dims[name].min
        wanted = 1 if least is None else least
        wide = _with_least(free, name, wanted)
        sizes = {**base, name: wanted}
        if wanted >= min(2, size) or not free.template.admits(sizes, with_operators=False):
            problem = None if wanted >= min(2, size) else "its guards exclude it"
        else:
            problem = _difference(wide, graph_of(wide), weights, sizes)
        if problem is None:
            free = wide
        elif least is not None:
            raise RuntimeError(
                f"export: {name} cannot be {least}, the least value of its range: {problem}"
            )
    return free


def _with_least(free: FreeRecording, name: str, least: int) -> FreeRecording:
    """Return the recording with another least value of a size, for which it is compared next: what
    operators ask, such as whether a size is 1, may have another answer there.
    """
    ranges = {**free.sizes, name: dataclasses.replace(free.sizes[name], min=least)}
    sizes = {**free.calls.base, name: least}
    guards = [guard for guard in free.operator_guards if holds(guard, sizes)]
    return dataclasses.replace(free, sizes=ranges, operator_guards=guards)


def _is_in_range(free: FreeRecording, sizes: Mapping[str, int]) -> bool:
    fits = (free.sizes[name].min <= n <= free.sizes[name].max for name, n in sizes.items())
    return all(fits) and free.template.admits(sizes)


def _difference(
    free: FreeRecording, graph: Json, weights: Mapping[str, str], sizes: dict[str, int]
) -> str | None:
    """Return how the results of a graph differ from those of the function at sizes, or None."""
    recording, written = free.base
    tensors = {weights[name]: tensor for name, tensor in recording.outside.items()}
    with restored(*free.base):
        try:
            leaves = tree_flatten(free.calls.call(sizes))[0]
        except Exception as error:  # of the function, at sizes for which it is not written
            return f"the function raises: {error}"
        expected = [leaf.detach() for leaf in leaves if isinstance(leaf, pc.Tensor)]
        expected += [recording.outside[name].detach().clone() for name in written]
    with restored(*free.base), plait_autograd.no_grad():
        copies = {
            entry["name"]: tensors[entry["name"]].detach().clone().contiguous()
            for entry in graph["weights"]
        }
        given = [leaf for leaf in free.calls.leaves(sizes) if isinstance(leaf, pc.Tensor)]
        inputs = [recording.inputs.index(name) for name in dict.fromkeys(recording.inputs)]
        try:
            program = _graph.SizedProgram(json.dumps(graph))
            program.bind(list(copies.values()))
            got = program.run([given[i].detach().clone() for i in inputs])
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            return f"the graph does not run: {error}"
        got += [copies[weights[name]] for name in written]
        are_same = len(got) == len(expected) and all(map(_are_same, got, expected))
    return None if are_same else "the results are not those of the function"


def _are_same(a: Any, b: Any) -> bool:
    """Return whether two tensors have the same elements, where nan is nan."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())
