"""The fused steps against their formulas, written down in NumPy in float64."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import plait_optim as optim
from plait_core.instruction_sets import kernel_levels

Array = npt.NDArray[Any]
State = dict[str, Array]


def sgd(p: Array, g: Array, s: State, t: int, o: dict[str, Any]) -> Array:
    g = -g if o.get("maximize") else g
    g = g + o.get("weight_decay", 0) * p
    mu = o.get("momentum", 0)
    if mu:
        s["b"] = g if t == 1 else mu * s["b"] + (1 - o.get("dampening", 0)) * g
        g = g + mu * s["b"] if o.get("nesterov") else s["b"]
    return p - o["lr"] * g


def adam(p: Array, g: Array, s: State, t: int, o: dict[str, Any]) -> Array:
    g = -g if o.get("maximize") else g
    b1, b2 = o.get("betas", (0.9, 0.999))
    decay = o.get("weight_decay", 0)
    if o.get("decoupled_weight_decay"):
        p = p * (1 - o["lr"] * decay)
    else:
        g = g + decay * p
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g**2
    v = s["v"]
    if o.get("amsgrad"):
        v = s["top"] = np.maximum(s.get("top", 0), v)
    bottom = np.sqrt(v / (1 - b2**t)) + o.get("eps", 1e-8)
    return p - o["lr"] * (s["m"] / (1 - b1**t)) / bottom


SGD_OPTIONS: list[dict[str, Any]] = [
    {},
    {"weight_decay": 0.1},
    {"maximize": True, "weight_decay": 0.1},
    {"momentum": 0.9},
    {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1},
    {"momentum": 0.9, "nesterov": True},
    {"momentum": 0.9, "nesterov": True, "maximize": True, "weight_decay": 0.1},
]
ADAM_OPTIONS: list[dict[str, Any]] = [
    {"weight_decay": decay, "amsgrad": amsgrad, "maximize": maximize, "decoupled_weight_decay": d}
    for decay, amsgrad, maximize, d in itertools.product((0, 0.1), *[(False, True)] * 3)
] + [{"betas": (0.5, 0.8), "eps": 1e-3}]


def views(rng: np.random.Generator, dtype: str) -> list[Array]:
    """Arrays of every layout that a step has a path for."""

    def make(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(dtype)

    return [
        make(5),
        make(3, 7),
        make(),
        make(0, 3),
        make(6, 4).T,
        make(4, 6, 5).transpose(2, 0, 1),
        make(9, 8)[::2, ::-1],
        make(40, 30)[3:, 2:-1],
        make(3, 1, 2)[:, :, ::-1],
    ]


def check(
    make: Callable[..., optim.Optimizer],
    formula: Callable[..., Array],
    options: dict[str, Any],
    params: list[Array],
    grads: Callable[[int], list[Array]],
    rtol: float,
) -> None:
    options = {"lr": 0.05, **options}
    expected = [p.astype(np.float64) for p in params]
    states: list[State] = [{} for _ in params]
    optimizer = make(params, **options)
    for t in range(1, 5):
        gradient_list = grads(t)
        optimizer.step(grads=gradient_list)
        for i, g in enumerate(gradient_list):
            expected[i] = formula(expected[i], g.astype(np.float64), states[i], t, options)
            np.testing.assert_allclose(params[i], expected[i], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("make", "formula", "options"),
    [(optim.SGD, sgd, o) for o in SGD_OPTIONS] + [(optim.Adam, adam, o) for o in ADAM_OPTIONS],
    ids=str,
)
def test_steps_follow_their_formula(
    make: Any, formula: Any, options: dict[str, Any], dtype: str
) -> None:
    rng = np.random.default_rng(1)
    params = views(rng, dtype)
    rtol = 1e-12 if dtype == "float64" else 3e-5
    # gradients of the same layout, then of another one
    check(make, formula, options, params, lambda t: views(rng, dtype), rtol)
    params = views(rng, dtype)
    check(make, formula, options, params, lambda t: [g.copy() for g in views(rng, dtype)], rtol)


@pytest.mark.parametrize("layout", ["flat", "strided"])
def test_many_elements_are_cut_into_pieces(layout: str) -> None:
    rng = np.random.default_rng(2)
    shapes = [(300, 401), (3,), (70_000,), (200, 50)]
    params = [rng.standard_normal(shape) for shape in shapes]
    if layout == "strided":
        params = [np.repeat(p, 2, axis=-1)[..., ::2] for p in params]

    def grads(t: int) -> list[Array]:
        return [rng.standard_normal(shape) for shape in shapes]

    check(optim.Adam, adam, {"amsgrad": True}, params, grads, 1e-12)


def test_memory_between_strided_elements_is_unchanged() -> None:
    whole = np.arange(24.0).reshape(4, 6)
    before = whole.copy()
    optim.SGD([whole[::2, 1::2]], lr=1).step(grads=[np.ones((2, 3))])
    before[::2, 1::2] -= 1
    np.testing.assert_array_equal(whole, before)


def test_parameters_may_start_later_and_pause() -> None:
    rng = np.random.default_rng(3)
    for make, formula, options in (
        (optim.Adam, adam, {"lr": 0.1}),
        (optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    ):
        params = [rng.standard_normal(4) for _ in range(3)]
        expected = [p.copy() for p in params]
        states: list[State] = [{} for _ in params]
        counts = [0, 0, 0]
        optimizer = make(params, **options)  # type: ignore[operator]
        for present in ((0,), (0, 1), (1, 2), (0, 1, 2), ()):
            grads = [rng.standard_normal(4) if i in present else None for i in range(3)]
            optimizer.step(grads=grads)
            for i in present:
                counts[i] += 1
                expected[i] = formula(expected[i], grads[i], states[i], counts[i], options)  # type: ignore[operator]
            np.testing.assert_allclose(params, expected, rtol=1e-13)


def test_mixed_dtypes_in_one_group() -> None:
    single, double = np.ones(3, np.float32), np.ones(3)
    optim.Adam([single, double], lr=0.5).step(grads=[np.ones(3, np.float32), np.ones(3)])
    np.testing.assert_allclose(single, 0.5, rtol=1e-6)
    np.testing.assert_allclose(double, 0.5, rtol=1e-7)


def test_gradients_that_are_not_finite_stay_where_they_are() -> None:
    p = np.ones(20)
    g = np.ones(20)
    g[3] = np.nan
    optim.Adam([p], lr=0.1).step(grads=[g])
    assert np.isnan(p[3])
    np.testing.assert_allclose(np.delete(p, 3), 0.9)


OTHERS = ["Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD"]
BOTH_SETS = """
import sys
import numpy as np
import plait_optim as optim
rng = np.random.default_rng(5)
for dtype in (np.float32, np.float64):
    for n in (1, 7, 8, 31, 1000):
        makers = [
            lambda p: optim.AdamW([p], lr=0.1, amsgrad=True),
            lambda p: optim.SGD([p], lr=0.1, momentum=0.9, nesterov=True),
            lambda p: optim.RMSprop([p], lr=0.1, momentum=0.9, centered=True),
            *[lambda p, name=name: getattr(optim, name)([p], lr=0.1) for name in %r],
        ]
        for make in makers:
            p = rng.standard_normal(n).astype(dtype)
            a = make(p)
            for _ in range(3):
                a.step(grads=[rng.standard_normal(n).astype(dtype)], max_norm=2.0)
            sys.stdout.buffer.write(p.astype(float).tobytes())
