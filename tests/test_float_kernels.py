"""A bundle leaves out decompositions of operators whose kernels serve all floating-point numbers.

The sources say which kernels these are (PLAIT_FLOAT_KERNEL, and loops of pointwise operators).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_graph._bundle_sources import Library, served
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.spec import Operator, Pointwise
from plait_profiler import profile


def decomposable() -> list[Operator]:
    """Return the operators that could be decomposed, and whose kernels serve all floats."""
    kernels = Library("plait_core", "plait_cpu_base")
    all_specs = [
        each
        for each in specs.all()
        if each.decompose_function is not None
        and (each.shape_function is not None or isinstance(each, Pointwise))
    ]
    names = served({each.name for each in all_specs}, kernels)
    return [each for each in all_specs if each.name in names]


OPERATORS = decomposable()


def dtypes(value: Any) -> Iterator[str]:
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from dtypes(each)
    elif isinstance(value, (np.ndarray, np.generic)):
        yield value.dtype.name


def calls(spec: Operator) -> list[Any]:
    """Return the samples whose arrays are all float32 or all float64."""
    samples = []
    for sample in draw(spec):
        found = set(dtypes([*sample.args, *sample.kwargs.values()]))
        if found in ({"float32"}, {"float64"}):
            samples.append(sample.mapped(pc.from_numpy))
    return samples


def test_what_is_swept() -> None:
    names = {each.name for each in OPERATORS}
    assert {"linear", "addmm", "conv2d_activation", "native_max_pool2d", "relu"} <= names


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_no_call_of_floats_is_decomposed(spec: Operator) -> None:
    samples = calls(spec)
    call = operator(spec.name)
    with warnings.catch_warnings(), profile() as prof:
        warnings.simplefilter("ignore")
        for sample in samples:
            call(*sample.args, **sample.kwargs)
    events = [each for each in prof.events() if each.name == spec.name]
    assert len(events) == len(samples)
    inner = {child.name for each in events for child in each.cpu_children}
    assert not inner, f"{spec.name} called {sorted(inner)}"
