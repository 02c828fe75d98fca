"""Pointwise operators of float16 and bfloat16 give what float32 gives, rounded once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.spec import Operator

HALVES = ["float16", "bfloat16"]
SPECIAL = [0, -0.0, 1, -1, 0.5, 2.5, -2.5, 1e-8, -6e-8, 6e4, np.inf, -np.inf, np.nan]
# operands of several dtypes
APART = {"complex", "polar", "where", "masked_fill", "ldexp"}


def pointwise() -> list[Operator]:
    """Return the operators whose operands may be halves, all of one dtype and without bounds."""
    return [
        spec
        for spec in specs.all()
        if spec.kind == "pointwise" and spec.name not in APART and not spec.unpredictable
        if spec.dtypes in ("floating", "inexact", "numeric", "arithmetic", "all", "any")
        if not spec.conditions and not spec.bounded and spec.promote in ("same", "float", "bool")
    ]


def operands(number: int, shape: tuple[int, ...], dtype: str) -> list[Any]:
    rng = np.random.default_rng(number)
    values = []
    for _ in range(number):
        x = (rng.standard_normal(shape) * 4).astype(np.float32)
        x[rng.random(shape) < 0.2] = rng.choice(SPECIAL)
        values.append(pc.from_numpy(x).to(getattr(pc, dtype)))
    return values


def arguments(spec: Operator, tensors: list[Any], parameters: dict[str, Any]) -> dict[str, Any]:
    names = [argument.name for argument in spec.operands]
    return {**parameters, **dict(zip(names, tensors, strict=True))}


def cases(number: int, dtype: str) -> Iterator[list[Any]]:
    """Operands of all lengths of rows, broadcast, strided, and with numbers at each place."""
    for n in (1, 5, 31, 32, 33, 64, 95, 300, 3001):
        yield operands(number, (n,), dtype)
    whole = operands(number, (3, 260), dtype)
    yield [x.T for x in whole]
    if number > 1:
        for k in range(number):
            yield [x[:, :1] if i == k else x for i, x in enumerate(whole)]
        for places in itertools.product([False, True], repeat=number):
            if any(places) and not all(places):
                yield [1.5 if at else x for at, x in zip(places, whole, strict=True)]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("spec", pointwise(), ids=lambda spec: spec.name)
def test_results_are_those_of_float32_rounded_once(spec: Operator, dtype: str) -> None:
    function, half = operator(spec.name), getattr(pc, dtype)
    kept = {each.name: 0.5 for each in spec.parameters if each.default is None}
    for tensors in cases(len(spec.operands), dtype):
        wide = [x if isinstance(x, float) else x.to(pc.float32) for x in tensors]
        try:
            want = function(**arguments(spec, wide, kept))
        except TypeError:  # the operator takes no number at this place
            assert any(isinstance(x, float) for x in tensors)
            continue
        got = function(**arguments(spec, tensors, kept))
        if want.dtype is pc.float32:
            want = want.to(half)
        assert got.dtype is want.dtype and got.shape == want.shape
        np.testing.assert_array_equal(plain(got), plain(want), err_msg=str(tensors))


def plain(x: Any) -> Any:
    return (x.to(pc.float32) if x.dtype in (pc.float16, pc.bfloat16) else x).numpy()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("n", [1, 32, 33, 1000])
def test_in_place(n: int, dtype: str) -> None:
    for name in ("add_", "mul_", "lerp_", "clamp_", "sqrt_", "round_"):
        x, y = (each.abs() for each in operands(2, (n,), dtype))
        extra = {"add_": [y], "mul_": [0.3], "lerp_": [y, 0.25], "clamp_": [0.5, 2]}.get(name, [])
        want = getattr(pc, name[:-1])(x, *extra)
        alias = x[:]
        getattr(x, name)(*extra)
        np.testing.assert_array_equal(plain(alias), plain(want))
