"""Powers and cosines whose bits do not depend on the processor."""

from __future__ import annotations

import math

import numpy as np
import pytest

import plait_optim
from plait_optim._powers import cosine, power


@pytest.mark.parametrize("base", [1e-3, 0.5, 0.96, 0.999, 1.0, 1.7, 20.0])
@pytest.mark.parametrize("exponent", [-3.5, -1, 0, 0.004, 0.5, 1, 2, 12.3, 100])
def test_powers_are_the_nearest_floats(base: float, exponent: float) -> None:
    expected = base**exponent
    assert abs(power(base, exponent) - expected) <= math.ulp(expected)


def test_powers_of_zero_and_of_negative_numbers() -> None:
    assert power(0, 2) == 0
    assert power(0, 0) == 1
    assert power(-2, 3) == -8
    assert power(10, 400) == math.inf
    with pytest.raises(ZeroDivisionError):
        power(0, -1)


def test_cosines_are_the_nearest_floats() -> None:
    for x in np.random.default_rng(0).uniform(-50, 50, 200):
        assert abs(cosine(x) - math.cos(x)) <= math.ulp(math.cos(x))
    assert [cosine(x) for x in (0.0, math.pi, math.pi / 2)] == [1, -1, 6.123233995736766e-17]


def test_bits() -> None:
    assert power(0.96, 0.004).hex() == "0x1.ffea9969757dbp-1"
    assert cosine(1.0).hex() == "0x1.14a280fb5068cp-1"


def test_rates_of_a_long_cycle_of_warm_restarts() -> None:
    optimizer = plait_optim.SGD([np.zeros(1)], lr=1.0)
    schedule = plait_optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, 2)
    for epoch, start, period in ((2.5, 0, 3), (3, 3, 6), (8.5, 3, 6), (9, 9, 12), (93, 93, 96)):
        schedule.step(epoch)
        expected = (1 + math.cos(math.pi * (epoch - start) / period)) / 2
        assert schedule.get_last_lr() == pytest.approx([expected])


def test_nadam_uses_the_powers_of_its_definition() -> None:
    p = np.array([1.0, 2.0])
    optimizer = plait_optim.NAdam([p], lr=0.1, momentum_decay=3.0)
    x, m, v, product = p.copy(), 0.0, 0.0, 1.0
    for t in range(1, 40):
        g = np.array([t % 5 - 2.0, 3.0])
        optimizer.step(grads=[g])
        mu, after = (0.9 * (1 - 0.5 * 0.96 ** (k * 3.0)) for k in (t, t + 1))
        product *= mu
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        update = (1 - mu) * g / (1 - product) + after * m / (1 - product * after)
        x = x - 0.1 * update / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(p, x, rtol=1e-13)
