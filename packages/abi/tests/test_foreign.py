"""Tests of other libraries' arrays as arguments, and of results in that form."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_abi

pytestmark = pytest.mark.usefixtures("probe")


def add(*args: Any, **kwargs: Any) -> Any:
    return plait_abi.operator("probe_add")(*args, **kwargs)


class OnlyDLPack:
    """An array that supports DLPack but not the buffer protocol."""

    def __init__(self, array: np.ndarray, versioned: bool = True) -> None:
        self.array, self.versioned, self.calls = array, versioned, 0

    def __dlpack__(self, **kwargs: Any) -> Any:
        self.calls += 1
        if kwargs and not self.versioned:
            raise TypeError("max_version is unknown here")
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack_with_and_without_versions(versioned: bool) -> None:
    array = np.arange(3.0)
    wrapped = OnlyDLPack(array, versioned)
    assert plait_abi.operator("probe_add_")(wrapped, 1) is wrapped
    assert array.tolist() == [1, 2, 3]
    assert wrapped.calls == (1 if versioned else 2)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0)[::-1],
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0).reshape(3, 4)[::-2, ::2],
        np.broadcast_to(np.arange(3.0), (2, 3)),
        np.zeros((0, 3)),
        np.array(3.0),
        np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[:, ::-1],
    ],
)
@pytest.mark.parametrize("wrap", [lambda a: a, OnlyDLPack])
def test_any_strides(array: np.ndarray, wrap: Callable[[np.ndarray], Any]) -> None:
    result = np.from_dlpack(add(wrap(array), 1))
    np.testing.assert_array_equal(result, array + 1)


def test_writing_through_strides() -> None:
    base = np.zeros((4, 4))
    plait_abi.operator("probe_add_")(base[::-2, 1::2], 1)
    expected = np.zeros((4, 4))
    expected[::-2, 1::2] += 1
    np.testing.assert_array_equal(base, expected)


@pytest.mark.parametrize("wrap", [lambda a: a, OnlyDLPack])
def test_read_only_arrays_are_read_and_not_written(wrap: Callable[[np.ndarray], Any]) -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    assert np.from_dlpack(add(wrap(array), 1)).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="`self` is read-only and would be written"):
        plait_abi.operator("probe_add_")(wrap(array), 1)
    assert array.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        (np.array(["a"]), plait_abi.DTypeError, "format 1w"),
        (np.array([1], "datetime64[s]"), plait_abi.DTypeError, "cannot include dtype 'M'"),
        (np.zeros(2, ">f8"), plait_abi.DTypeError, "byte order"),
        (np.zeros(2, "f8, i4")["f0"], ValueError, "whole elements"),
        (np.frombuffer(bytes(17), np.uint8)[1:].view(np.float64), ValueError, "aligned"),
        (np.zeros(2, np.longdouble), plait_abi.DTypeError, "format g"),
        (np.array([None]), plait_abi.DTypeError, "format O"),
    ],
)
def test_unsupported_arrays_are_refused(array: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        add(array, 1)


def test_a_capsule_of_another_major_version_is_refused() -> None:
    class Strange:
        def __dlpack__(self, **kwargs: Any) -> Any:
            return object()

    with pytest.raises(TypeError, match="a fresh DLPack capsule is required"):
        add(Strange(), 1)


def test_errors_of_dlpack_methods_are_passed_on() -> None:
    class Refusing:
        def __dlpack__(self, **kwargs: Any) -> Any:
            raise BufferError("requires grad")

    with pytest.raises(BufferError, match="requires grad"):
        add(Refusing(), 1)


def test_an_array_given_twice_is_one_tensor() -> None:
    array = OnlyDLPack(np.arange(3.0))
    plait_abi.operator("probe_add_")(array, array)
    assert array.array.tolist() == [0, 2, 4]
    assert array.calls == 1


def test_owners_live_as_long_as_views_of_them() -> None:
    class Owner(np.ndarray):
        pass

    array = np.arange(4.0).view(Owner)
    reference = weakref.ref(array)
    part = plait_abi.operator("probe_halves")(array)[1]
    del array
    gc.collect()
    assert reference() is not None
    assert np.from_dlpack(part).tolist() == [2, 3]
    del part
    gc.collect()
    assert reference() is None


def test_results_are_handles_without_a_tensor_type(fresh: Callable[[str], str]) -> None:
    out = fresh(
        """
import numpy as np, plait_abi
plait_abi.load(PROBE)
h = plait_abi.operator("probe_add")(np.ones((2, 3)), 1)
print(type(h) is plait_abi.Handle, h.shape, h.dtype, h.device, repr(h))
again = plait_abi.operator("probe_add")(h, h)
print(type(again) is plait_abi.Handle, np.from_dlpack(again).tolist(), h.__dlpack_device__())
"""
    )
    first, second = out.splitlines()
    assert first == "True (2, 3) plait.float64 cpu <plait Handle of shape (2, 3), float64>"
    assert second == "True [[4.0, 4.0, 4.0], [4.0, 4.0, 4.0]] (1, 0)"


def test_no_reference_is_left_behind() -> None:
    array = np.ones(3)
    wrapped = OnlyDLPack(array)
    before = sys.getrefcount(array), sys.getrefcount(wrapped)
    for _ in range(5):
        add(wrapped, array)
        with pytest.raises(TypeError):
            add(wrapped, "x")
    assert (sys.getrefcount(array), sys.getrefcount(wrapped)) == before
