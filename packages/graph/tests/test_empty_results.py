"""Strides of results without elements are those of eager calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plait_autograd as autograd
import plait_core as pc
from plait_graph import compile

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x.t() + 1,
    "matmul": lambda x: x @ x.t(),
    "cat": lambda x: pc.cat([x.t(), x.t()], 1),
    "stack": lambda x: pc.stack([x.t(), x.t()]),
    "sum": lambda x: x.t().sum(0, keepdim=True),
    "cumsum": lambda x: x.t().cumsum(0),
    "clone": lambda x: x.t().clone(),
    "contiguous": lambda x: x.t().contiguous(),
    "permute": lambda x: x.reshape(*x.shape, 1).permute(2, 1, 0) * 2,
    "zeros_like": lambda x: pc.zeros_like(x.t()),
    "part": lambda x: x.t()[:, :0] + 1,
    "to": lambda x: x.t().to(pc.float64),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("frozen", [False, True], ids=["deferred", "frozen"])
def test_strides_of_empty_results(name: str, frozen: bool) -> None:
    function = FUNCTIONS[name]
    for shape in ((0, 3), (3, 0), (0, 1), (1, 0), (0, 0)):
        x, compiled = pc.randn(*shape), compile(function, frozen=frozen)
        with autograd.no_grad():
            expected = function(x)
            for _ in range(4):
                result = compiled(x)
                assert (result.shape, result.stride()) == (expected.shape, expected.stride())
