"""Hooks: their arguments, what they may change; copies of an optimizer have none."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import plait_optim as optim


class Halve(optim.Optimizer):
    """Overrides `step`, as programs written for PyTorch do."""

    def step(self, closure: Any = None, factor: float = 0.5) -> Any:
        for group in self.param_groups:
            for p in group["params"]:
                p *= factor


class HalveTwice(Halve):
    def step(self, closure: Any = None, factor: float = 0.5) -> Any:
        super().step(closure, factor)
        super().step(closure, factor)


@pytest.mark.parametrize(("make", "times"), [(Halve, 1), (HalveTwice, 2)])
def test_hooks_run_once_around_an_overridden_step(make: Any, times: int) -> None:
    p = np.ones(1)
    optimizer = make([p], {})
    calls: list[Any] = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append((o, args, kwargs)))
    optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append(p[0]))
    optimizer.step(None, factor=0.5)
    assert calls == [(optimizer, (optimizer, None), {"factor": 0.5}), 0.5**times]


def test_a_hook_may_change_the_arguments() -> None:
    p = np.ones(1)
    optimizer = optim.SGD([p], lr=1.0)
    with optimizer.register_step_pre_hook(
        lambda o, args, kwargs: (args, {"grads": [10 * kwargs["grads"][0]]})
    ):
        optimizer.step(grads=[np.ones(1)])
    assert p[0] == -9
    optimizer.step(grads=[np.ones(1)])
    assert p[0] == -10
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 7)  # type: ignore[arg-type, return-value]
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step(grads=[np.ones(1)])
    assert p[0] == -10


def test_hooks_run_in_order_and_may_be_put_in_front() -> None:
    optimizer = optim.SGD([np.ones(1)])
    calls: list[str] = []
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("a"))
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("b"))
    front = optimizer.register_state_dict_pre_hook(lambda o: calls.append("c"), prepend=True)
    optimizer.state_dict()
    front.remove()
    front.remove()
    optimizer.state_dict()
    assert "".join(calls) == "cabab"


def test_a_copy_starts_without_hooks() -> None:
    optimizer = optim.SGD([np.ones(1)])
    optimizer.register_step_pre_hook(lambda o, args, kwargs: pytest.fail("not of the copy"))
    copy.deepcopy(optimizer).step(grads=[np.ones(1)])


def test_a_step_that_failed_lets_hooks_run_again() -> None:
    optimizer = optim.SGD([np.ones(1)], lr=1.0)
    calls: list[int] = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append(1))
    with pytest.raises(ValueError, match="`grads` must hold"):
        optimizer.step(grads=[])
    optimizer.step(grads=[np.ones(1)])
    assert calls == [1, 1]


def test_a_wrapper_without_init_has_hooks_once_it_has_their_dicts() -> None:
    class Wrapper(optim.Optimizer):
        def __init__(self, inner: optim.Optimizer) -> None:
            self._optimizer_step_pre_hooks = {}  # type: ignore[assignment]
            self._optimizer_step_post_hooks = {}  # type: ignore[assignment]
            self._patch_step_function()
            self.inner = inner

        def step(self, *args: Any, **named: Any) -> Any:
            return self.inner.step(*args, **named)

    wrapper, calls = Wrapper(optim.SGD([np.ones(2)], lr=0.1)), []
    wrapper.register_step_pre_hook(lambda *args: calls.append("before"))
    wrapper.step(grads=[np.ones(2)])
    assert calls == ["before"]
