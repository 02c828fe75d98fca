"""Optimizers on complex parameters: each part is an element, and states are complex."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import plait_optim

pc = pytest.importorskip("plait_core")
pytest.importorskip("plait_autograd")

# options, and PyTorch's parameters after four steps
EXPECTED = [
    (
        "SGD",
        {"lr": 0.1},
        [0.83843056 + 1.74114752j, 1.43816208 + 0.10012304j, 0.5385648 + 0.92063528j],
        [0.12288, -0.8192],
    ),
    (
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        [0.631751473 + 1.223324159j, -0.20902288 + 1.718365444j, 1.052138649 + 1.470844802j],
        [-0.104014763, 0.693431756],
    ),
    (
        "Adam",
        {"lr": 0.1},
        [0.667793116 + 1.610038306j, 2.601310861 - 0.60117968j, 0.394026402 + 0.895584861j],
        [-0.062182673, -1.601504895],
    ),
    (
        "Adam",
        {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1},
        [0.652439733 + 1.607616954j, 2.601290241 - 0.601239479j, 0.393638435 + 0.894758936j],
        [-0.062182674, -1.601504895],
    ),
    (
        "AdamW",
        {"lr": 0.1},
        [0.665816387 + 1.603008391j, 2.589976051 - 0.597798134j, 0.393437022 + 0.893029915j],
        [-0.062597745, -1.594152919],
    ),
    (
        "Adamax",
        {"lr": 0.1},
        [0.725108149 + 1.653624689j, 2.613748616 - 0.612591817j, 0.359861443 + 0.866663409j],
        [-0.00138157, -1.615383802],
    ),
    (
        "NAdam",
        {"lr": 0.1},
        [0.775449354 + 1.703993493j, 2.677261341 - 0.676613107j, 0.306063327 + 0.810725553j],
        [0.045772996, -1.678188739],
    ),
    (
        "RAdam",
        {"lr": 0.1},
        [0.807182663 + 1.714914416j, 1.136099075 + 0.211613731j, 0.642724457 + 0.963264073j],
        [0.09684889, -0.645659267],
    ),
    (
        "RMSprop",
        {"lr": 0.1},
        [0.778428088 + 1.45254619j, 1.057934886 + 1.024774261j, 0.765407891 + 1.428528419j],
        [0.015993866, -0.174628421],
    ),
    (
        "RMSprop",
        {"lr": 0.1, "centered": True, "momentum": 0.5},
        [1.037154078 + 1.627553043j, 0.261050231 + 1.912947135j, 0.571961863 + 1.311217085j],
        [0.233820129, 0.498998826],
    ),
    (
        "Rprop",
        {"lr": 0.1},
        [0.636 + 1.4632j, 2.4632 - 0.4632j, 0.5368 + 1.0368j],
        [-0.064, -1.4632],
    ),
    (
        "Adagrad",
        {"lr": 0.1},
        [0.802881646 + 1.74900716j, 2.727802377 - 0.727273938j, 0.258849033 + 0.762536961j],
        [0.080691511, -1.728557038],
    ),
    (
        "Adadelta",
        {"lr": 0.1},
        [0.998696373 + 1.998695433j, 2.998694954 - 0.998694941j, 0.001304738 + 0.501304816j],
        [0.298696012, -1.998694973],
    ),
    (
        "ASGD",
        {"lr": 0.1},
        [0.8384072 + 1.74108905j, 1.438115789 + 0.100128869j, 0.538552906 + 0.92060896j],
        [0.122875239, -0.81916826],
    ),
    (
        "LBFGS",
        {"lr": 0.5},
        [0.769231525 + 1.428574014j, 0.769238075 + 1.428560439j, 0.76922825 + 1.428567227j],
        [9.84e-07, -6.557e-06],
    ),
    (
        "LBFGS",
        {"lr": 0.5, "line_search_fn": "strong_wolfe"},
        [0.769231205 + 1.428574813j, 0.769234983 + 1.428557045j, 0.769229316 + 1.428565929j],
        [9.23e-07, -6.152e-06],
    ),
]


def _steps(name: str, options: dict[str, Any]) -> tuple[Any, Any, Any]:
    p = pc.tensor([1 + 2j, 3 - 1j, 0.5j], dtype=pc.complex128, requires_grad=True)
    q = pc.tensor([0.3, -2.0], dtype=pc.float64, requires_grad=True)
    optimizer = getattr(plait_optim, name)([p, q], **options)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((p - (1 + 1j)).abs() ** 2).sum() + (p**2).real.sum() * 0.3 + (q**2).sum()
        loss.backward()
        return loss

    for _ in range(4):
        optimizer.step(closure)
    return p, q, optimizer


@pytest.mark.parametrize(("name", "options", "complex_", "real"), EXPECTED)
def test_steps_are_pytorchs(name: str, options: Any, complex_: Any, real: Any) -> None:
    p, q, optimizer = _steps(name, options)
    np.testing.assert_allclose(p.tolist(), complex_, atol=1e-8)
    np.testing.assert_allclose(q.tolist(), real, atol=1e-8)
    if name == "LBFGS":  # its state is a vector of all elements
        return
    for value in optimizer.state[p].values():
        if pc.is_tensor(value) and value.ndim:
            assert value.dtype == p.dtype and value.shape == p.shape


def test_states_are_saved_and_loaded() -> None:
    p, _, optimizer = _steps("Adam", {"lr": 0.1})
    again = pickle.loads(pickle.dumps(optimizer))
    copy = again.param_groups[0]["params"][0]
    for each, param in ((optimizer, p), (again, copy)):
        param.grad = pc.ones(3, dtype=pc.complex128)
        each.step()
    assert p.tolist() == copy.tolist()
    other = plait_optim.Adam([p, pc.zeros(2, dtype=pc.float64, requires_grad=True)])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[p]["exp_avg"].tolist() == optimizer.state[p]["exp_avg"].tolist()


def test_groups_that_are_added_later() -> None:
    real = pc.ones(2, requires_grad=True)
    p = pc.ones(2, dtype=pc.complex64, requires_grad=True)
    optimizer = plait_optim.SGD([real], lr=0.5)
    real.grad = pc.ones(2)
    optimizer.step()
    optimizer.add_param_group({"params": [p]})
    p.grad = pc.full((2,), 1j, dtype=pc.complex64)
    optimizer.step()
    assert real.tolist() == [0.0, 0.0] and p.tolist() == [1 - 0.5j, 1 - 0.5j]


@pytest.mark.parametrize("name", ["Adafactor", "Muon", "SparseAdam"])
def test_optimizers_without_complex_parameters(name: str) -> None:
    p = pc.ones(2, 2, dtype=pc.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"{name} does not support complex parameters"):
        getattr(plait_optim, name)([p])
