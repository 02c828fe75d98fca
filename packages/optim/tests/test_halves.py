"""float16 and bfloat16: computed in float32, kept as halves, rounded once a step."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import plait_core as pc
import plait_optim as optim
from plait_core.instruction_sets import kernel_levels
from plait_optim._component import operator

Array = npt.NDArray[Any]
HALVES = [pc.float16, pc.bfloat16]
# state begins with numbers that halves hold
OPTIONS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "Adam": {"amsgrad": True, "maximize": True},
    "AdamW": {},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Adagrad": {"initial_accumulator_value": 0.25},
    "ASGD": {"t0": 1},
    "Adafactor": {"eps": (1e-3, 1e-3), "weight_decay": 0.1},
    "Muon": {},
    **{name: {} for name in ("Adadelta", "Adamax", "NAdam", "RAdam", "Rprop")},
}


def rounded(values: Array, dtype: Any) -> Array:
    """Values of float32 that went through a half dtype."""
    if dtype is pc.float16:
        return values.astype(np.float16).astype(np.float32)
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)  # ties to even
    reference = (bits + (0x7FFF + (bits >> 16 & 1))) & 0xFFFF0000
    return reference.astype(np.uint32).view(np.float32).reshape(values.shape)


def ulp(values: Array, dtype: Any) -> Array:
    """The distance of the halves around values."""
    digits, least = (10, -14) if dtype is pc.float16 else (7, -126)
    exponents = np.frexp(np.abs(values))[1] - 1
    distances: Array = np.ldexp(1.0, np.maximum(exponents, least) - digits)
    return distances


def half(values: Array, dtype: Any) -> Any:
    return pc.from_numpy(values.astype(np.float32)).to(dtype)


def single(tensor: Any) -> Array:
    copied: Array = tensor.to(pc.float32).numpy().copy()
    return copied


def matrices(rng: np.random.Generator, dtype: Any) -> list[Any]:
    """Matrices of every layout that a step has a path for."""

    def make(*shape: int) -> Any:
        return half(rng.standard_normal(shape), dtype)

    return [
        make(3, 5),
        make(37, 41),  # several blocks
        make(6, 4).t(),
        make(60, 40)[3:, 2:-1],
        make(18, 7)[::2],
    ]


@pytest.mark.parametrize("max_norm", [None, 0.5])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", OPTIONS)
def test_a_step_is_one_of_float32_rounded(name: str, dtype: Any, max_norm: float | None) -> None:
    rng = np.random.default_rng(0)
    params = matrices(rng, dtype)
    optimizer = getattr(optim, name)(params, lr=0.125, **OPTIONS[name])
    for _ in range(4):
        twins = [p.to(pc.float32, copy=True) for p in params]
        twin = getattr(optim, name)(twins, lr=0.125, **OPTIONS[name])
        twin.load_state_dict(optimizer.state_dict())
        grads = matrices(rng, dtype)
        optimizer.step(grads=grads, max_norm=max_norm)
        twin.step(grads=[g.to(pc.float32) for g in grads], max_norm=max_norm)
        assert optimizer.grad_norm == twin.grad_norm
        for p, q in zip(params, twins, strict=True):
            assert p.dtype is dtype
            np.testing.assert_array_equal(single(p), rounded(q.numpy(), dtype))
            own, theirs = optimizer.state[p], twin.state[q]
            assert set(own) == set(theirs)
            for key, value in theirs.items():
                if isinstance(value, pc.Tensor):
                    assert own[key].dtype is dtype
                    np.testing.assert_array_equal(single(own[key]), rounded(value.numpy(), dtype))
                else:
                    assert own[key] == value


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (255,), (257,), (70_000,), (300, 401)])
def test_adam_and_sgd_follow_their_formulas(shape: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng(1)
    start, lr, b1, b2, mu = rng.standard_normal(shape), 0.05, 0.9, 0.99, 0.9
    by_adam, by_sgd = half(start, dtype), half(start, dtype)
    adam = optim.Adam([by_adam], lr=lr, betas=(b1, b2), weight_decay=0.1)
    sgd = optim.SGD([by_sgd], lr=lr, momentum=mu)
    m = v = b = np.zeros(shape, np.float32)
    for t in range(1, 4):
        g = rounded(rng.standard_normal(shape), dtype)
        p, q = single(by_adam), single(by_sgd)
        adam.step(grads=[half(g, dtype)])
        sgd.step(grads=[half(g, dtype)])
        d = (g + 0.1 * p).astype(np.float32)
        m, v = b1 * m + (1 - b1) * d, b2 * v + (1 - b2) * d * d
        p = p - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + 1e-8)
        b = mu * b + g if t > 1 else g
        # beside the rounding, the formula in another order is a few digits of float32 away
        for own, expected in (
            (by_adam, p),
            (adam.state[by_adam]["exp_avg"], m),
            (adam.state[by_adam]["exp_avg_sq"], v),
            (by_sgd, q - lr * b),
            (sgd.state[by_sgd]["momentum_buffer"], b),
        ):
            error = np.abs(single(own) - expected)
            assert (error <= 0.502 * ulp(expected, dtype) + 1e-6).all()
        m, v = (single(adam.state[by_adam][name]) for name in ("exp_avg", "exp_avg_sq"))
        b = single(sgd.state[by_sgd]["momentum_buffer"])


def test_arrays_of_numpy() -> None:
    rng = np.random.default_rng(2)
    whole = rng.standard_normal((9, 8)).astype(np.float16)
    before, part = whole.copy(), whole[::2, ::-3]
    grad = rng.standard_normal(part.shape).astype(np.float16)
    expected = (part - np.float32(0.5) * grad).astype(np.float16)
    optimizer = optim.SGD([part], lr=0.5, momentum=0.9)
    optimizer.step(grads=[grad])
    np.testing.assert_array_equal(part, expected)
    before[::2, ::-3] = expected
    np.testing.assert_array_equal(whole, before)
    assert optimizer.state[part]["momentum_buffer"].dtype == np.float16


def test_state_goes_between_dtypes() -> None:
    g = np.linspace(-2, 2, 300)
    p, q = half(g, pc.bfloat16), pc.from_numpy(g)
    coarse, fine = optim.Adam([p]), optim.Adam([q])
    coarse.step(grads=[half(g, pc.bfloat16)])
    fine.step(grads=[pc.from_numpy(g)])
    average = fine.state[q]["exp_avg"].numpy().copy()
    fine.load_state_dict(coarse.state_dict())
    assert fine.state[q]["exp_avg"].dtype is pc.float64
    np.testing.assert_allclose(fine.state[q]["exp_avg"].numpy(), average, rtol=2**-7)
    coarse.load_state_dict(fine.state_dict())
    np.testing.assert_array_equal(
        single(coarse.state[p]["exp_avg"]), fine.state[q]["exp_avg"].numpy()
    )


def test_every_half_can_be_an_argument_and_a_result() -> None:
    load = operator("optimizer_state_load")
    patterns = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide, back = np.empty(1 << 16, np.float32), np.empty(1 << 16, np.float16)
    load(wide, patterns)
    np.testing.assert_array_equal(wide, patterns.astype(np.float32))
    load(back, wide)
    np.testing.assert_array_equal(back, patterns)


CONVERSIONS = """
import sys
import numpy as np
import plait_core as pc
from plait_optim._component import operator
load = operator("optimizer_state_load")
values = np.frombuffer(sys.stdin.buffer.read(), np.float32).copy()
for dtype in (pc.float16, pc.bfloat16):
    to, back = pc.empty(values.size, dtype=dtype), np.empty_like(values)
    load(to, values)
    load(back, to)
    sys.stdout.buffer.write(back.tobytes())
