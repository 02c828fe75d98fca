"""The graphs of a recording: that of the call, and that of its derivative."""

from __future__ import annotations

import json
from typing import Any

import plait_core as pc
from plait_graph import _graph
from plait_graph._capture import Json, Recording
from plait_graph._compilers import new_program


class Part:
    """Nodes of a recording that can run: their graph, with its weights."""

    def __init__(
        self,
        recording: Recording,
        nodes: list[Json],
        inputs: list[str],
        outputs: list[str],
        numbers: list[Json],
        *,
        is_backward: bool = False,
    ) -> None:
        self.is_backward = is_backward
        used = names_in(nodes) | set(outputs)
        given = set(inputs)
        self.weights = [name for name in recording.outside if name in used and name not in given]
        self.graph: Json = {
            "plait_graph": 1,
            "inputs": [recording.types[name] for name in inputs],
            "weights": [recording.types[name] for name in self.weights],
            "numbers": numbers,
            "nodes": nodes,
            "outputs": ["%" + name for name in outputs],
        }
        self.program = new_program(json.dumps(self.graph))
        self.bind(recording.outside)

    def bind(self, tensors: dict[str, pc.Tensor]) -> None:
        """Set the weights."""
        self.program.bind([tensors[name] for name in self.weights])


def names_in(nodes: list[Json]) -> set[str]:
    """Return the names of values and numbers that nodes read or make."""
    result: set[str] = set()
    for node in nodes:
        _add_names(node["in"], result)
        _add_names(node["out"], result)
    return result


def names_defined(nodes: list[Json]) -> set[str]:
    """Return the names among the results of nodes."""
    result: set[str] = set()
    for node in nodes:
        _add_names(node["out"], result)
    return result


def names_changed(node: Json) -> set[str]:
    """Return the names of values that a node makes or writes to."""
    return names_defined([node]) | _graph.written_names(node["op"], node["in"])


def _add_names(value: Any, names: set[str]) -> None:
    if isinstance(value, str):
        names.add(value[1:])
    elif isinstance(value, list):
        for item in value:
            _add_names(item, names)


def sources_of(part: Part, names: list[str]) -> dict[str, set[str]]:
    """Return, for each value of a part, which of `names` it may be computed from.

    Values in the same memory count as one.
    """
    memories = dict(part.program.memories())
    place = {name: name if memories[name] < 0 else memories[name] for name in memories}
    result: dict[Any, set[str]] = {place[name]: {name} for name in names}
    for node in part.graph["nodes"]:
        read: set[str] = set()
        _add_names(node["in"], read)
        found = set().union(*(result.get(place.get(name), set()) for name in read))
        for name in names_changed(node) & place.keys():
            result[place[name]] = result.get(place[name], set()) | found
    return {name: result.get(at, set()) for name, at in place.items()}
