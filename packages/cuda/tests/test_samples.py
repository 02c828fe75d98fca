"""Every operator that has a kernel of plait-cuda, on all its samples: as on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_cuda  # noqa: F401 - brings the device
from plait_abi import Probe, operator
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample
from plait_ops.spec import Operator

TOLERANCE = {
    "float16": 2e-3,
    "float32": 3e-5,
    "float64": 1e-11,
    "complex64": 3e-5,
    "complex128": 1e-11,
}


def has_kernel(name: str) -> bool:
    """Return whether plait-cuda brings a kernel of the operator."""
    try:
        with Probe(name, "plait_cuda", "cuda"):
            return True
    except ValueError:
        return False


OPERATORS = [spec for spec in specs.all() if has_kernel(spec.name)]
takes_operators = pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)


def arrays(sample: Sample) -> list[np.ndarray[Any, Any]]:
    result: list[Any] = []
    sample.mapped(result.append)
    return result


def main_sample(spec: Operator) -> Sample:
    """Return the first sample whose arrays are of float32 and have elements, else the first."""
    drawn = list(draw(spec))
    for sample in drawn:
        inputs = arrays(sample)
        kinds = {x.dtype.name for x in inputs if x.dtype.kind == "f"}
        if inputs and kinds == {"float32"} and all(x.size for x in inputs):
            return sample
    return drawn[0]


def to_device(x: np.ndarray[Any, Any]) -> Any:
    return pc.from_numpy(x).to("cuda")


def with_gaps(x: np.ndarray[Any, Any]) -> Any:
    """Return a tensor of the device in memory with gaps."""
    if not x.ndim:
        return to_device(x)
    wide = np.zeros([2 * n for n in x.shape], x.dtype)
    inside = tuple(slice(None, None, 2) for _ in x.shape)
    wide[inside] = x
    return to_device(wide)[inside]


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def call(spec: Operator, sample: Sample, device: str, place: Any) -> tuple[list[Any], list[Any]]:
    """Return the results, and the arguments as they are afterwards."""
    inside = sample.copied().mapped(place)
    kwargs = dict(inside.kwargs)
    if any(argument.name == "device" for argument in spec.schema.arguments):
        kwargs.setdefault("device", device)
    results = as_list(operator(spec.name)(*inside.args, **kwargs))
    after: list[Any] = []
    for value in (*inside.args, *inside.kwargs.values()):
        after += [x for x in as_list(value) if isinstance(x, pc.Tensor)]
    return results, after


def assert_same(spec: Operator, sample: Sample, got: list[Any], want: list[Any]) -> None:
    assert len(got) == len(want), sample
    one, other = [], []
    for x, y in zip(got, want, strict=True):
        if not isinstance(y, pc.Tensor):
            assert x == y, sample
            continue
        assert (x.dtype, tuple(x.shape)) == (y.dtype, tuple(y.shape)), sample
        wide = pc.float32 if y.dtype == pc.bfloat16 else y.dtype
        one.append(x.detach().cpu().to(wide).numpy())
        other.append(y.detach().to(wide).numpy())
    if spec.unpredictable or not other:
        return
    bfloat16 = any(isinstance(y, pc.Tensor) and y.dtype == pc.bfloat16 for y in want)
    compared = spec.determined if len(one) == len(spec.schema.results) else lambda *arrays: arrays
    for a, b in zip(compared(*one), compared(*other), strict=True):
        bound = 2e-2 if bfloat16 else TOLERANCE.get(b.dtype.name, 0.0)
        bound *= sample.tolerance
        np.testing.assert_allclose(a, b, rtol=bound, atol=bound, err_msg=str(sample))


def check(spec: Operator, sample: Sample, place: Any) -> None:
    want, after = call(spec, sample, "cpu", pc.from_numpy)
    got, changed = call(spec, sample, "cuda", place)
    assert_same(spec, sample, got, want)
    if any(argument.writes for argument in spec.schema.arguments):
        assert_same(spec, sample, changed, after)


@takes_operators
def test_samples(spec: Operator) -> None:
    for sample in draw(spec):
        check(spec, sample, to_device)


@takes_operators
def test_memory_with_gaps(spec: Operator) -> None:
    if spec.name != "as_strided":  # which counts elements of the memory
        check(spec, main_sample(spec), with_gaps)