"""


@pytest.mark.parametrize("instructions", kernel_levels())
def test_rounding_is_to_nearest_and_to_even(instructions: str) -> None:
    rng = np.random.default_rng(3)
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    ties = np.concatenate(
        [(halves[1:] + halves[:-1]) / 2, np.array([65519.996, 65520, 1e30], np.float32)]
    )
    tops = rng.integers(0, 1 << 15, 20_000, np.uint32) << 16 | 0x8000  # ties of bfloat16
    values = np.concatenate(
        [ties, *(np.nextafter(ties, np.float32(to)) for to in (0, np.inf)), tops.view(np.float32)]
    )
    values = np.concatenate([values[~np.isnan(values)], np.array([np.inf, 0], np.float32)])
    values = np.concatenate([values, -values]).astype(np.float32)
    done = subprocess.run(
        [sys.executable, "-c", CONVERSIONS],
        input=values.tobytes(),
        env={**os.environ, "PLAIT_CPU": instructions},
        stdout=subprocess.PIPE,
        check=True,
    )
    halved, brain = np.frombuffer(done.stdout, np.float32).reshape(2, -1)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(halved, rounded(values, pc.float16))
    np.testing.assert_array_equal(brain, rounded(values, pc.bfloat16))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("size", [0, 7, 257, 100_003, 300_000])
def test_the_norm_of_halves(size: int, dtype: Any) -> None:
    rng = np.random.default_rng(4)
    grads = [half(rng.standard_normal(size), dtype), *matrices(rng, dtype)]
    norm = np.sqrt(sum((single(g).astype(np.float64) ** 2).sum() for g in grads))
    assert float(operator("grad_norm")(grads).item()) == pytest.approx(norm, rel=1e-12)


def test_gradients_that_are_not_finite_show() -> None:
    for bad in (np.nan, np.inf):
        for dtype in HALVES:
            p, g = half(np.zeros(300), dtype), np.ones(300)
            g[7] = bad
            optim.SGD([p], lr=1.0).step(grads=[half(g, dtype)])
            assert not np.isfinite(single(p)[7])
            assert np.isfinite(np.delete(single(p), 7)).all()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs(dtype: Any, search: str | None) -> None:
    rng = np.random.default_rng(5)
    aim, scale = half(rng.standard_normal((4, 3)), dtype), np.linspace(1, 3, 12).reshape(4, 3)
    p = half(np.zeros((4, 3)), dtype)

    def closure() -> Any:
        difference = single(p) - single(aim)
        return float((scale * difference**2).sum()), [half(2 * scale * difference, dtype)]

    optimizer = optim.LBFGS([p], max_iter=40, line_search_fn=search, tolerance_change=1e-6)
    optimizer.step(closure)
    np.testing.assert_allclose(single(p), single(aim), rtol=2**-6, atol=2**-6)
    state = optimizer.state[p]
    references = [state["d"], state["prev_flat_grad"], *state["old_dirs"], *state["old_stps"]]
    assert {value.dtype for value in references} == {dtype}
    other = optim.LBFGS([p], max_iter=40, line_search_fn=search, tolerance_change=1e-6)
    other.load_state_dict(optimizer.state_dict())
    assert {value.dtype for value in other.state[p]["old_dirs"]} == {dtype}
    assert other.step(closure) == pytest.approx(0, abs=1e-2)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_averages_of_halves(dtype: Any) -> None:
    values = half(np.linspace(-1, 1, 500), dtype)
    average = optim.swa_utils.AveragedModel([values])
    first = single(values)
    average.update_parameters([values])
    values += 1
    average.update_parameters([values])
    assert average.module[0].dtype is dtype
    expected = first + (single(values) - first) / 2
    assert (np.abs(single(average.module[0]) - expected) <= 0.51 * ulp(expected, dtype)).all()


def test_dtypes_that_differ_are_refused() -> None:
    p, g = pc.ones(2).to(pc.float16), pc.ones(2).to(pc.bfloat16)
    words = r"`grads\[0\]` must have the dtype of `params\[0\]`, float16; got bfloat16"
    with pytest.raises(TypeError, match=words):
        optim.SGD([p]).step(grads=[g])
