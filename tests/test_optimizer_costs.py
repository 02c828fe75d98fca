"""What the fused steps of optimizers cost, counted by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import plait as pt
import plait_optim as optim
from plait_abi import operator

sys.path.insert(0, str(Path(__file__).parents[1] / "packages" / "ops" / "tests"))
from cost_observer import Cost, Observer

SIZES = (6, 15, 0)
N, ARRAY = sum(SIZES), 4 * sum(SIZES)  # elements, and bytes of one list


@pytest.fixture(scope="module")
def observer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observer]:
    """The observer, at work."""
    with Observer(tmp_path_factory.mktemp("costs")) as result:
        yield result


def parameters() -> list[Any]:
    result = [pt.ones(n, requires_grad=True) for n in SIZES]
    for each in result:
        each.grad = pt.ones(each.shape[0])
    return result


# Operations for each element, the first of which is the product of the gradient with its scale, and
# the number of lists that are written: the parameters, and the state.
STEPS = [
    (optim.SGD, {}, "sgd_step", 3, 1),
    (optim.SGD, {"weight_decay": 0.1}, "sgd_step", 5, 1),
    (optim.Adam, {}, "adam_step", 15, 3),
    (optim.Adam, {"weight_decay": 0.1, "amsgrad": True}, "adam_step", 17, 4),
    (optim.AdamW, {"weight_decay": 0.1}, "adam_step", 15, 3),
    (optim.Adagrad, {}, "adagrad_step", 1 + 2 + 5, 2),
]


@pytest.mark.parametrize(("make", "options", "name", "each", "lists"), STEPS)
def test_steps(
    observer: Observer, make: Any, options: dict[str, Any], name: str, each: int, lists: int
) -> None:
    optimizer = make(parameters(), lr=0.1, fused=True, **options)
    optimizer.step()
    seen, cost = observer.last()
    assert seen == name
    assert cost == Cost(each * N, (lists + 1) * ARRAY, lists * ARRAY)


def test_momentum_costs_more_after_the_first_step(observer: Observer) -> None:
    optimizer = optim.SGD(parameters(), lr=0.1, momentum=0.9)
    for each in (3, 6):
        optimizer.step()
        assert observer.last() == ("sgd_step", Cost(each * N, 3 * ARRAY, 2 * ARRAY))


def test_the_norm_of_gradients(observer: Observer) -> None:
    operator("grad_norm")([each.grad for each in parameters()])
    assert observer.last() == ("grad_norm", Cost(2 * N, ARRAY, 8))


def test_state(observer: Observer) -> None:
    param = pt.ones(5, 3)
    state = operator("optimizer_state")(param)
    assert observer.last() == ("optimizer_state", Cost(0, 0, 60))
    operator("optimizer_state_load")(state, pt.ones(5, 3, dtype=pt.float64))
    assert observer.last() == ("optimizer_state_load", Cost(0, 120, 60))
