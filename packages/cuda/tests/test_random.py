"""Random numbers on the device are those of the CPU, from the same position of the stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from on_both import assert_same, wait_for

import plait_core as pc
from plait_abi import operator

LENGTHS = [0, 1, 3, 31, 33, 64, 127, 129, 1000]
FLOATING = ["float16", "bfloat16", "float32", "float64"]


def drawn(call: Callable[[str], Any], device: str) -> tuple[Any, list[float]]:
    """Return what a call draws from a position, and what comes behind it."""
    pc.manual_seed(11)
    pc.rand(5, device=device)
    result = call(device)
    return result, pc.rand(3, device=device).tolist()


def same(call: Callable[[str], Any], tolerance: float | None = None) -> None:
    """Compare two calls from the same position, and the positions behind them."""
    want, behind = drawn(call, "cpu")
    got, behind_it = drawn(call, "cuda")
    assert_same(got, want, tolerance)
    assert behind_it == behind


def empty(n: int, dtype: str, device: str) -> Any:
    return pc.empty(n, dtype=getattr(pc, dtype), device=device)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("n", LENGTHS)
def test_numbers(n: int, dtype: str) -> None:
    same(lambda d: empty(n, dtype, d).uniform_(), tolerance=0)
    same(lambda d: empty(n, dtype, d).uniform_(-3, 1.7), tolerance=0)
    same(lambda d: empty(n, dtype, d).normal_(1, 2))
    same(lambda d: empty(n, dtype, d).exponential_(0.5))
    same(lambda d: empty(n, dtype, d).cauchy_().clamp(-9, 9))
    same(lambda d: empty(n, dtype, d).log_normal_(0, 0.5))
    same(lambda d: empty(n, dtype, d).bernoulli_(0.3), tolerance=0)
    same(lambda d: empty(n, dtype, d).geometric_(0.3), tolerance=0)
    same(lambda d: empty(n, dtype, d).random_(3, 200), tolerance=0)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "uint64"])
def test_integers(dtype: str) -> None:
    d = getattr(pc, dtype)
    same(lambda v: empty(300, dtype, v).random_())
    same(lambda v: empty(300, dtype, v).bernoulli_(0.7))
    same(lambda v: pc.randint(0, 2, (7, 9), dtype=d, device=v))
    if dtype == "int64":
        same(lambda v: pc.randint(-(2**62), 2**62, (300,), device=v))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(dtype: str) -> None:
    d = getattr(pc, dtype)
    same(lambda v: pc.rand(70, dtype=d, device=v), tolerance=0)
    same(lambda v: pc.randn(70, dtype=d, device=v))


def test_tensors_with_strides() -> None:
    for dtype in ("float32", "float64"):
        d = getattr(pc, dtype)

        def fill(v: str, d: Any = d) -> Any:
            x = pc.zeros(20, 30, dtype=d, device=v)
            x[::2].t().normal_()
            x[1:, 3:9].uniform_()
            x[:, 1::2].bernoulli_(0.5)
            return x

        same(fill)


@pytest.mark.parametrize("dtype", FLOATING)
def test_dropout(dtype: str) -> None:
    x = pc.arange(1, 600, dtype=pc.float32).to(getattr(pc, dtype)).reshape(1, 599)
    for p in (0.0, 0.3, 1.0):
        same(lambda v, p=p: operator("native_dropout")(x.to(v), p))
        same(lambda v, p=p: operator("native_dropout")(x.to(v)[:, ::2], p))
        same(lambda v, p=p: operator("native_dropout")(x.to(v)[:, 1:], p))


@pytest.mark.parametrize("n", [0, 1, 2, 31, 257, 2048, 2049, 20_000])
def test_permutations(n: int) -> None:
    same(lambda v: pc.randperm(n, device=v))
    same(lambda v: pc.randperm(n, dtype=pc.int32, device=v))


def test_probabilities() -> None:
    p = pc.linspace(0, 1, 300)
    same(lambda v: pc.bernoulli(p.to(v)))
    same(lambda v: pc.bernoulli(p.to(v).reshape(20, 15).t().to(pc.float64)))
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]; got 1.5"):
        wait_for(pc.bernoulli, pc.tensor([0.5, 1.5], device="cuda"))


def test_rejection_methods() -> None:
    rate = pc.linspace(0.01, 80, 400).to(pc.float64)
    same(lambda v: pc.poisson(rate.to(v)), tolerance=0)
    same(lambda v: pc.binomial(rate.to(v).floor(), pc.full((400,), 0.7, device=v).to(pc.float64)))
    same(lambda v: operator("_standard_gamma")(rate.to(v)), tolerance=1e-9)
    same(lambda v: pc.poisson(rate.to(v).to(pc.float32)[::3]), tolerance=0)


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("shape", [(5,), (300,), (3, 2500)])
def test_draws_from_weights(replacement: bool, shape: tuple[int, ...]) -> None:
    pc.manual_seed(1)
    weights = pc.rand(*shape)
    weights[..., ::3] = 0
    count = 40 if replacement else 3
    same(lambda v: pc.multinomial(weights.to(v), count, replacement))


def test_a_bad_table_of_weights_is_reported() -> None:
    for weights in ([1.0, -1.0], [0.0, 0.0], [1.0, float("inf")]):
        with pytest.raises(ValueError, match="`self` must be"):
            wait_for(pc.multinomial, pc.tensor(weights, device="cuda"), 1)


def test_a_generator_of_the_program() -> None:
    g = pc.Generator()
    g.manual_seed(3)
    want = pc.rand(9, generator=g)
    g.manual_seed(3)
    assert_same(pc.rand(9, generator=g, device="cuda"), want, tolerance=0)


def test_graphs_draw_new_numbers_in_each_run() -> None:
    """Run k of a graph draws what call k outside of it would."""
    draws: list[Callable[[], Any]] = [
        lambda: pc.rand(40, device="cuda"),
        lambda: pc.randn(70, device="cuda"),
        lambda: pc.randperm(3000, device="cuda"),
        lambda: pc.randint(0, 9, (30,), device="cuda"),
        lambda: pc.multinomial(pc.ones(50, device="cuda"), 20, True),
    ]
    for draw in draws:
        draw()
        pc.manual_seed(4)
        want = [draw().tolist() for _ in range(3)]
        pc.manual_seed(4)
        graph = pc.accelerator.Graph()
        with graph.capture():
            result = draw()
        got = []
        for _ in range(3):
            graph.replay()
            got.append(result.tolist())
        assert got == want
