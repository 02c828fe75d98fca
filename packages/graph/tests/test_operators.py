"""Every operator, on all its samples: a program computes the bits of the calls in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import plait_core as pc
import plait_optim  # noqa: F401 - brings operators
from plait_abi import operator
from plait_graph import _graph
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample
from plait_ops.spec import Operator

takes_operators = pytest.mark.parametrize("spec", list(specs.all()), ids=lambda spec: spec.name)


def flat(value: Any) -> list[Any]:
    if isinstance(value, pc.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in flat(item)]
    return []


def description(name: str, t: Any) -> dict[str, Any]:
    return {
        "name": name,
        "dtype": str(t.dtype).rpartition(".")[2],
        "shape": list(t.shape),
        "strides": list(t.stride()),
        "device": str(t.device),
    }


def recorded(call: Any, inputs: list[Any]) -> tuple[Any, str, list[Any]]:
    """Call a function; return its results, the text of the graph of them, and its weights."""
    capture = _graph.Capture()
    names = [capture.name_of(t) for t in inputs]
    capture.start()
    try:
        results = call()
    finally:
        capture.stop()
    outputs = ["%" + capture.name_of(t) for t in flat(results)]
    assert capture.problem == ""
    outside = [(name, t) for name, t, _ in capture.outside if name not in names]
    unique = dict(zip(names, inputs, strict=True))
    graph = {
        "plait_graph": 1,
        "inputs": [description(name, t) for name, t in unique.items()],
        "weights": [description(name, t) for name, t in outside],
        "nodes": json.loads(capture.nodes),
        "outputs": outputs,
    }
    return results, json.dumps(graph), [t for _, t in outside]


def same_bits(x: Any, y: Any) -> bool:
    if (x.dtype, tuple(x.shape)) != (y.dtype, tuple(y.shape)):
        return False
    if x.numel() and x.stride() != y.stride():
        return False
    if x.dtype == pc.bfloat16:
        x, y = x.view(pc.int16), y.view(pc.int16)
    return x.detach().numpy().tobytes() == y.detach().numpy().tobytes()


def check(spec: Operator, sample: Sample) -> None:
    first, second, third = (sample.copied().mapped(pc.from_numpy) for _ in range(3))
    inputs = [flat((*each.args, *each.kwargs.values())) for each in (first, second, third)]
    function = operator(spec.name)
    pc.manual_seed(7)
    results, text, weights = recorded(lambda: function(*first.args, **first.kwargs), inputs[0])
    program = _graph.Program(text)
    program.bind(weights)
    distinct = list({id(t): t for t in inputs[1]}.values())
    for arguments in (inputs[1], inputs[2]):
        pc.manual_seed(7)
        outputs = program.run(arguments[: len(distinct)])
        if spec.unpredictable:
            continue
        for x, y in zip(outputs, flat(results), strict=True):
            assert same_bits(x, y), (sample, json.loads(text)["nodes"])
        for x, y in zip(arguments, inputs[0], strict=True):
            assert same_bits(x, y), (sample, "argument")


@takes_operators
def test_samples(spec: Operator) -> None:
    for sample in draw(spec):
        check(spec, sample)
