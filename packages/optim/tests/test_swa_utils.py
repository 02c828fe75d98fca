"""Averages of lists of arrays, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_optim as optim
from plait_optim import swa_utils


def arrays(library: str) -> list[Any]:
    rng = np.random.default_rng(0)
    values = [rng.standard_normal((3, 4)), rng.standard_normal(5).astype(np.float32), np.array(2.0)]
    return values if library == "numpy" else [pc.from_numpy(v) for v in values]


def numbers(values: list[Any]) -> list[Any]:
    return [np.array(np.from_dlpack(v)) for v in values]


@pytest.mark.parametrize("library", ["numpy", "plait"])
@pytest.mark.parametrize("decay", [None, 0.0, 0.9, 1.0])
def test_averages_of_lists(library: str, decay: float | None) -> None:
    weights = arrays(library)
    step = None if decay is None else swa_utils.get_ema_multi_avg_fn(decay)
    average = swa_utils.AveragedModel(weights, multi_avg_fn=step)
    expected: list[Any] = []
    for t in range(4):
        for w in weights:
            w *= t + 1
        average.update_parameters(weights)
        now = numbers(weights)
        part = 1 / (t + 1) if decay is None else 1 - decay
        expected = [w + part * (n - w) for w, n in zip(expected, now, strict=True)] if t else now
        for own, want in zip(average.module, expected, strict=True):
            assert type(own) is type(weights[0])
            np.testing.assert_allclose(np.from_dlpack(own), want, rtol=1e-6)
    assert average.n_averaged == 4
    other = swa_utils.AveragedModel(arrays(library))
    other.load_state_dict(average.state_dict())
    assert other.n_averaged == 4
    for own, theirs in zip(other.module, average.module, strict=True):
        assert own is not theirs
        np.testing.assert_array_equal(np.from_dlpack(own), np.from_dlpack(theirs))


def test_an_average_stays_within_its_ends() -> None:
    # in float32 a + w * (v - a) with w = 1 need not be v
    a, v = np.array([1e8], np.float32), np.array([0.1], np.float32)
    swa_utils.get_ema_multi_avg_fn(0.0)([a], [v], 1)
    assert a[0] == v[0]


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(
            [np.ones(1)],
            avg_fn=swa_utils.get_swa_avg_fn(),
            multi_avg_fn=swa_utils.get_swa_multi_avg_fn(),
        )
    average = swa_utils.AveragedModel([np.ones(1)])
    with pytest.raises(ValueError, match="must have 1 parameters; got 2"):
        average.update_parameters([np.ones(1), np.ones(1)])
    with pytest.raises(KeyError, match="'n_averaged' is missing"):
        average.load_state_dict({})
    for make in (swa_utils.get_ema_avg_fn, swa_utils.get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match=r"Invalid decay value 1\.5"):
            make(1.5)
    optimizer = optim.SGD([np.ones(1)])
    with pytest.raises(ValueError, match="one of 'cos' or 'linear'"):
        swa_utils.SWALR(optimizer, 0.1, anneal_strategy="up")
    with pytest.raises(ValueError, match="equal or greater than 0, got -1"):
        swa_utils.SWALR(optimizer, 0.1, anneal_epochs=-1)
