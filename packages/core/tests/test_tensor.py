"""Tensor: attributes, Python's operators, conversions."""

from __future__ import annotations

import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_core as pc

BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
INTEGER = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
A = np.array([[1.5, -2.0, 3.0], [4.0, 0.5, -6.0]], np.float32)
B = np.array([[2.0, 2.0, -1.0], [4.0, 3.0, 2.0]], np.float32)


def test_attributes() -> None:
    x = pc.tensor(A)
    assert type(x.shape) is pc.Size
    assert x.shape == (2, 3)
    assert x.shape.numel() == x.numel() == x.nelement() == 6
    assert (x.ndim, x.dim(), x.ndimension()) == (2, 2, 2)
    assert x.dtype is pc.float32
    assert x.device == pc.device("cpu")
    assert (x.itemsize, x.element_size(), x.nbytes) == (4, 4, 24)
    assert (x.stride(), x.stride(0), x.stride(-1)) == ((3, 1), 3, 1)
    assert (x.size(), x.size(0), x.size(dim=-1)) == ((2, 3), 2, 3)
    assert x.is_contiguous()
    assert not x.T.is_contiguous()
    assert (x[1].storage_offset(), x[1].data_ptr() - x.data_ptr()) == (3, 12)
    assert (x.is_floating_point(), x.is_complex(), x.is_signed()) == (True, False, True)
    assert len(x) == 2
    assert x._version == 0
    with pytest.raises(
        IndexError, match=r"size: `dim` must be in \[-2, 1\] for shape \(2, 3\); got 2"
    ):
        x.size(2)
    with pytest.raises(TypeError, match="size: only `dim` is accepted"):
        x.size(0, 1)
    with pytest.raises(AttributeError):
        x.shape = (3, 2)  # type: ignore[misc]


def test_size_is_a_tuple() -> None:
    size = pc.Size([2, np.int64(3)])
    assert size == (2, 3)
    assert repr(size) == "plait.Size([2, 3])"
    assert type(size[:1]) is type(size.__add__((4,))) is type(size * 2) is pc.Size
    assert pickle.loads(pickle.dumps(size)) == size
    assert (pc.Size().numel(), pc.Size([0, 5]).numel()) == (1, 0)
    with pytest.raises(TypeError):
        pc.Size([1.5])


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators_with_tensors_and_numbers(name: str) -> None:
    function = BINARY[name]
    with np.errstate(all="ignore"):
        for left, right in [(A, B), (A, 2.0), (2.0, B), (A, 3), (3, B)]:
            ours = function(
                *(pc.tensor(v) if isinstance(v, np.ndarray) else v for v in (left, right))
            )
            expected = function(left, right)
            assert isinstance(ours, pc.Tensor)
            assert ours.dtype is (pc.float32 if expected.dtype != bool else pc.bool_)
            np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", INTEGER)
def test_integer_operators(name: str) -> None:
    function = INTEGER[name]
    a, b = np.array([1, 6, 12]), np.array([3, 3, 10])
    np.testing.assert_array_equal(function(pc.tensor(a), pc.tensor(b)).numpy(), function(a, b))
    np.testing.assert_array_equal(function(pc.tensor(a), 3).numpy(), function(a, 3))
    np.testing.assert_array_equal(function(3, pc.tensor(a)).numpy(), function(3, a))


