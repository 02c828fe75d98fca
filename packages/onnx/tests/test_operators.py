"""Operators, on samples: ONNX's reference implementation computes what plait does.

Each public operator is exported with one of its samples, but for those in refused_operators.txt,
which ONNX cannot express. PLAIT_LONG_ONNX=1: all operators and samples, and the refusals.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest

import plait_core as pc
import plait_onnx
from plait_abi import operator
from plait_autograd import no_grad
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample
from plait_ops.spec import Operator

IS_LONG = bool(os.environ.get("PLAIT_LONG_ONNX"))
HERE = Path(__file__).parent
REFUSED = frozenset((HERE / "refused_operators.txt").read_text("utf-8").split())
CHOSEN = [spec for spec in specs.all() if IS_LONG or not (spec.internal or spec.name in REFUSED)]


def flat(value: Any) -> list[Any]:
    if isinstance(value, pc.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in flat(item)]
    return []


def filled(value: Any, tensors: Iterator[Any]) -> Any:
    if isinstance(value, pc.Tensor):
        return next(tensors)
    if isinstance(value, (tuple, list)):
        return type(value)(filled(item, tensors) for item in value)
    return value


def copies(sample: Sample) -> tuple[Sample, list[Any]]:
    copy = sample.copied().mapped(pc.from_numpy)
    return copy, flat((*copy.args, *copy.kwargs.values()))


def is_exchanged(tensors: list[Any]) -> bool:
    """Return whether NumPy has the dtypes and ONNX computes with them."""
    return not any(t.dtype.name in ("bfloat16", "complex64", "complex128") for t in tensors)


def exported(spec: Operator, sample: Sample) -> Any:
    own, tensors = copies(sample)

    def function(*given: Any) -> Any:
        rest = iter(given)
        args = [filled(value, rest) for value in own.args]
        kwargs = {name: filled(value, rest) for name, value in own.kwargs.items()}
        return operator(spec.name)(*args, **kwargs)

    return plait_onnx.export(function, tuple(tensors)).to_proto()


def usable_samples(spec: Operator) -> Iterator[tuple[Sample, list[Any]]]:
    for sample in draw(spec):
        own, tensors = copies(sample)
        if not is_exchanged(tensors):
            continue
        results = flat(operator(spec.name)(*own.args, **own.kwargs))
        if results and is_exchanged(results):
            yield sample, results
            if not IS_LONG:
                return


def check(spec: Operator, sample: Sample, expected: list[Any], again: bool = False) -> None:
    model = exported(spec, sample)
    _, tensors = copies(sample)
    feed: dict[str, Any] = {
        entry.name: tensor for entry, tensor in zip(model.graph.input, tensors, strict=True)
    }
    if again:
        module = plait_onnx.load(model)
        names = [name for name in module.input_names if name in module._required]
        with no_grad():
            inputs = tuple(feed[name] for name in names)
            model = plait_onnx.export(module, inputs, input_names=names).to_proto()
    onnx.checker.check_model(model)
    read = {entry.name for entry in model.graph.input}
    feed = {name: tensor.numpy() for name, tensor in feed.items() if name in read}
    outputs = onnx.reference.ReferenceEvaluator(model).run(None, feed)
    for output, tensor in zip(outputs, expected, strict=True):
        array = tensor.detach().numpy()
        assert (np.shape(output), output.dtype) == (array.shape, array.dtype)
        if not spec.unpredictable:
            digits = {"float16": 2e-2, "float32": 1e-3}.get(str(array.dtype), 1e-5)
            np.testing.assert_allclose(output, array, rtol=digits, atol=digits / 10)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("spec", CHOSEN, ids=lambda spec: spec.name)
def test_a_sample(spec: Operator) -> None:
    for sample, expected in usable_samples(spec):
        if spec.name in REFUSED:
            with pytest.raises(NotImplementedError, match="export: "):
                exported(spec, sample)
        else:
            check(spec, sample, expected)


# kinds of nodes that a module of a file runs by reading elements, but not while it is recorded
AGAIN = ("cumprod", "diagonal", "index_put", "nms", "roi_align", "repeat_interleave.tensor")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "spec",
    [s for s in CHOSEN if s.name in AGAIN or (IS_LONG and s.name not in REFUSED)],
    ids=lambda spec: spec.name,
)
def test_a_file_is_exported_again(spec: Operator) -> None:
    for sample, expected in usable_samples(spec):
        check(spec, sample, expected, again=True)
        return


def test_most_operators_are_exported() -> None:
    names = {spec.name for spec in specs.all()}
    public = {spec.name for spec in specs.all() if not spec.internal}
    assert names >= REFUSED
    assert len(public - REFUSED) >= 0.8 * len(public)
