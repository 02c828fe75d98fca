"""tensor(data) and the functions that make tensors from Python's numbers."""

from __future__ import annotations

import array as stdlib_array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (True, "bool"), (1, "int64"), (1.5, "float32"), (1j, "complex64"),
        ([True, False], "bool"), ([True, 2], "int64"), ([1, 2.5], "float32"),
        ([1, 2j], "complex64"),
        ([], "float32"), ([[], []], "float32"), (((1, 2), [3, 4]), "int64"), ([[[1.0]]], "float32"),
    ],
)  # fmt: skip
def test_numbers_and_lists(data: Any, dtype: str) -> None:
    x = pc.tensor(data)
    assert x.dtype is pc.dtype(dtype)
    assert x.shape == np.shape(data)
    assert x.tolist() == (np.array(data).tolist() if np.size(data) else data)


_KNOWN = {"bool": [False, True, True], "float8_e8m0fnu": [2.0**-127, 1, 2]}  # which has no 0


@pytest.mark.parametrize("name", [d.name for d in __import__("plait_abi").binding.dtypes])
def test_every_dtype_can_be_requested(name: str) -> None:
    x = pc.tensor([0, 1, 2], dtype=pc.dtype(name))
    assert x.dtype is pc.dtype(name)
    assert x.tolist() == _KNOWN.get(name, [0, 1, 2])
    assert pc.tensor([1.7], dtype=name).dtype is pc.dtype(name)


def test_floats_are_cut_for_integers() -> None:
    assert pc.tensor([1.9, -1.9], dtype=pc.int32).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("data", "dtype"),
    [([256], "uint8"), ([-1], "uint16"), (2**63, "int64"), (-1, "uint64"), (2**64, "uint64")],
)
def test_numbers_that_do_not_fit(data: Any, dtype: str) -> None:
    with pytest.raises(OverflowError, match=f"does not fit {dtype}"):
        pc.tensor(data, dtype=dtype)


@pytest.mark.parametrize(
    "data", [[[1, 2], [3]], [1, [2]], [[1], 2], [[[1]], [[1, 2]]], [[], [1]], [[1, 2], []]]
)
def test_ragged_lists(data: Any) -> None:
    with pytest.raises(ValueError, match="nested sequences must have equal lengths; data"):
        pc.tensor(data)


@pytest.mark.parametrize("data", ["abc", b"abc", None, {}, {1, 2}])
def test_other_types(data: Any) -> None:
    with pytest.raises(TypeError, match="tensor: `data` must be a number, a nested sequence"):
        pc.tensor(data)


def test_a_list_that_contains_itself() -> None:
    data: list[Any] = []
    data.append(data)
    with pytest.raises(ValueError, match="at most 64 dimensions are supported, got deeper nesting"):
        pc.tensor(data)


def test_arrays_are_copied() -> None:
    array = np.arange(6.0).reshape(2, 3)
    for source in (array, array.T, array[::-1], pc.from_numpy(array), memoryview(array)):
        x = pc.tensor(source)
        assert x.dtype is pc.float64
        assert x.tolist() == np.asarray(source).tolist()
        assert not np.shares_memory(x.numpy(), array)
    assert pc.tensor(array, dtype=pc.int8).dtype is pc.int8
    assert pc.tensor(stdlib_array.array("i", [1, 2])).dtype is pc.int32
    strange = np.zeros(2, "i4, i8")["f1"]
    assert pc.tensor(strange).tolist() == [0, 0]


def test_lists_of_arrays_and_tensors() -> None:
    rows = [np.arange(3.0), np.ones(3)]
    assert pc.tensor(rows).tolist() == [[0, 1, 2], [1, 1, 1]]
    assert pc.tensor([pc.tensor(1), pc.tensor(2)]).tolist() == [1, 2]
    assert pc.tensor([pc.ones(2), pc.zeros(2)]).dtype is pc.float32
    assert pc.tensor([np.float64(1), np.float64(2)]).tolist() == [1, 2]
    assert pc.tensor([[1, 2], np.array([3, 4])]).tolist() == [[1, 2], [3, 4]]


