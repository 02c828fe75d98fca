"""Optimizers step by step against torch's on float64, and on torch's own tensors in place."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest
import torch

import plait_optim as optim

SGD: list[dict[str, Any]] = [
    {"lr": 0.1},
    {"lr": 0.1, "weight_decay": 0.1, "maximize": True},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.2},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
]
ADAM: list[dict[str, Any]] = [
    {"lr": 0.1, "weight_decay": decay, "amsgrad": amsgrad, "maximize": maximize}
    for decay, amsgrad, maximize in itertools.product((0, 0.1), (False, True), (False, True))
] + [{"lr": 0.1, "betas": (0.4, 0.7), "eps": 1e-2}]


def grid(**choices: Any) -> list[dict[str, Any]]:
    """Return all combinations of options."""
    return [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]


DECAY: dict[str, Any] = {"lr": [0.1], "weight_decay": [0, 0.1], "maximize": [False, True]}
DECOUPLED: dict[str, Any] = {**DECAY, "decoupled_weight_decay": [False, True]}
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "SGD": SGD,
    "Adam": ADAM,
    "AdamW": ADAM,
    "NAdam": [*grid(**DECOUPLED), {"momentum_decay": 0.1, "betas": (0.4, 0.7), "eps": 1e-2}],
    # the variance is rectified from the second step on with these betas, or the sixth
    "RAdam": [*grid(**DECOUPLED), *grid(lr=[0.1], betas=[(0.4, 0.7), (0.9, 0.99)], eps=[1e-2])],
    "Adamax": [*grid(**DECAY), {"betas": (0.4, 0.7), "eps": 1e-2}],
    "Adagrad": [*grid(**DECAY), *grid(lr_decay=[0.1], initial_accumulator_value=[0.5])],
    "Adadelta": [*grid(**DECAY), {"rho": 0.5, "eps": 1e-2}, {}],
    "RMSprop": [*grid(**DECAY, momentum=[0, 0.9], centered=[False, True]), {"alpha": 0.5}],
    "Rprop": [
        *grid(lr=[0.1], maximize=[False, True]),
        {"etas": (0.3, 2.0), "step_sizes": (0.02, 1)},
    ],
    "ASGD": [*grid(**DECAY), *grid(lr=[0.1], lambd=[0.1], alpha=[0.5], t0=[0, 2])],
}
CASES = [(name, options) for name, cases in OPTIONS.items() for options in cases]
STEPS = 8
SHAPES = [(4, 3), (3,), (), (2, 5, 2, 2)]


@pytest.fixture(autouse=True)
def _numbers_of_torch_are_double() -> Any:
    # torch keeps the numbers of a state (mu_product, eta, mu) in its default dtype
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def torch_params(seed: int = 0) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    params = [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in SHAPES
    ]
    last = params[-1].detach().to(memory_format=torch.channels_last).requires_grad_()
    return [*params[:-1], last]


def gradients(t: int) -> list[Any]:
    generator = torch.Generator().manual_seed(100 + t)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in SHAPES]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_step_by_step(name: str, options: dict[str, Any]) -> None:
    theirs, arrays, in_place = torch_params(), [], torch_params()
    arrays = [p.detach().numpy().copy() for p in theirs]
    oracle = getattr(torch.optim, name)(theirs, **options)
    on_numpy = getattr(optim, name)(arrays, **options)
    on_torch = getattr(optim, name)(in_place, **options)
    for t in range(STEPS):
        given = gradients(t)
        for p, q, g in zip(theirs, in_place, given, strict=True):
            p.grad, q.grad = g, g.clone()
        oracle.step()
        on_numpy.step(grads=[g.numpy() for g in given])
        on_torch.step()
        for p, a, q in zip(theirs, arrays, in_place, strict=True):
            np.testing.assert_allclose(a, p.detach(), rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(q.detach(), p.detach(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_state_dicts_go_both_ways(name: str, options: dict[str, Any]) -> None:
    ours, theirs = torch_params(), torch_params()
    mine = getattr(optim, name)(ours, **options)
    other = getattr(torch.optim, name)(theirs, **options)

    def both(t: int) -> None:
        for p, q, g in zip(ours, theirs, gradients(t), strict=True):
            p.grad, q.grad = g, g.clone()
        mine.step()
        other.step()
        for p, q in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(p.detach(), q.detach(), rtol=1e-11, atol=1e-13)

    both(0)
    both(1)
    assert set(mine.state_dict()["param_groups"][0]) == set(other.state_dict()["param_groups"][0])
    from_torch, from_plait = copy.deepcopy(other.state_dict()), copy.deepcopy(mine.state_dict())
    mine.load_state_dict(from_torch)
    other.load_state_dict(from_plait)
    both(2)


def test_torch_sees_the_write() -> None:
    p = torch.ones(3, requires_grad=True)
    loss = (p * p).sum()
    before = p._version
    optim.SGD([p], lr=0.1).step(grads=[torch.ones(3)])
    assert p._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_zero_grad_on_torch() -> None:
    p = torch.ones(3, requires_grad=True)
    optimizer = optim.Adam([p])
    p.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0, 0, 0]
    optimizer.zero_grad()
    assert p.grad is None


def test_closures_run_with_grad() -> None:
    p = torch.ones(1, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.5)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 1.0
    assert p.item() == 0.0