def test_matrix_product_and_unary() -> None:
    np.testing.assert_allclose((pc.tensor(A) @ pc.tensor(B).T).numpy(), A @ B.T, rtol=1e-6)
    x = pc.tensor(A)
    np.testing.assert_array_equal((-x).numpy(), -A)
    np.testing.assert_array_equal(abs(x).numpy(), abs(A))
    assert (+x) is x
    quotient, rest = divmod(x, 2)
    np.testing.assert_array_equal(quotient.numpy(), A // 2)
    np.testing.assert_array_equal(rest.numpy(), A % 2)
    np.testing.assert_array_equal((~pc.tensor([True, False])).numpy(), [False, True])


@pytest.mark.parametrize(
    "function",
    [
        operator.iadd,
        operator.isub,
        operator.imul,
        operator.itruediv,
        operator.ifloordiv,
        operator.imod,
    ],
)
def test_in_place_operators_keep_identity_and_count_versions(function: Callable[..., Any]) -> None:
    for right in (pc.tensor(B), 2, 2.0):
        x = pc.tensor(A)
        address = x.data_ptr()
        y = x
        y = function(y, right)
        assert y is x
        assert x.data_ptr() == address
        assert x._version == 1
        expected = function(A.copy(), right.numpy() if isinstance(right, pc.Tensor) else right)
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("other", ["a", None, object(), [1.0], {}])
def test_operators_leave_unknown_types_to_python(other: object) -> None:
    x = pc.tensor(A)
    with pytest.raises(TypeError, match="unsupported operand type"):
        x + other
    with pytest.raises(TypeError, match=r"unsupported operand type|can only concatenate"):
        other + x  # type: ignore[operator]
    assert (x == other) is False
    assert (x != other) is True
    with pytest.raises(TypeError):
        operator.lt(x, other)  # type: ignore[operator]


def test_operators_ask_other_types_for_their_reflection() -> None:
    class Other:
        def __radd__(self, tensor: pc.Tensor) -> str:
            return "mine"

    assert pc.tensor(1) + Other() == "mine"


def test_numpy_arrays_mix_in_from_both_sides() -> None:
    x, y = pc.tensor(A), B
    assert isinstance(x + y, pc.Tensor)
    assert isinstance(y + x, pc.Tensor)
    np.testing.assert_array_equal((y - x).numpy(), B - A)
    np.testing.assert_array_equal((x * np.float32(2)).numpy(), A * 2)
    np.testing.assert_array_equal((np.float64(2) * x).numpy(), A * 2)


def test_errors_of_operators_name_operator_and_shapes() -> None:
    with pytest.raises(pc.ShapeError, match=r"add.*\(2, 3\).*\(2,\)"):
        pc.tensor(A) + pc.ones(2)
    with pytest.raises(TypeError, match=r"matmul: `other` must be a Tensor, got int"):
        pc.tensor(A) @ 2
    with pytest.raises(OverflowError, match="64 bits"):
        pc.tensor(A) + 2**70
    with pytest.raises(TypeError, match="modulo"):
        pow(pc.tensor(2), 2, 3)


def test_truth_and_numbers() -> None:
    assert bool(pc.tensor(1.5))
    assert not pc.tensor([[0]])
    assert (int(pc.tensor(2.7)), float(pc.tensor([3])), complex(pc.tensor(1j))) == (2, 3.0, 1j)
    assert range(5)[pc.tensor(2)] == 2
    assert operator.index(pc.tensor(True)) == 1
    for convert in (bool, int, float):
        with pytest.raises(
            RuntimeError, match=r"(one element is required, got|a tensor of) shape \(2,\)"
        ):
            convert(pc.tensor([1, 2]))
    with pytest.raises(TypeError, match=r"one integer is required, got shape \(\) of float32"):
        operator.index(pc.tensor(1.0))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("bool", True), ("uint8", 200), ("int8", -3), ("int16", -300), ("uint16", 60000),
        ("int32", -70000), ("uint32", 2**32 - 1), ("int64", -(2**60)), ("uint64", 2**64 - 1),
        ("float16", 1.5), ("bfloat16", -2.5), ("float32", 0.25), ("float64", 0.1),
        ("complex64", 1.5 - 2j), ("complex128", 0.1 + 2j),
    ],
)  # fmt: skip
def test_item_and_tolist_of_every_dtype(dtype: str, value: Any) -> None:
    x = pc.tensor([[value]], dtype=pc.dtype(dtype))
    assert x.dtype is pc.dtype(dtype)
    assert x.item() == value
    assert type(x.item()) is type(value)
    assert x.tolist() == [[value]]


def test_half_floats_that_are_not_normal() -> None:
    for value in [0.0, 2**-24, -(2**-15), 65504.0, math.inf]:
        assert pc.tensor(value, dtype=pc.float16).item() == value
    assert math.isnan(pc.tensor(math.nan, dtype=pc.float16).item())
    assert math.isnan(pc.tensor(math.nan, dtype=pc.bfloat16).item())


