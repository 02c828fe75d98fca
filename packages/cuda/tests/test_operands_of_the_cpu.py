"""0-d tensors of the CPU among tensors of the device, in every operator that takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_samples import as_list, to_device

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample
from plait_ops.spec import Operator

OPERATORS = [spec for spec in specs.all() if sum(a.is_tensor for a in spec.schema.arguments) > 1]


def first_element(x: np.ndarray[Any, Any]) -> Any:
    return pc.from_numpy(np.array(x.ravel()[0]))


def arrays(sample: Sample) -> list[np.ndarray[Any, Any]]:
    result: list[Any] = []
    sample.mapped(result.append)
    return result


def call(spec: Operator, sample: Sample, which: int, number: Any, others: Any) -> list[Any]:
    """Call with array `which` as the tensor `number(array)`, and with `others` of the others."""
    places = iter(range(100))
    inside = sample.copied().mapped(lambda x: (number if next(places) == which else others)(x))
    return as_list(operator(spec.name)(*inside.args, **inside.kwargs))


def samples_with_a_number(spec: Operator) -> list[tuple[Sample, int]]:
    """Return the first sample for each array that may be 0-d beside others that are not."""
    result: dict[int, Sample] = {}
    for sample in draw(spec):
        inputs = arrays(sample)
        for which, x in enumerate(inputs):
            others = inputs[:which] + inputs[which + 1 :]
            if which in result or not x.size or not any(other.ndim for other in others):
                continue
            try:
                call(spec, sample, which, first_element, pc.from_numpy)
            except (ValueError, TypeError, IndexError, RuntimeError):
                continue  # it needs dimensions
            result[which] = sample
    return [(sample, which) for which, sample in result.items()]


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_a_number(spec: Operator) -> None:
    for sample, which in samples_with_a_number(spec):
        want = call(spec, sample, which, lambda x: first_element(x).to("cuda"), to_device)
        try:
            got = call(spec, sample, which, first_element, to_device)
        except ValueError as error:
            assert "must be on one device" in str(error)
            continue
        for one, other in zip(got, want, strict=True):
            if isinstance(other, pc.Tensor):
                is_view = any(each.alias for each in spec.schema.results)
                assert one.device == other.device or is_view or spec.internal, sample
                if not spec.unpredictable:
                    assert pc.allclose(one.cpu(), other.cpu(), equal_nan=True), sample


def test_gradients_reach_a_number() -> None:
    x = pc.arange(6.0).to("cuda")
    real, part = pc.tensor(2.0, requires_grad=True), pc.tensor(0.25, requires_grad=True)
    pc.complex(real, x).real.sum().backward()
    pc.quantile(x, part).backward()
    assert (real.grad.device.type, real.grad.item()) == ("cpu", 6.0)
    assert (part.grad.device.type, part.grad.item()) == ("cpu", 5.0)
