"""What a graph cannot have: an error that says so, or the same result as eager; nothing silent."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_graph import compile

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import assert_same

T = pc.tensor


def frozen(function: Callable[..., Any]) -> Any:
    return compile(function, frozen=True)


def lengths(x: Any) -> Any:
    return x[: int((x > 0).sum())].sum()


READS: dict[str, Callable[..., Any]] = {
    "item": lambda x: x * x.sum().item(),
    "float": lambda x: x * float(x.max()),
    "bool": lambda x: x * 2 if x.sum() > 0 else x * 3,
    "tolist": lambda x: x * x.tolist()[0],
    "numpy": lambda x: x + pc.from_numpy(x.numpy() * 2),
    "array": lambda x: x + pc.from_numpy(np.asarray(x) * 2),
    "dlpack": lambda x: x + pc.from_numpy(np.from_dlpack(x) * 2),
    "item of a value": lambda x: x * (x * 2).sum().item(),
    "returned item": lambda x: x.sum().item(),
    "returned list": lambda x: (x * 2).tolist(),
    "index": lambda x: x[x.argmin()],
    "length": lengths,
    "iteration": lambda x: sum(float(v) for v in x) + x,
    "equal": lambda x: x * 2 if pc.equal(x, T([1.0, 2.0])) else x * 3,
    "allclose": lambda x: x * 2 if pc.allclose(x, T([1.0, 2.0])) else x * 3,
    "format": lambda x: x * len(f"{x[1]}"),
}


def repeat(call: Callable[[], Any], times: int = 8) -> None:
    for _ in range(times):
        call()


@pytest.mark.parametrize("name", READS)
def test_reads_of_the_same_values_at_first(name: str) -> None:
    function = READS[name]
    compiled = frozen(function)
    try:
        for values in ([1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [3.0, -4.25], [-5.0, 1.0]):
            assert_same(compiled(T(values)), function(T(values)))
    except (RuntimeError, NotImplementedError) as error:
        assert "compile" in str(error)


CHANGES: dict[str, Callable[[], Callable[..., Any]]] = {
    "random": lambda: lambda x: x * random.random(),
    "numpy": lambda: lambda x: x + pc.from_numpy(np.random.rand(2).astype(np.float32)),
    "counter": lambda: (lambda n: lambda x: x * next(n))(iter(range(100))),
    "growing list": lambda: (lambda kept: lambda x: (kept.append(x * 2), sum(kept))[1])([]),
    "data of a tensor": lambda: (lambda n: lambda x: x + T([float(next(n))] * 2))(iter(range(9))),
    "shape": lambda: (lambda n: lambda x: pc.zeros(next(n)) + x[:1])(iter(range(1, 9))),
    "operator": lambda: (lambda n: lambda x: x.exp() if next(n) % 2 else x.sin())(iter(range(9))),
    "number of calls": lambda: (lambda n: lambda x: sum(x for _ in range(next(n))))(iter(range(9))),
    "result": lambda: (lambda n: lambda x: (x * 2, next(n)))(iter(range(9))),
}


@pytest.mark.parametrize("name", CHANGES)
def test_calls_that_differ(name: str) -> None:
    compiled = frozen(CHANGES[name]())
    with pytest.raises(RuntimeError, match="compile: the function cannot be frozen"):
        repeat(lambda: compiled(T([1.0, 2.0])))


def test_a_scheduler_inside() -> None:
    w = nn.Parameter(T([1.0]))
    opt = optim.SGD([w], lr=0.1)
    scheduler = optim.lr_scheduler.ExponentialLR(opt, 0.5)

    def step() -> None:
        opt.zero_grad()
        (w * w).sum().backward()
        opt.step()
        scheduler.step()

    compiled = frozen(step)
    with pytest.raises(RuntimeError, match="`lr` is"):
        repeat(compiled)


def test_two_steps_in_one_call() -> None:
    w = nn.Parameter(T([1.0]))
    opt = optim.Adam([w], lr=0.1)

    def steps() -> None:
        for _ in range(2):
            opt.zero_grad()
            (w * w).sum().backward()
            opt.step()

    compiled = frozen(steps)
    with pytest.raises(NotImplementedError, match="two steps in one call"):
        repeat(compiled)


def test_a_learning_rate_that_is_a_tensor() -> None:
    w = nn.Parameter(T([1.0]))
    opt = optim.SGD([w], lr=T(0.1))

    def step() -> None:
        opt.zero_grad()
        (w * w).sum().backward()
        opt.step()

    compiled = frozen(step)
    with pytest.raises(NotImplementedError, match="reads the elements of a tensor"):
        repeat(compiled)


def test_generators() -> None:
    generator = pc.Generator()
    compiled = frozen(lambda: pc.randn(3, generator=generator))
    with pytest.raises(NotImplementedError, match="`generator` is a generator"):
        repeat(compiled)


def test_a_result_that_is_an_array() -> None:
    compiled = frozen(lambda x: (x * 2).numpy())
    try:
        for k in range(5):
            assert compiled(T([1.0, k]))[1] == 2 * k
    except (RuntimeError, NotImplementedError, TypeError) as error:
        assert "compile" in str(error)


def test_a_tensor_that_grows() -> None:
    with pytest.raises(RuntimeError, match="or a compiled function is recorded; make a new tensor"):
        frozen(lambda x: (x * 2).resize_(8))(pc.ones(4))
    assert compile(lambda x: (x * 2).resize_(8))(pc.ones(4)).shape == (8,)