def test_tolist_follows_strides() -> None:
    array = np.arange(24).reshape(2, 3, 4)
    view = pc.from_numpy(array.transpose(2, 0, 1)[::-1, :, ::2])
    assert view.tolist() == array.transpose(2, 0, 1)[::-1, :, ::2].tolist()
    assert pc.tensor(3).tolist() == 3
    assert pc.zeros(2, 0).tolist() == [[], []]


def test_iteration_membership_and_length() -> None:
    x = pc.tensor([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    _, b = x
    assert b.tolist() == [3, 4]
    assert 3 in x
    assert 5 not in x
    for function in (len, iter):
        with pytest.raises(TypeError, match="0-d tensor"):
            function(pc.tensor(1))
    with pytest.raises(TypeError, match="in: a number or a Tensor"):
        "a" in x  # noqa: B015


def test_hash_is_identity() -> None:
    x, y = pc.tensor(1), pc.tensor(1)
    assert len({x, y, x}) == 2
    assert hash(x) == hash(x)


def test_transposes() -> None:
    x = pc.tensor(np.arange(24).reshape(2, 3, 4))
    assert x.T.shape == (4, 3, 2)
    assert x.mT.shape == (2, 4, 3)
    assert x.T.data_ptr() == x.data_ptr()
    with pytest.raises(
        RuntimeError, match=r"mT: at least 2 dimensions are required, got shape \(3,\)"
    ):
        _ = pc.ones(3).mT


def test_data_shares_elements_and_repoints() -> None:
    x, other = pc.tensor([1.0, 2.0]), pc.tensor([[5, 6, 7]])
    alias = x.data
    assert alias is not x
    assert alias.data_ptr() == x.data_ptr()
    x.data = other
    assert (x.shape, x.dtype, x.data_ptr()) == ((1, 3), pc.int64, other.data_ptr())
    assert alias.tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="data: a Tensor is required, got list"):
        x.data = [1]  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"),
        ("int", "int32"), ("long", "int64"), ("short", "int16"), ("char", "int8"),
        ("byte", "uint8"), ("bool", "bool"), ("cfloat", "complex64"), ("cdouble", "complex128"),
    ],
)  # fmt: skip
def test_named_casts(name: str, dtype: str) -> None:
    x = pc.tensor([0, 1, 3])
    y = getattr(x, name)()
    assert y.dtype is pc.dtype(dtype)
    assert getattr(y, name)() is y
    assert y.to(pc.int64).tolist() == ([0, 1, 1] if dtype == "bool" else [0, 1, 3])


def test_to_takes_dtype_device_and_tensor() -> None:
    x = pc.tensor([1.5])
    assert x.to(pc.float32) is x.to("cpu") is x.cpu() is x
    assert x.to("cpu", pc.float64).dtype is x.to(dtype="float64").dtype is pc.float64
    assert x.to(pc.tensor(1)).tolist() == [1]
    assert x.to("int16").dtype is pc.int16
    assert x.to(pc.float32, copy=True) is not x
    assert x.type() == "plait.float32"
    assert x.type(pc.int8).dtype is x.type_as(pc.tensor(1, dtype=pc.int8)).dtype is pc.int8
    with pytest.raises(TypeError, match="to: unexpected keyword `dtyp`"):
        x.to(dtyp=pc.int8)
    with pytest.raises(ValueError, match="device: "):
        x.to("gpu")


def test_meta_tensors_have_shapes_and_no_bytes() -> None:
    x = pc.ones(2, 3).to("meta")
    assert x.device.type == "meta"
    assert (x + x).shape == (2, 3)
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"
    for function in (x.tolist, x.numpy):
        with pytest.raises(RuntimeError, match="one on the device meta"):
            function()


def test_constructor() -> None:
    assert pc.Tensor().shape == (0,)
    assert pc.Tensor(2, 3).shape == (2, 3)
    assert pc.Tensor(pc.Size([4])).shape == (4,)
    assert pc.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert pc.Tensor([1, 2]).dtype is pc.float32
    x = pc.tensor([1, 2])
    assert pc.Tensor(x).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="keywords are not accepted"):
        pc.Tensor(dtype=pc.int8)
    with pytest.raises(pc.ShapeError):
        pc.Tensor(-1)


