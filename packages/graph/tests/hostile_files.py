"""Safetensors files with graphs that nobody checked."""

from __future__ import annotations

import json
from typing import Any

BYTES = b"\0\0\x80?" * 3  # three times 1.0

GRAPH: dict[str, Any] = {
    "plait_graph": 1,
    "inputs": [{"name": "x", "dtype": "float32", "shape": [2, 3]}],
    "weights": [{"name": "w", "dtype": "float32", "shape": [3]}],
    "numbers": [{"name": "n", "value": 1.5}],
    "nodes": [
        {"op": "mul", "in": ["%x", "%w"], "out": ["%a"]},
        {"op": "add", "in": ["%a", "%n", 1], "out": ["%b"]},
        {"op": "cat", "in": [["%a", "%b"], 0], "out": ["%c"]},
        {"op": "split", "in": ["%c", 2, 0], "out": [["%d", "%e"]]},
        {"op": "view", "in": ["%d", [3, 2]], "out": ["%f"]},
        {"op": "relu", "form": "inplace", "in": ["%f"], "out": ["%f"]},
        {"op": "mm", "in": ["%f", "%e"], "out": ["%y"]},
        {"op": "zeros", "in": [[4], {"dtype": "int64"}, {"device": "cpu"}], "out": ["%z"]},
        {"op": "clone", "in": ["%y", {"string": "preserve_format"}], "out": ["%v"]},
    ],
    "outputs": ["%v", "%z"],
}
ENTRY = {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}


def file_of(text: str | bytes, data: bytes = BYTES, length: int | None = None) -> bytes:
    """Return a file with the text as its header."""
    header = text.encode() if isinstance(text, str) else text
    return (len(header) if length is None else length).to_bytes(8, "little") + header + data


def file_with(entries: Any, data: bytes = BYTES, graph: Any = GRAPH) -> bytes:
    """Return a file with a graph and the entries of tensors."""
    text = graph if isinstance(graph, str) else json.dumps(graph)
    return file_of(json.dumps({"__metadata__": {"plait_graph": text}, **entries}), data)


def file_with_graph(graph: Any) -> bytes:
    """Return a file whose weight is sound."""
    return file_with({"w": ENTRY}, graph=graph)


SOUND = file_with({"w": ENTRY})


def chain(count: int, last: str = "relu") -> dict[str, Any]:
    """Return a graph of that many nodes, each of the one before."""
    nodes = [{"op": "relu", "in": [f"%v{i}"], "out": [f"%v{i + 1}"]} for i in range(count)]
    nodes[-1]["op"] = last
    inputs = [{"name": "v0", "dtype": "float32", "shape": [4]}]
    return GRAPH | {"inputs": inputs, "nodes": nodes, "outputs": [f"%v{count}"]}
