"""Compiled functions in regions of autocast."""

from __future__ import annotations

from typing import Any

import pytest

import plait
from plait_graph import compile
from plait_torch._autocast import autocast


@pytest.mark.parametrize("frozen", [True, False])
def test_dtype_of_the_region(frozen: bool) -> None:
    module = plait.nn.Linear(2, 1)
    compiled: Any = compile(module, frozen=frozen)
    x = plait.ones(1, 2)
    for region in ("float32", "bfloat16", "float16", "float32", "bfloat16"):
        for _ in range(3):
            if region == "float32":
                assert compiled(x).dtype == plait.float32
                continue
            with autocast("cpu", dtype=getattr(plait, region)):
                result = compiled(x)
            assert result.dtype == getattr(plait, region)


@pytest.mark.parametrize("frozen", [True, False])
def test_a_region_inside(frozen: bool) -> None:
    module = plait.nn.Linear(2, 1)

    def function(x: Any) -> Any:
        with autocast("cpu", dtype=plait.bfloat16):
            return module(x)

    compiled = compile(function, frozen=frozen)
    for _ in range(4):
        x = plait.randn(3, 2)
        result = compiled(x)
        assert result.dtype == plait.bfloat16
        got = plait.autograd.grad(result.sum(), [module.weight])[0]
        assert plait.equal(got, plait.autograd.grad(function(x).sum(), [module.weight])[0])
