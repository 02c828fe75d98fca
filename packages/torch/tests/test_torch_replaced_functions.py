"""Functions that a program replaces; programs/operation_counts.py replaces all of them."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest


@pytest.mark.parametrize("place", ["torch.nn.functional", "torch.nn.modules.linear.F"])
def test_ways_to_replace_a_function(torch: Any, place: str) -> None:
    layer, x = torch.nn.Linear(3, 2), torch.ones(1, 3)
    with mock.patch(f"{place}.linear", return_value=5):
        assert layer(x) == 5
    assert layer(x).shape == (1, 2)


def test_layers_that_call_functions_of_torch(torch: Any) -> None:
    with mock.patch("torch.tanh", return_value=7), mock.patch("torch.sigmoid", return_value=8):
        assert torch.nn.Tanh()(torch.ones(1)) == 7 and torch.nn.Sigmoid()(torch.ones(1)) == 8
    assert torch.nn.Tanh()(torch.zeros(1)).tolist() == [0.0]
