"""Distributions: moments, Kolmogorov and Smirnov's distance, counts; streams of generators."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import binding

N = 100_000


def seeded(seed: int) -> Any:
    return pc.Generator().manual_seed(seed)


def distance(x: Any, cumulative: Callable[[Any], Any]) -> float:
    """The largest difference between the empirical and the given distribution function."""
    x = np.sort(np.asarray(x, np.float64))
    f = cumulative(x)
    steps = np.arange(len(x) + 1) / len(x)
    return float(max(np.abs(f - steps[1:]).max(), np.abs(f - steps[:-1]).max()))


BOUND = 1.95 / math.sqrt(N)  # exceeded by chance in one of a thousand seeds


def normal_cumulative(x: Any) -> Any:
    return 0.5 * np.vectorize(math.erfc)(-x / math.sqrt(2))


@pytest.mark.parametrize("dtype", [pc.float32, pc.float64])
@pytest.mark.parametrize(
    ("fill", "cumulative"),
    [
        (lambda x, g: x.uniform_(-1, 3, generator=g), lambda x: (x + 1) / 4),
        (lambda x, g: x.normal_(2, 3, generator=g), lambda x: normal_cumulative((x - 2) / 3)),
        (lambda x, g: x.exponential_(2.5, generator=g), lambda x: 1 - np.exp(-2.5 * x)),
        (lambda x, g: x.cauchy_(1, 2, generator=g), lambda x: 0.5 + np.arctan((x - 1) / 2) / np.pi),
        (
            lambda x, g: x.log_normal_(0.5, 0.75, generator=g),
            lambda x: normal_cumulative((np.log(x) - 0.5) / 0.75),
        ),
    ],
    ids=["uniform", "normal", "exponential", "cauchy", "log_normal"],
)
def test_distribution_functions(dtype: Any, fill: Any, cumulative: Any) -> None:
    x = fill(pc.empty(N, dtype=dtype), seeded(20)).numpy()
    assert np.isfinite(x).all()
    assert distance(x, cumulative) < BOUND
    strided = fill(pc.zeros(2000, 7, dtype=dtype)[:, ::3], seeded(21)).numpy().ravel()
    assert distance(strided, cumulative) < 1.95 / math.sqrt(strided.size)


def chi_square(counts: Any, probabilities: Any) -> float:
    want = counts.sum() * np.asarray(probabilities)
    return float((((counts - want) ** 2) / want).sum())


@pytest.mark.parametrize("dtype", [pc.float32, pc.int64, pc.uint8])
def test_geometric(dtype: Any) -> None:
    x = pc.empty(N, dtype=dtype).geometric_(0.3, generator=seeded(22)).numpy().astype(int)
    assert x.min() == 1
    counts = np.bincount(x)[1:16]
    k = np.arange(1, 16)
    assert np.abs(counts / N - 0.7 ** (k - 1) * 0.3).max() < 0.005


@pytest.mark.parametrize("rate", [0.3, 4.0, 9.9, 10.0, 35.0, 1000.0])
def test_poisson(rate: float) -> None:
    x = pc.poisson(pc.full((N,), rate), generator=seeded(23)).numpy().astype(np.float64)
    assert (x == np.floor(x)).all()
    assert abs(x.mean() - rate) < 5 * math.sqrt(rate / N)
    assert abs(x.var() / rate - 1) < 0.03
    low = max(0, int(rate - 2 * math.sqrt(rate)))
    k = np.arange(low, int(rate + 2 * math.sqrt(rate)) + 1)
    log_gamma = np.vectorize(math.lgamma)
    mass = np.exp(k * math.log(rate) - rate - log_gamma(k + 1.0))
    counts = np.array([(x == each).sum() for each in k]) / N
    assert np.abs(counts - mass).max() < 5 * math.sqrt(mass.max() / N)


@pytest.mark.parametrize(
    ("n", "p"), [(5, 0.4), (40, 0.1), (40, 0.9), (100, 0.5), (1000, 0.03), (10**6, 0.25)]
)
def test_binomial(n: int, p: float) -> None:
    trials, chance = pc.full((N,), float(n)), pc.full((N,), p)
    x = pc.binomial(trials, chance, generator=seeded(24)).numpy().astype(np.float64)
    assert (x == np.floor(x)).all()
    assert x.min() >= 0
    assert x.max() <= n
    deviation = math.sqrt(n * p * (1 - p))
    assert abs(x.mean() - n * p) < 5 * deviation / math.sqrt(N)
    assert abs(x.var() / deviation**2 - 1) < 0.03
    if n <= 100:
        k = np.arange(n + 1)
        mass = np.array([math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in k])
        counts = np.bincount(x.astype(int), minlength=n + 1) / N
        assert np.abs(counts - mass).max() < 5 * math.sqrt(mass.max() / N)


def test_binomial_corners() -> None:
    n = pc.tensor([0.0, 5.0, 5.0, -1.0, 5.0])
    p = pc.tensor([0.5, 0.0, 1.0, 0.5, 1.5])
    np.testing.assert_equal(pc.binomial(n, p).numpy(), [0, 0, 5, math.nan, math.nan])


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 2.5, 80.0])
def test_gamma(shape: float) -> None:
    draw = binding.operator("_standard_gamma")
    x = draw(pc.full((N,), shape, dtype=pc.float64), generator=seeded(25))
    cumulative = lambda at: pc.special.gammainc(shape, pc.from_numpy(at)).numpy()  # noqa: E731
    assert distance(x.numpy(), cumulative) < BOUND


def test_multinomial_counts() -> None:
    weights = pc.tensor([[1.0, 0.0, 3.0, 6.0], [5.0, 5.0, 0.0, 0.0]])
    drawn = pc.multinomial(weights, N, replacement=True, generator=seeded(26)).numpy()
    for row, w in zip(drawn, weights.numpy(), strict=True):
        share = np.bincount(row, minlength=4) / N
        assert (share[w == 0] == 0).all()
        assert np.abs(share - w / w.sum()).max() < 0.008


def test_multinomial_without_replacement() -> None:
    weights = pc.tensor([1.0, 2.0, 0.0, 7.0]).expand(20_000, 4)
    drawn = pc.multinomial(weights, 3, generator=seeded(27)).numpy()
    assert (np.sort(drawn, 1) == [0, 1, 3]).all()
    first = np.bincount(drawn[:, 0], minlength=4) / len(drawn)
    assert np.abs(first - [0.1, 0.2, 0, 0.7]).max() < 0.015
    # given that 3 came first, 0 and 1 follow as 1 to 2
    rest = drawn[drawn[:, 0] == 3][:, 1]
    assert abs((rest == 0).mean() - 1 / 3) < 0.02
    with pytest.raises(ValueError, match=r"num_samples.*weights above 0; got 4 and 3"):
        pc.multinomial(pc.tensor([1.0, 2.0, 0.0, 7.0]), 4)
    with pytest.raises(ValueError, match="above 0"):
        pc.multinomial(pc.zeros(3), 1)
    with pytest.raises(ValueError, match="finite"):
        pc.multinomial(pc.tensor([1.0, math.nan]), 1)


def test_random_fills_whole_ranges() -> None:
    x = pc.empty(N, dtype=pc.int8).random_(generator=seeded(28)).numpy()
    assert (x.min(), x.max()) == (0, 127)
    assert chi_square(np.bincount(x, minlength=128), np.full(128, 1 / 128)) < 200
    y = pc.empty(N).random_(-2, 5, generator=seeded(28)).numpy()
    assert set(np.unique(y)) == set(range(-2, 5))
    wide = pc.empty(1000, dtype=pc.int64).random_(0, None, generator=seeded(28)).numpy()
    assert wide.min() >= 0
    assert wide.max() > 2**62
    flags = pc.empty(N, dtype=pc.bool).random_(generator=seeded(28)).numpy()
    assert abs(flags.mean() - 0.5) < 0.01
    exact = pc.empty(1000, dtype=pc.float32).random_(generator=seeded(28)).numpy()
    assert 2**22 < exact.max() <= 2**24


def test_normal_of_tensors() -> None:
    mean = pc.tensor([[0.0], [100.0]]).expand(2, N)
    x = pc.normal(mean, pc.tensor([[1.0], [5.0]]), generator=seeded(29)).numpy()
    np.testing.assert_allclose(x.mean(1), [0, 100], atol=0.1)
    np.testing.assert_allclose(x.std(1), [1, 5], rtol=0.02)
    y = pc.normal(3.0, pc.full((N,), 2.0), generator=seeded(29)).numpy()
    assert abs(y.mean() - 3) < 0.03
    z = pc.normal(3.0, 2.0, (N,), generator=seeded(29), dtype=pc.float64)
    assert z.dtype is pc.float64
    assert abs(z.numpy().std() - 2) < 0.03


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16])
def test_halves(dtype: Any) -> None:
    x = pc.rand(N, dtype=dtype, generator=seeded(30)).to(pc.float32).numpy()
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(x.mean() - 0.5) < 0.006
    y = pc.randn(N, dtype=dtype, generator=seeded(30)).to(pc.float32).numpy()
    assert abs(y.std() - 1) < 0.01
    z = pc.empty(N, dtype=dtype).exponential_(generator=seeded(30)).to(pc.float32).numpy()
    assert abs(z.mean() - 1) < 0.02


@pytest.mark.parametrize("dtype", [pc.complex64, pc.complex128])
def test_complex(dtype: Any) -> None:
    z = pc.randn(N, dtype=dtype, generator=seeded(31)).numpy()
    assert abs((np.abs(z) ** 2).mean() - 1) < 0.02
    assert abs(z.real.var() - 0.5) < 0.01
    assert abs((z.real * z.imag).mean()) < 0.01
    u = pc.rand(N, dtype=dtype, generator=seeded(31)).numpy()
    assert u.real.min() >= 0
    assert u.imag.max() < 1
    assert abs(u.mean() - (0.5 + 0.5j)) < 0.01


def draws(g: Any) -> list[Any]:
    rates = pc.full((3001,), 12.0)
    result = [
        pc.empty(100_003).exponential_(generator=g),
        pc.empty(100_003).cauchy_(generator=g),
        pc.empty(100_003).log_normal_(generator=g),
        pc.empty(100_003, dtype=pc.int64).geometric_(0.2, generator=g),
        pc.empty(100_003, dtype=pc.int16).random_(generator=g),
        pc.poisson(rates, generator=g),
        pc.binomial(rates * 10, rates / 100, generator=g),
        pc.multinomial(pc.ones(50, 20), 7, generator=g),
        pc.normal(rates, rates, generator=g),
        pc.randint_like(rates, 9, generator=g),
    ]
    return [x.numpy() for x in result]


def test_the_stream_does_not_depend_on_threads(by_threads: Any) -> None:
    results = by_threads(lambda: draws(seeded(5)), (1, 2, 3, 8))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_generators_go_on_from_their_state() -> None:
    g = seeded(12)
    pc.rand(10, generator=g)
    copy, state = g.clone_state(), g.get_state()
    pickled = pickle.loads(pickle.dumps(g))
    first = draws(g)
    for other in (copy, pickled, pc.Generator().set_state(state)):
        assert other.initial_seed() == 12
        for a, b in zip(first, draws(other), strict=True):
            np.testing.assert_array_equal(a, b)
    assert g.device.type == "cpu"
    assert g.seed() == g.initial_seed() != 12


def test_probabilities_fill_by_broadcasting() -> None:
    p = pc.tensor([0.0, 0.25, 1.0])
    x = pc.zeros(N // 10, 3, dtype=pc.int64).bernoulli_(p, generator=seeded(32)).numpy()
    np.testing.assert_allclose(x.mean(0), [0, 0.25, 1], atol=0.02)
    y = pc.bernoulli(pc.zeros(N), 0.25, generator=seeded(32)).numpy()
    assert abs(y.mean() - 0.25) < 0.01
