"""Errors about arguments of the wrong kind name the optimizer or schedule, and the argument."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import plait_optim as optim
from plait_optim import lr_scheduler


def optimizer() -> Any:
    return optim.SGD([np.ones(2)], lr=0.1)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: optim.Adam([np.ones(2)], betas=None),
            "Adam: `betas` must be a sequence of numbers, got None",
        ),
        (
            lambda: optim.Adadelta([np.ones(2)], rho="a"),
            "Adadelta: `rho` must be a number, got str",
        ),
        (
            lambda: lr_scheduler.ConstantLR(optimizer(), "a"),
            "ConstantLR: `factor` must be a number, got str",
        ),
    ],
)
def test_the_argument_is_named(call: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == text


def test_signatures_stay() -> None:
    assert list(inspect.signature(optim.Adam).parameters)[:2] == ["params", "lr"]
