"""Every operator with a kernel on its samples: values, layouts, `out=`, the in-place form."""

from __future__ import annotations

import pytest

import plait_abi
import plait_core  # noqa: F401 - brings the operators
import plait_cuda  # noqa: F401 - brings the device
from plait_conformance._cases import Case
from plait_conformance._checks import (
    check_inplace,
    check_layouts,
    check_out,
    check_unpredictable,
    check_values,
)
from plait_conformance._device import Device
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.spec import Operator

PROVIDER = "plait_cuda"


def has_kernel(operator: Operator) -> bool:
    try:
        plait_abi.Probe(operator.name, PROVIDER, "cuda").close()
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "operator", [each for each in specs.all() if has_kernel(each)], ids=lambda each: each.name
)
def test_samples(operator: Operator) -> None:
    device = Device("cuda")
    with plait_abi.Probe(operator.name, PROVIDER, "cuda") as probe:
        for number, sample in enumerate(draw(operator)):
            case = Case(operator, number, sample)
            if operator.unpredictable:
                check_unpredictable(case, device)
                continue
            check_values(case, device)
            check_layouts(case, device)
            check_out(case, device)
            check_inplace(case, device)
    assert probe.counts.accepted, "the kernel served none of the samples"
    assert not probe.counts.untouched, "the kernel left results as they were"
