"""A number that does not fit in the dtype of an integer tensor never changes a result silently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.spec import Operator

# These wrap around, as all of their results do: a number counts modulo 2**8.
WRAPPING = {"add", "sub", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"}
LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}
VALUES = [0, 1, 2, 3, 5, 7, 100, 127]


def with_numbers() -> list[Operator]:
    """Return the operators of integer tensors that take a number in a tensor's place."""
    return [
        spec
        for spec in specs.all()
        if spec.kind == "pointwise"
        and spec.dtypes not in ("floating", "inexact")
        and len(spec.operands) > 1
        if spec.promote in ("same", "bool", "first") and not spec.conditions
        if any(each.type == "Tensor|Scalar" for each in spec.operands)
    ]


def call(spec: Operator, dtype: str, place: int, number: int) -> Any:
    names = [each.name for each in spec.operands]
    tensors = {name: pc.tensor(VALUES, dtype=dtype) for name in names}
    tensors[names[place]] = number
    parameters = {each.name: 1 for each in spec.parameters if each.default is None}
    return operator(spec.name)(**tensors, **parameters)


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("spec", with_numbers(), ids=lambda spec: spec.name)
def test_it_counts_by_its_value_or_is_refused(spec: Operator, dtype: str) -> None:
    low, high = LIMITS[dtype]
    for place, argument in enumerate(spec.operands):
        if argument.type != "Tensor|Scalar":
            continue
        for number in (low - 1, high + 1, high + 2, 300, 2**40):
            try:
                got = call(spec, dtype, place, number).numpy()
            except ValueError as error:
                assert spec.name.split(".")[0] in str(error) and argument.name in str(error)
                assert str(number) in str(error) and dtype in str(error)
                continue
            want = call(spec, "int64", place, number).numpy()
            if got.dtype != np.bool_ and spec.name in WRAPPING:
                want = want.astype(dtype)
            np.testing.assert_array_equal(got, want, err_msg=f"{argument.name}={number}")


def test_membership() -> None:
    x = pc.tensor([44, 1], dtype="int8")
    assert pc.isin(x, 300).tolist() == [False, False] and pc.isin(x, 44).tolist() == [True, False]
    assert not pc.isin(300, x).item() and pc.isin(1, x).item()
    assert pc.isin(x, 300, invert=True).tolist() == [True, True]