def test_wrong_keywords() -> None:
    with pytest.raises(TypeError, match="`dtype` must be a dtype or None, got 3"):
        pc.tensor(1, dtype=3)
    with pytest.raises(TypeError, match=r"`device` must be a device or None, got 3\.5"):
        pc.tensor(1, device=3.5)
    with pytest.raises(ValueError, match="device: "):
        pc.tensor(1, device="gpu")
    assert pc.tensor([1, 2], device="meta").shape == (2,)


def test_creation_operators_take_requires_grad() -> None:
    assert not pc.zeros(2, requires_grad=False).requires_grad
    assert pc.zeros(2, 3).shape == pc.zeros((2, 3)).shape == pc.zeros(size=[2, 3]).shape == (2, 3)
    assert pc.zeros(()).shape == ()
    with pytest.raises(TypeError, match="unexpected keyword `requires_grad`"):
        pc.add(1, pc.ones(1), requires_grad=True)  # type: ignore[call-arg]


def test_dtype_ranges() -> None:
    for name in ("float16", "float32", "float64"):
        ours, theirs = pc.finfo(pc.dtype(name)), np.finfo(name)
        for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution"):
            expected = pytest.approx(
                float(getattr(theirs, field)), rel=1e-3 * (field == "resolution")
            )
            assert getattr(ours, field) == expected, (name, field)
    assert pc.finfo().dtype == "float32"
    assert (pc.finfo(pc.bfloat16).eps, pc.finfo(pc.complex64).bits) == (2**-7, 32)
    for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"):
        assert (pc.iinfo(pc.dtype(name)).min, pc.iinfo(pc.dtype(name)).max) == (
            np.iinfo(name).min,
            np.iinfo(name).max,
        )
    with pytest.raises(TypeError, match="finfo: a floating-point dtype is required, got int8"):
        pc.finfo(pc.int8)
    with pytest.raises(TypeError, match="iinfo: an integer dtype is required, got bool"):
        pc.iinfo(pc.bool_)
    assert "eps=1.19209e-07" in repr(pc.finfo())
    assert repr(pc.iinfo(pc.int8)) == "iinfo(min=-128, max=127, dtype=int8)"


def test_names_of_dtypes() -> None:
    assert (pc.float, pc.double, pc.half) == (pc.float32, pc.float64, pc.float16)
    assert (pc.int, pc.long, pc.short, pc.bool) == (pc.int32, pc.int64, pc.int16, pc.bool_)


@pytest.mark.parametrize(
    ("data", "location"),
    [
        ([[1, 2], [3]], r"data\[1\] is of length 1, not 2"),
        ([[[1, 2], [3, 4]], [[5, 6], [7]]], r"data\[1\]\[1\] is of length 1, not 2"),
        ([[1], 2], r"data\[1\] is a number beside a sequence"),
        ([1, [2]], r"data\[1\] is a sequence beside a number"),
    ],
)
def test_ragged_lists_name_the_element(data: Any, location: str) -> None:
    with pytest.raises(ValueError, match=location):
        pc.tensor(data)


