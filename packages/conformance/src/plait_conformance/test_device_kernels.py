"""Role ``device``: every operator, on tensors of the device, against the reference.

Calls return before they are done; results are read by copies to the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_abi
from plait_conformance._cases import Case
from plait_conformance._checks import (
    check_error,
    check_inplace,
    check_layouts,
    check_out,
    check_unpredictable,
    check_values,
)
from plait_conformance._device import Device
from plait_ops.spec import ErrorFact, Operator


@pytest.fixture(autouse=True)
def no_error_is_left(device: Device) -> Iterator[None]:
    """An error that a kernel finds late belongs to the test that called it."""
    yield
    device.synchronize()


def test_what_the_runtime_calls(device: Device) -> None:
    """Copies, results in another layout or dtype, and gradients that are zero need these."""
    try:
        check_what_the_runtime_calls(device)
    except NotImplementedError as error:
        pytest.fail(f"a device must have copy_, clone, dense, cast and fill_: {error}")


def check_what_the_runtime_calls(device: Device) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = device.put(array)
    operator = plait_abi.operator
    columns = operator("as_strided")(x, (3, 2), (1, 3))
    same = device.empty_like(array)
    operator("copy_")(same, x)
    filled = device.put(array)
    operator("fill_")(filled, 7)
    for name, got, want in (
        ("copy_", same, array),
        ("clone", operator("clone")(x), array),
        ("dense", operator("dense")(columns), array.T),
        ("cast", *cast_to_another(x, array)),
        ("fill_", filled, np.full((2, 3), 7, np.float32)),
    ):
        np.testing.assert_array_equal(device.take(got)[0], want, err_msg=name)


def cast_to_another(x: Any, array: Any) -> tuple[Any, Any]:
    """Cast to the first dtype that the device has: it need not have all of them."""
    dtypes = ("float64", "float16", "int32", "int64", "uint8", "bool")
    for dtype in dtypes:
        try:
            result = plait_abi.operator("cast")(x, dtype)
        except NotImplementedError:
            if dtype == dtypes[-1]:
                raise
        else:
            break
    return result, array.astype(dtype)


def test_values(any_case: Case, device: Device) -> None:
    check_values(any_case, device)


def test_layouts(case: Case, device: Device) -> None:
    check_layouts(case, device)


def test_out(case: Case, device: Device) -> None:
    check_out(case, device)


def test_inplace(case: Case, device: Device) -> None:
    check_inplace(case, device)


def test_unpredictable(draw_case: Case, device: Device) -> None:
    check_unpredictable(draw_case, device)


def test_errors(operator: Operator, fact: ErrorFact, sample: Any, device: Device) -> None:
    of_the_cpu = check_error(operator, fact, sample)
    text = check_error(operator, fact, sample, device)
    name, colon, _ = of_the_cpu.partition(": ")
    if colon and operator.kind != "composite":  # a late error names the part that found it
        assert name in text, f"on {device} the error does not name {name}: {text}"


def test_numbers_of_the_host(device: Device) -> None:
    x, number = device.put(np.arange(6, dtype=np.float32)), np.array(2, np.float32)
    for name, want in (("add", np.arange(6) + 2), ("mul", np.arange(6) * 2)):
        for args in ((x, number), (number, x)):
            got = device.take(plait_abi.operator(name)(*args))
            np.testing.assert_array_equal(got[0], want.astype(np.float32), err_msg=name)
    number_read_at_the_call = plait_abi.operator("add")(x, number)
    number[...] = 100
    np.testing.assert_array_equal(device.take(number_read_at_the_call)[0], np.arange(6) + 2)
