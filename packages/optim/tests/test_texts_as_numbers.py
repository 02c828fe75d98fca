"""Texts are no numbers: an option "0.1" of an optimizer or a scheduler is a TypeError, as in
PyTorch, in the constructor, in a group, and in a group that was changed later.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_optim
from plait_optim import lr_scheduler


def text(value: Any) -> Any:
    return tuple(map(text, value)) if isinstance(value, tuple) else str(value)


def numeric(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(each is None or numeric(each) for each in value)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def optimizers() -> Iterator[Any]:
    for name in plait_optim.__all__:
        kind = getattr(plait_optim, name)
        if not inspect.isclass(kind) or not issubclass(kind, plait_optim.Optimizer):
            continue
        for option, parameter in inspect.signature(kind).parameters.items():
            if numeric(parameter.default):
                yield pytest.param(kind, option, parameter.default, id=f"{name}-{option}")


def parameters() -> list[Any]:
    return [np.ones((2, 2), "float32")]


@pytest.mark.parametrize(("kind", "option", "default"), list(optimizers()))
def test_an_optimizer_refuses_a_text(kind: Any, option: str, default: Any) -> None:
    needed = {} if option == "lr" else {"lr": 0.1}
    with pytest.raises(TypeError):
        kind(parameters(), **needed, **{option: text(default)})
    with pytest.raises(TypeError):
        kind([{"params": parameters(), option: text(default)}], lr=0.1)


def used_in_steps() -> Iterator[Any]:
    """The options that each step reads from the group."""
    for each in optimizers():
        kind, option, default = each.values
        if kind not in (plait_optim.LBFGS, plait_optim.SparseAdam, plait_optim.Muon):
            yield pytest.param(kind, option, default, id=each.id)


@pytest.mark.parametrize(("kind", "option", "default"), list(used_in_steps()))
def test_a_changed_group_is_not_read_as_numbers(kind: Any, option: str, default: Any) -> None:
    """A step with a text has no effect, or raises."""
    expected, got = parameters(), parameters()
    plain, changed = kind(expected, lr=0.5), kind(got, lr=0.5)
    plain.step(grads=[np.ones((2, 2), "float32")])
    changed.param_groups[0][option] = text(
        (0.25,) * len(default) if isinstance(default, tuple) else 0.25
    )
    try:
        changed.step(grads=[np.ones((2, 2), "float32")])
    except TypeError:
        return
    np.testing.assert_array_equal(got[0], expected[0])


SCHEDULERS: dict[str, dict[str, Any]] = {
    "StepLR": {"step_size": 2},
    "MultiStepLR": {"milestones": [2, 4]},
    "ExponentialLR": {"gamma": 0.9},
    "CosineAnnealingLR": {"T_max": 5},
    "CosineAnnealingWarmRestarts": {"T_0": 5},
    "CyclicLR": {"base_lr": 0.1, "max_lr": 0.2},
    "OneCycleLR": {"max_lr": 0.2, "total_steps": 10},
    "LambdaLR": {"lr_lambda": lambda epoch: 1.0},
    "MultiplicativeLR": {"lr_lambda": lambda epoch: 1.0},
}
"""The arguments that a scheduler needs beside its defaults."""


def scheduler_options() -> Iterator[Any]:
    for name in lr_scheduler.__all__:
        kind = getattr(lr_scheduler, name)
        if not inspect.isclass(kind) or name in ("LRScheduler", "SequentialLR", "ChainedScheduler"):
            continue
        for option, parameter in inspect.signature(kind).parameters.items():
            kinds = str(parameter.annotation)
            if re.search(r"\b(int|float)\b", kinds) and "Callable" not in kinds:
                value = SCHEDULERS.get(name, {}).get(option, parameter.default)
                yield pytest.param(kind, option, value, id=f"{name}-{option}")


@pytest.mark.parametrize(("kind", "option", "value"), list(scheduler_options()))
def test_a_scheduler_refuses_a_text(kind: Any, option: str, value: Any) -> None:
    optimizer = plait_optim.SGD(parameters(), lr=0.1, momentum=0.9)
    arguments = dict(SCHEDULERS.get(kind.__name__, {}))
    kind(optimizer, **arguments)
    bad = [str(each) for each in value] if isinstance(value, list) else str(value or 3)
    with pytest.raises(TypeError, match=option):
        kind(optimizer, **{**arguments, option: bad})


def test_the_sweeps_have_cases() -> None:
    assert len(list(optimizers())) > 40 and len(list(scheduler_options())) > 30