def test_formatting_of_numbers() -> None:
    assert f"{pc.tensor(1.23456):.2f}" == "1.23"
    assert f"{pc.tensor(7)}" == "7"
    assert f"{pc.tensor([1])}" == "tensor([1])"
    with pytest.raises(
        TypeError, match=r"format: a 0-d tensor is required for '.2f', got shape \(2,\)"
    ):
        f"{pc.ones(2):.2f}"


def test_without_an_engine_nothing_requires_grad() -> None:
    x = pc.tensor([1.0])
    assert (x.requires_grad, x.grad, x.is_leaf, x.grad_fn) == (False, None, True, None)
    assert x.requires_grad_(False) is x
    x.grad = None
    with pytest.raises(TypeError, match="grad: a Tensor or None is required, got float"):
        x.grad = 1.0  # type: ignore[assignment]


def test_settings() -> None:
    before = pc.get_num_threads()
    pc.set_num_threads(1)
    assert pc.get_num_threads() == 1
    pc.set_num_threads(before)
    with pytest.raises(ValueError, match="set_num_threads: `n` must be in"):
        pc.set_num_threads(0)
    assert pc.memory_stats()["live_bytes"] >= 0
    with pytest.raises(TypeError, match="a floating-point dtype is required"):
        pc.set_default_dtype(pc.int64)


def test_default_dtype() -> None:
    assert pc.get_default_dtype() is pc.float32
    pc.set_default_dtype(pc.float64)
    try:
        assert pc.tensor(1.0).dtype is pc.zeros(2).dtype is pc.rand(2).dtype is pc.float64
        assert pc.tensor(1j).dtype is pc.complex128
        assert pc.zeros(2, dtype=pc.float32).dtype is pc.float32
    finally:
        pc.set_default_dtype(pc.float32)
    assert pc.zeros(2).dtype is pc.float32


def test_seeds_repeat_the_stream() -> None:
    pc.manual_seed(3)
    first = pc.rand(4).tolist()
    state = pc.get_rng_state()
    second = pc.rand(4).tolist()
    pc.manual_seed(3)
    assert pc.initial_seed() == 3
    assert pc.rand(4).tolist() == first != second
    pc.set_rng_state(state)
    assert pc.rand(4).tolist() == second
    generator = pc.Generator().manual_seed(3)
    assert pc.rand(4, generator=generator).tolist() == first


def test_comparisons_with_a_python_answer() -> None:
    x = pc.tensor([1.0, math.nan])
    assert not pc.allclose(x, x)
    assert pc.allclose(x, x, equal_nan=True)
    assert pc.allclose(pc.tensor([1.0]), pc.tensor([1.00001]), rtol=1e-4)
    assert pc.equal(pc.tensor([1, 2]), pc.tensor([1, 2]))
    assert not pc.equal(pc.tensor([1, 2]), pc.tensor([[1, 2]]))
    with pytest.raises(
        pc.ShapeError, match=r"allclose: shapes must broadcast, got \(2,\) and \(3,\)"
    ):
        pc.allclose(pc.ones(2), pc.ones(3))
    with pytest.raises(TypeError, match="equal: `other` must be a Tensor, got list"):
        pc.equal(x, [1])  # type: ignore[arg-type]


# operators beside which Tensor has something in Python: a method, properties
IN_PYTHON = {"where", "real", "imag"}


def test_operators_are_functions_and_methods_as_they_say() -> None:
    import plait_abi
    from plait_core import _namespaces

    for name, variants in plait_abi.operator_names():
        if name.startswith("probe"):  # defined by another test, after the import
            continue
        if _namespaces.in_namespace(name):  # linalg.solve, fft.rfft, special.erfcx
            continue
        assert hasattr(pc, name) == ("function" in variants), name
        if name not in IN_PYTHON:
            assert (name in vars(pc.Tensor)) == ("method" in variants), name
        assert callable(plait_abi.operator(name))
    assert "function" in dict(plait_abi.operator_names())["relu_"]
    assert dict(plait_abi.operator_names())["gelu"] == ""
    with pytest.raises(AttributeError, match="no attribute 'gelu'"):
        _ = pc.gelu
    assert pc.Tensor.relu is not None
    assert pc.is_tensor(pc.ones(1))
    assert not pc.is_tensor(1)