"""


@pytest.mark.skipif(len(kernel_levels()) < 2, reason="there is one instruction set")
def test_the_instruction_sets_agree() -> None:
    results = []
    for expected in kernel_levels():
        done = subprocess.run(
            [sys.executable, "-c", BOTH_SETS % (OTHERS,)],
            env={**os.environ, "PLAIT_CPU": expected},
            stdout=subprocess.PIPE,
            check=True,
        )
        results.append(np.frombuffer(done.stdout))
    assert results[0].size == 2 * (3 + len(OTHERS)) * (1 + 7 + 8 + 31 + 1000)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [0, 1, 7, 100_003, 600_000])
def test_the_norm_of_all_gradients(size: int, dtype: str) -> None:
    rng = np.random.default_rng(7)
    grads = [rng.standard_normal(size).astype(dtype), rng.standard_normal((8, 6)).astype(dtype)]
    grads = [grads[0], grads[1][::2, ::-3], np.asarray(np.float64(2)).astype(dtype)]
    params = [np.zeros(g.shape, dtype) for g in grads]
    optimizer = optim.SGD(params, lr=1.0)
    optimizer.step(grads=grads, max_norm=0.5)
    norm = np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in grads))
    np.testing.assert_allclose(optimizer.grad_norm, norm, rtol=1e-12)
    rtol = 1e-6 if dtype == "float32" else 1e-12
    for p, g in zip(params, grads, strict=True):
        np.testing.assert_allclose(p, -g * (0.5 / (norm + 1e-6)), rtol=rtol)
    # a bound that is kept changes nothing, and the next step clips only if told to
    optimizer.step(grads=grads, max_norm=2 * norm)
    optimizer.step(grads=grads)
    for p, g in zip(params, grads, strict=True):
        np.testing.assert_allclose(p, -g * (2 + 0.5 / (norm + 1e-6)), rtol=rtol)


def test_clipping_reports_infinite_gradients() -> None:
    for bad in (np.nan, np.inf):
        p = np.zeros(2)
        optimizer = optim.SGD([p], lr=1.0)
        optimizer.step(grads=[np.array([1.0, bad])], max_norm=1.0)
        assert not np.isfinite(optimizer.grad_norm)
        assert np.isnan(p[1])


def test_adagrad_has_its_state_before_the_first_step() -> None:
    first, second = np.ones(2), np.ones(3, np.float32)
    optimizer = optim.Adagrad([first], initial_accumulator_value=0.5)
    assert optimizer.state[first]["step"] == 0
    assert optimizer.state[first]["sum"].tolist() == [0.5, 0.5]
    optimizer.add_param_group({"params": [second], "initial_accumulator_value": 0.25})
    assert optimizer.state[second]["sum"].dtype == np.float32
    assert optimizer.state_dict()["state"][1]["sum"].tolist() == [0.25] * 3
