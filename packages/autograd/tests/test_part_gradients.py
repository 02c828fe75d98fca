"""Gradients of parts, which are added where they belong in the gradient of the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_autograd
import plait_core as pc

PARTS: dict[str, Callable[[Any], list[Any]]] = {
    "rows": lambda x: list(x),
    "unbind": lambda x: list(x.unbind(1)),
    "slices": lambda x: [x[:2], x[1:], x[:, ::2]],
    "backwards": lambda x: [x[:, -2:], x[-1], x.select(1, -3)],
    "nested": lambda x: [x[1][2:4], x[1][3], x[0], x[1]],
    "narrow": lambda x: [x.narrow(1, 1, 3), x.narrow(-1, 0, 2)],
    "empty": lambda x: [x[2:2], x[0]],
    "transposed": lambda x: [x.t()[1], x.t()[2:, 1]],
}


def expected(parts: Callable[[Any], list[Any]], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The gradient of the sum of (i + 1) * exp(part i) at zero, where each position counts."""
    numbers = pc.arange(int(np.prod(shape))).reshape(*shape)
    total = np.zeros(int(np.prod(shape)), np.float32)
    for i, part in enumerate(parts(numbers)):
        np.add.at(total, part.numpy().ravel(), i + 1)
    return total.reshape(shape)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("create", [False, True])
def test_each_element_gets_the_sum_of_its_parts(name: str, create: bool) -> None:
    x = pc.zeros(3, 5, requires_grad=True)
    y = sum((i + 1) * part.exp().sum() for i, part in enumerate(PARTS[name](x)))
    [g] = plait_autograd.grad(y, x, create_graph=create)
    assert np.array_equal(g.detach().numpy(), expected(PARTS[name], (3, 5)))


def test_the_whole_is_used_beside_its_parts() -> None:
    x = pc.ones(2, 3, requires_grad=True)
    (x[0] * 2 + x.sum() + x[1] * x[0]).sum().backward()
    assert x.grad.tolist() == [[6.0] * 3, [4.0] * 3]
    x[0].sum().backward()  # adds to what is there
    assert x.grad.tolist() == [[7.0] * 3, [4.0] * 3]


def test_a_gradient_with_another_reference_is_not_written() -> None:
    x = pc.ones(2, 2, requires_grad=True)
    y = x * 3
    calls = []
    y.register_hook(lambda g: calls.append(g))
    y.retain_grad()
    (y[0].sum() + y[1].sum() * 2).backward()
    assert calls[0].tolist() == y.grad.tolist() == [[1, 1], [2, 2]]


def test_a_given_gradient_stays_as_it_is() -> None:
    x = pc.ones(2, 2, requires_grad=True)
    y = x * 1
    argument = pc.ones(2, 2)
    part = y[0]
    plait_autograd.backward([y, part], [argument, pc.ones(2)])
    assert argument.tolist() == [[1, 1], [1, 1]]
    assert x.grad.tolist() == [[2, 2], [1, 1]]


def test_half_precision_and_numbers_without_it() -> None:
    x = pc.ones(4, 2, dtype=pc.bfloat16, requires_grad=True)
    sum(row.float().sum() for row in x).backward()
    assert x.grad.dtype == pc.bfloat16
    assert x.grad.tolist() == [[1, 1]] * 4


def test_hooks_of_a_part_run() -> None:
    x = pc.ones(2, 2, requires_grad=True)
    part = x[0]
    part.register_hook(lambda g: g * 5)
    (part + x[1]).sum().backward()
    assert x.grad.tolist() == [[5, 5], [1, 1]]


def test_memory_is_taken_for_the_whole_once() -> None:
    x = pc.ones(64, 1000, requires_grad=True)
    y = sum((row * 2).sum() for row in x)
    before = pc.memory_stats()["allocations"]
    y.backward()
    growth = pc.memory_stats()["allocations"] - before
    assert growth < 2 * 64  # one for the gradient of each row, not one of the size of x more