@pytest.mark.parametrize(
    ("data", "text"),
    [([1, None], r"data\[1\] is None"), ([[1], ["a"]], r"data\[1\]\[0\] is str")],
)
def test_what_lists_cannot_hold(data: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        pc.tensor(data)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_integers_hold_no_infinities(value: float) -> None:
    with pytest.raises(OverflowError, match=f"{value} does not fit int32"):
        pc.tensor([value], dtype=pc.int32)


def test_sequences_of_tensors_promote() -> None:
    x = pc.tensor([pc.tensor(1.5), pc.tensor(2)])
    assert x.dtype is pc.float32
    assert x.tolist() == [1.5, 2.0]
    y = pc.tensor([[pc.ones(2), [3, 4]]], dtype=pc.float64)
    assert y.dtype is pc.float64
    assert y.tolist() == [[[1.0, 1.0], [3.0, 4.0]]]


def test_new_tensors() -> None:
    x = pc.ones(2, dtype=pc.float64)
    assert x.new_tensor([1, 2]).dtype is pc.float64
    assert x.new_tensor([1, 2], dtype=pc.int8).dtype is pc.int8
    assert x.new_full((2,), 7).tolist() == [7.0, 7.0]
    assert x.new_empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert pc.empty((2, 2), device="meta").new_ones(3).device.type == "meta"


def test_out_forms() -> None:
    target = pc.empty(0, dtype=pc.float64)
    assert pc.arange(3, out=target) is target
    assert target.tolist() == [0.0, 1.0, 2.0]
    strided = pc.zeros(6)[::2]
    pc.linspace(0, 1, 3, out=strided)
    assert strided.tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(pc.DTypeError, match=r"float32.*int64"):
        pc.linspace(0, 1, 3, out=pc.zeros(3, dtype=pc.int64))


@pytest.fixture
def double() -> Iterator[None]:
    pc.set_default_dtype(pc.float64)
    yield
    pc.set_default_dtype(pc.float32)


@pytest.mark.usefixtures("double")
def test_the_default_dtype_reaches_operators() -> None:
    whole = pc.tensor([1, 2])
    for x in (
        pc.zeros(2), pc.ones(2), pc.empty(2), pc.rand(2), pc.randn(2), pc.eye(2),
        pc.linspace(0, 1, 2), pc.logspace(0, 1, 2), pc.arange(1.5), pc.full((2,), 1.0),
        pc.hann_window(4), pc.scalar_tensor(1), pc.normal(0.0, 1.0, (2,)),
        whole / 2, whole + 0.5, whole.exp(), whole.true_divide(whole), pc.special.i0e(whole),
    ):  # fmt: skip
        assert x.dtype is pc.float64
    assert pc.full((2,), 1j).dtype is pc.complex128
    assert (whole + 1j).dtype is pc.complex128
    assert (pc.ones(2, dtype=pc.float32) + 0.5).dtype is pc.float32
    assert (pc.ones(2, dtype=pc.float32) + 1j).dtype is pc.complex64


def test_half_as_the_default_dtype() -> None:
    pc.set_default_dtype(pc.float16)
    try:
        assert (pc.tensor([1]) + 0.5).dtype is pc.float16
        assert pc.linspace(0, 1, 3).dtype is pc.float16
        assert pc.full((2,), 1j).dtype is pc.complex64
    finally:
        pc.set_default_dtype(pc.float32)


def test_arrays_without_elements_in_tuples() -> None:
    none = np.zeros(0, np.int64)
    for data, shape in (
        ((none, none), (2, 0)),
        ([(none, none)], (1, 2, 0)),
        ([(none, none), (none, none)], (2, 2, 0)),
        (np.nonzero(np.zeros((2, 3))), (2, 0)),
    ):
        result = pc.tensor(data)
        assert result.shape == shape and result.dtype is pc.int64
    assert pc.tensor([(), ()]).shape == (2, 0)


@pytest.mark.parametrize("name", ["foo", "cpu:x", "cpu:-1", "", "cuda:", "CPU", "cpu:0:0"])
def test_wrong_devices_are_runtime_errors_too(name: str) -> None:
    for call in (lambda: pc.device(name), lambda: pc.ones(1, device=name)):
        with pytest.raises(RuntimeError, match="device: "):
            call()
    with pytest.raises(RuntimeError, match="`index` must be"):
        pc.device("cuda", -1)
    with pytest.raises(RuntimeError, match="repeat: `repeats` must not be negative"):
        pc.ones(2).repeat(-1)


def test_asarray_of_a_tensor_keeps_its_history() -> None:
    pytest.importorskip("plait_autograd")
    x = pc.tensor([3.0, 4.0], requires_grad=True)
    y = x * 2
    assert pc.asarray(x) is x and pc.asarray(y) is y
    assert pc.asarray(y, requires_grad=True).grad_fn is not None
    assert not pc.asarray(y, requires_grad=False).requires_grad
    for result in (pc.asarray(y, copy=True), pc.asarray(y, dtype=pc.float64)):
        assert result.grad_fn is not None and result.data_ptr() != y.data_ptr()
        assert not pc.asarray(result, requires_grad=False, copy=True).requires_grad
