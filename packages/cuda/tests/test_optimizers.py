"""Steps of optimizers on the device: the bits of the CPU, in one launch for many parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from on_both import numbers

import plait_core as pc
from plait_abi import Probe, operator
from plait_optim._component import operator as step_of

SHAPES = [(3,), (1,), (0,), (17, 5), (64, 33), (1025,), (8192,), (8193,), ()]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
Lists = list[list[Any]]


def lists(dtype: str, shapes: list[tuple[int, ...]], n: int) -> Lists:
    """Return parameters, gradients and the state, whose averages of squares are not negative."""
    result = [
        [numbers(shape, dtype, seed=100 * k + i) for i, shape in enumerate(shapes)]
        for k in range(n)
    ]
    return [*result[:3], *([operator("abs")(x) for x in each] for each in result[3:])]


def compare(name: str, values: Lists, *steps: Any, **numbers_: Any) -> None:
    """Step on the CPU and on the device, and compare all tensors."""
    on_device = [[x.to("cuda") for x in each] for each in values]
    there = {key: x.to("cuda") if isinstance(x, pc.Tensor) else x for key, x in numbers_.items()}
    step_of(name)(*on_device, *steps, **there)
    step_of(name)(*values, *steps, **numbers_)
    for got, want in zip(on_device, values, strict=True):
        for x, y in zip(got, want, strict=True):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            x, y = x.cpu(), y
            if y.dtype == pc.bfloat16:
                x, y = x.to(pc.float32), y.to(pc.float32)
            np.testing.assert_array_equal(x.numpy(), y.numpy())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1}, {"maximize": True}], ids=str)
def test_sgd(dtype: str, options: dict[str, Any]) -> None:
    for t in (1, 2):
        for nesterov in (False, True):
            values = lists(dtype, SHAPES, 3)
            compare("sgd_step", values, [t], lr=0.1, momentum=0.9, nesterov=nesterov, **options)
    plain = [*lists(dtype, SHAPES, 2), []]
    compare("sgd_step", plain, [3], lr=0.1, **options)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam(dtype: str, decoupled: bool, amsgrad: bool) -> None:
    options = {"lr": 0.01, "weight_decay": 0.1, "decoupled": decoupled}
    for t in (1, 7):
        values = [*lists(dtype, SHAPES, 5 if amsgrad else 4), *([] if amsgrad else [[]])]
        compare("adam_step", values, [t], **options)


def test_steps_of_each_parameter() -> None:
    values = [*lists("float32", SHAPES[:4], 4), []]
    compare("adam_step", values, [1, 5, 2, 900], lr=0.01)
    compare("sgd_step", lists("float32", SHAPES[:4], 3), [1, 2, 1, 3], lr=0.1, momentum=0.5)


def test_numbers_of_steps_on_the_device() -> None:
    n = 500  # more than one launch takes
    values = [[numbers((i % 5,), "float32", seed=i + k) for i in range(n)] for k in range(4)]
    values[3] = [operator("abs")(x) for x in values[3]]
    steps = [pc.tensor(float(i % 41)) for i in range(n)]
    on_device = [x.to("cuda") for x in steps]
    counts = step_of("count_steps")(on_device)
    assert counts.cpu().tolist() == [i % 41 + 1.0 for i in range(n)]
    assert counts.cpu().tolist() == [float(x) for x in on_device]
    compare("adam_step", [*values, []], [], lr=0.01, counts=step_of("count_steps")(steps))
    step_of("count_steps")(on_device, -1)
    assert [float(x) for x in on_device] == [i % 41 for i in range(n)]
    # kernels do not read this layout
    gaps = [[numbers((4, 6), "float32", seed=k)[:, ::2].abs()] for k in range(4)]
    there = [[numbers((4, 6), "float32", seed=k).to("cuda")[:, ::2].abs_()] for k in range(4)]
    one = pc.tensor([7.0], dtype=pc.float64)
    step_of("adam_step")(*gaps, [], [], counts=one)
    step_of("adam_step")(*there, [], [], counts=one.to("cuda"))
    np.testing.assert_allclose(there[0][0].cpu().numpy(), gaps[0][0].numpy(), rtol=1e-5)


def test_gradients_are_scaled() -> None:
    for scale in (0.25, pc.tensor(0.25), pc.tensor(0.3).to(pc.float64)):
        compare("sgd_step", [*lists("float32", SHAPES, 2), []], [1], lr=0.1, grad_scale=scale)
        compare("sgd_step", [*lists("float64", SHAPES, 2), []], [1], lr=0.1, grad_scale=scale)


def test_dtypes_and_many_parameters_in_one_step() -> None:
    kinds = [FLOATS[i % 9 % 4] for i in range(130)]
    values = [[numbers((i % 40,), kind, seed=i) for i, kind in enumerate(kinds)] for _ in range(2)]
    compare("sgd_step", [*values, []], [1], lr=0.1)


def transposed(x: Any) -> Any:
    return operator("permute")(x, [1, 0])


def shifted(x: Any) -> Any:
    return x[1:]


def with_gaps(x: Any) -> Any:
    return x[:, ::2]


@pytest.mark.parametrize("view", [transposed, shifted, with_gaps])
def test_memory_of_other_layouts(view: Callable[[Any], Any]) -> None:
    for seen in (range(4), (0, 2, 3), (1,)):
        on_host, on_device = [], []
        for k in range(4):
            x = numbers((9, 9), "float32", seed=k)
            x = operator("abs")(x) if k == 3 else x
            seen_x = view(x)
            there = view(x.to("cuda"))
            if k not in seen:
                seen_x, there = seen_x.clone().contiguous(), there.clone().contiguous()
            on_host.append([seen_x])
            on_device.append([there])
        step_of("adam_step")(*on_host, [], [2], lr=0.01)
        step_of("adam_step")(*on_device, [], [2], lr=0.01)
        for got, want in zip(on_device, on_host, strict=True):
            # memory that lies otherwise is updated by operators, whose order differs
            np.testing.assert_allclose(got[0].cpu().numpy(), want[0].numpy(), rtol=1e-5, atol=1e-7)


def test_the_kernel_serves_the_call() -> None:
    values = [[x.to("cuda") for x in each] for each in lists("float32", SHAPES, 4)]
    step_of("adam_step")  # defines the operator
    with Probe("adam_step", "plait_cuda", "cuda") as probe:
        step_of("adam_step")(*values, [], [1], lr=0.01)
    assert (probe.counts.accepted, probe.counts.declined) == (1, 0)
