"""Random numbers: the published generator, its stream, its distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import plait_core as pc

MASK = 0xFFFFFFFF


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x32-10 as published (Salmon et al. 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & MASK, (p >> 32) ^ c[3] ^ k[1], p & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def seeded(seed: int) -> Any:
    return pc.Generator().manual_seed(seed)


def test_the_reference_gives_the_published_vectors() -> None:
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox([MASK] * 4, [MASK] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize("seed", [0, 1, 0x123456789ABCDEF])
def test_uniform_numbers_are_philox_words(seed: int) -> None:
    got = pc.rand(1000, generator=seeded(seed)).numpy()
    key = [seed & MASK, seed >> 32]
    words = [word for block in range(250) for word in philox([block, 0, 0, 0], key)]
    want = np.array([word >> 8 for word in words], np.float64) * 2.0**-24
    np.testing.assert_array_equal(got, want.astype(np.float32))


def test_the_stream_does_not_depend_on_threads(by_threads: Any) -> None:
    def draws() -> list[Any]:
        g = seeded(5)
        return [
            pc.rand(100_003, generator=g).numpy(),
            pc.randn(100_003, generator=g).numpy(),
            pc.randint(0, 1000, (100_003,), generator=g).numpy(),
            pc.randperm(1000, generator=g).numpy(),
        ]

    results = by_threads(draws, (1, 2, 7))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_calls_go_on_where_the_last_one_ended() -> None:
    g = seeded(11)
    first, second = pc.rand(1000, generator=g), pc.rand(1000, generator=g)
    assert not np.array_equal(first.numpy(), second.numpy())
    g.manual_seed(11)
    np.testing.assert_array_equal(first.numpy(), pc.rand(1000, generator=g).numpy())
    state = g.get_state()
    third = pc.randn(10, generator=g)
    g.set_state(state)
    np.testing.assert_array_equal(third.numpy(), pc.randn(10, generator=g).numpy())


def test_the_default_generator_is_seeded() -> None:
    pc.manual_seed(3)
    a = pc.rand(5)
    pc.manual_seed(3)
    np.testing.assert_array_equal(a.numpy(), pc.rand(5).numpy())


@pytest.mark.parametrize("dtype", [pc.float32, pc.float64])
def test_uniform_moments(dtype: Any) -> None:
    x = pc.rand(200_000, dtype=dtype, generator=seeded(1)).numpy()
    assert 0 <= x.min() < 1e-4
    assert 1 - 1e-4 < x.max() < 1
    assert abs(x.mean() - 0.5) < 0.003
    assert abs(x.var() - 1 / 12) < 0.001
    counts = np.histogram(x, 20, (0, 1))[0]
    assert np.abs(counts - 10_000).max() < 500


@pytest.mark.parametrize("dtype", [pc.float32, pc.float64])
def test_normal_moments(dtype: Any) -> None:
    x = pc.randn(400_000, dtype=dtype, generator=seeded(2)).numpy().astype(np.float64)
    assert np.isfinite(x).all()
    assert abs(x.mean()) < 0.006
    assert abs(x.var() - 1) < 0.01
    assert abs((x**3).mean()) < 0.03
    assert abs((x**4).mean() - 3) < 0.08
    for limit in (0.5, 1.0, 2.0, 3.0):
        share = math.erf(limit / math.sqrt(2))
        assert abs((np.abs(x) < limit).mean() - share) < 0.004
    halves = x.reshape(-1, 2)
    assert abs((halves[:, 0] * halves[:, 1]).mean()) < 0.01


def test_parameters_of_in_place_forms() -> None:
    x = pc.empty(50_000).uniform_(-3, 5, generator=seeded(4)).numpy()
    assert x.min() >= -3
    assert x.max() <= 5
    assert abs(x.mean() - 1) < 0.05
    y = pc.empty(50_000).normal_(10, 0.5, generator=seeded(4)).numpy()
    assert abs(y.mean() - 10) < 0.02
    assert abs(y.std() - 0.5) < 0.02
    strided = pc.zeros(100, 20)[:, ::2].normal_(generator=seeded(4))
    assert (strided.numpy() != 0).all()


def test_bernoulli_and_dropout() -> None:
    x = pc.empty(100_000).bernoulli_(0.3, generator=seeded(6)).numpy()
    assert set(np.unique(x)) == {0.0, 1.0}
    assert abs(x.mean() - 0.3) < 0.01
    p = pc.from_numpy(np.linspace(0, 1, 100_000).astype(np.float32))
    drawn = pc.bernoulli(p, generator=seeded(6)).numpy()
    assert abs(drawn[:10_000].mean() - 0.05) < 0.01
    assert abs(drawn[-10_000:].mean() - 0.95) < 0.01
    result, reference = pc.native_dropout(pc.ones(100_000), 0.25, generator=seeded(7))
    np.testing.assert_allclose(result.numpy(), reference.numpy() / 0.75, rtol=1e-6)
    assert abs(reference.numpy().mean() - 0.75) < 0.01


def test_integers() -> None:
    x = pc.randint(-5, 5, (100_000,), generator=seeded(8)).numpy()
    assert set(np.unique(x)) == set(range(-5, 5))
    assert np.abs(np.bincount(x + 5) - 10_000).max() < 600
    wide = pc.randint(-(2**63), 2**63 - 1, (1000,), generator=seeded(8)).numpy()
    assert (wide < 0).any()
    assert (wide > 0).any()


def test_permutations() -> None:
    x = pc.randperm(10_000, generator=seeded(9)).numpy()
    np.testing.assert_array_equal(np.sort(x), np.arange(10_000))
    assert not np.array_equal(x, np.arange(10_000))
    firsts = [int(pc.randperm(4, generator=seeded(i))[0]) for i in range(4000)]
    assert np.abs(np.bincount(firsts) - 1000).max() < 150
