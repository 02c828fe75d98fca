"""Every operator, on some of its samples, with calls that wait: the bits of eager calls."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc
import plait_optim  # noqa: F401 - brings operators
from plait_abi import operator
from plait_graph import compile
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample
from plait_ops.spec import Operator

sys.path.insert(0, str(Path(__file__).parent))

from test_operators import flat, same_bits

SAMPLES = 5
CALLS = 3  # recorded, deferred one by one, deferred as a program


def own(sample: Sample) -> Sample:
    """Return a copy whose tensors have memory that is not NumPy's."""
    return sample.copied().mapped(lambda array: pc.from_numpy(array).clone())


def check(spec: Operator, sample: Sample) -> None:
    function = operator(spec.name)

    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result, [t + 0 for t in flat(result) if t.dtype == pc.float32]

    first = own(sample)
    pc.manual_seed(7)
    expected = flat(call(*first.args, **first.kwargs))
    expected += flat((*first.args, *first.kwargs.values()))
    state = pc.get_rng_state()
    compiled = compile(call)
    for _ in range(CALLS):
        again = own(sample)
        pc.manual_seed(7)
        got = flat(compiled(*again.args, **again.kwargs))
        if spec.unpredictable:
            continue
        got += flat((*again.args, *again.kwargs.values()))
        assert pc.get_rng_state() == state
        for x, y in zip(got, expected, strict=True):
            assert same_bits(x.clone(), y.clone()), sample
            assert x._version == y._version, sample
            assert x._is_view() == y._is_view(), sample


@pytest.mark.parametrize("spec", list(specs.all()), ids=lambda spec: spec.name)
def test_samples(spec: Operator) -> None:
    for sample in itertools.islice(draw(spec), SAMPLES):
        check(spec, sample)
