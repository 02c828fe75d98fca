"""The array API namespace against NumPy, which follows the same standard. The suite of the Data
APIs consortium (session array-api) covers the rest of it.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_core import array_api as xp

RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((3, 4))
INTEGERS = np.array([[3, 1, 3], [0, 2, 1]])


def test_the_namespace() -> None:
    x = pc.zeros(2)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match=r"`api_version` must be 2024.12 or an older one"):
        x.__array_namespace__(api_version="2031.12")
    assert xp.__array_api_version__ == "2024.12"
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] is xp.float32
    assert set(info.dtypes(kind="integral")) == {
        f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
    }
    assert info.devices() == [info.default_device()] and info.capabilities()["boolean indexing"]
    assert x.to_device("cpu") is x
    with pytest.raises(TypeError, match="`stream` must be a Stream or None"):
        x.to_device("cpu", stream=1)


def test_every_name_is_there_and_documented() -> None:
    for module in (xp, xp.linalg, xp.fft):
        for name in module.__all__:
            member = getattr(module, name)
            if inspect.isfunction(member):
                assert member.__doc__, name


# ---- dtypes --------------------------------------------------------------------------------------
NUMERIC = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
NUMERIC += ["float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("a", NUMERIC)
@pytest.mark.parametrize("b", NUMERIC)
def test_promotion_is_numpys_where_the_standard_says_so(a: str, b: str) -> None:
    kinds = {np.dtype(a).kind, np.dtype(b).kind}
    if kinds & set("iu") and kinds & set("fc"):
        return  # left open
    if kinds == set("iu") and "uint64" in (a, b):
        with pytest.raises(pc.DTypeError, match="no common dtype"):
            xp.result_type(pc.dtype(a), pc.dtype(b))
        assert not xp.can_cast(pc.dtype(a), pc.dtype(b))
        return
    want = np.result_type(a, b).name
    assert xp.result_type(pc.dtype(a), pc.dtype(b)).name == want
    assert xp.can_cast(pc.dtype(a), pc.dtype(b)) == np.can_cast(a, b)


def test_an_array_without_dimensions_counts() -> None:
    a, b = xp.ones(2), xp.asarray(1.0, dtype=xp.float64)
    assert xp.add(a, b).dtype is xp.float64 and (a + b).dtype is xp.float32
    assert xp.result_type(a, 1) is xp.float32 and xp.result_type(xp.int8, 3) is xp.int8
    assert xp.result_type(xp.int32, True) is xp.int32
    assert xp.isdtype(xp.uint8, ("unsigned integer", xp.bool))
    assert not xp.isdtype(xp.uint8, "signed integer")
    with pytest.raises(ValueError, match="`kind` must be one of"):
        xp.isdtype(xp.uint8, "float")
    assert xp.finfo(a).dtype is xp.float32 and xp.iinfo(xp.int8).min == -128


def test_numbers_of_lists_are_rounded_once() -> None:
    assert xp.asarray([0.1], dtype=xp.float64).tolist() == [0.1]
    assert xp.asarray([2**53 + 1], dtype=xp.int64).tolist() == [2**53 + 1]


# ---- against NumPy -------------------------------------------------------------------------------
def arrays(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return xp.asarray(value)
    return tuple(arrays(v) for v in value) if isinstance(value, tuple) else value


SAME: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("arange", (5,), {}),
    ("arange", (5, 1), {}),
    ("arange", (1, 7, 2), {}),
    ("eye", (3, 4), {"k": 1, "dtype": "int64"}),
    ("eye", (2, 2), {"k": 5, "dtype": "int64"}),
    ("linspace", (0.0, 1.0, 5), {"endpoint": False, "dtype": "float64"}),
    ("tril", (MATRIX,), {"k": -1}),
    ("broadcast_to", (np.arange(3), (2, 3)), {}),
    ("concat", ((INTEGERS, INTEGERS),), {"axis": None}),
    ("expand_dims", (INTEGERS,), {"axis": -1}),
    ("flip", (INTEGERS,), {}),
    ("flip", (INTEGERS,), {"axis": 1}),
    ("moveaxis", (MATRIX, 0, 1), {}),
    ("permute_dims", (MATRIX, (1, 0)), {}),
    ("repeat", (INTEGERS, 2), {}),
    ("repeat", (INTEGERS, np.array([1, 0, 2])), {"axis": 1}),
    ("roll", (INTEGERS, 2), {}),
    ("roll", (INTEGERS, (1, -1)), {"axis": (0, 1)}),
    ("squeeze", (MATRIX[:1],), {"axis": 0}),
    ("stack", ((INTEGERS, INTEGERS),), {"axis": 1}),
    ("tile", (INTEGERS, (2, 1)), {}),
    ("take", (INTEGERS, np.array([0, 2])), {"axis": 1}),
    ("take_along_axis", (INTEGERS, np.array([[0], [2]])), {"axis": 1}),
    ("argmax", (INTEGERS,), {}),
    ("argmin", (INTEGERS,), {"axis": 1, "keepdims": True}),
    ("count_nonzero", (INTEGERS,), {"axis": 0}),
    ("nonzero", (INTEGERS,), {}),
    ("where", (INTEGERS > 1, INTEGERS, 7), {}),
    ("sort", (INTEGERS,), {}),
    ("argsort", (INTEGERS,), {"axis": 0, "stable": True}),
    ("unique_counts", (INTEGERS,), {}),
    ("unique_inverse", (INTEGERS,), {}),
    ("unique_all", (INTEGERS,), {}),
    ("sum", (INTEGERS.astype("uint8"),), {}),
    ("sum", (MATRIX,), {"axis": (0, 1), "keepdims": True}),
    ("prod", (INTEGERS.astype("int8"),), {"axis": 1}),
    ("max", (MATRIX,), {"axis": (0, 1)}),
    ("min", (MATRIX,), {"axis": 0}),
    ("mean", (MATRIX,), {"axis": 1}),
    ("var", (MATRIX,), {"correction": 1.0}),
    ("std", (MATRIX,), {"axis": 0}),
    ("all", (INTEGERS,), {"axis": 0}),
    ("any", (INTEGERS,), {}),
    ("cumulative_sum", (INTEGERS,), {"axis": 1, "include_initial": True}),
    ("cumulative_prod", (INTEGERS,), {"axis": 0}),
    ("diff", (INTEGERS,), {"n": 2}),
    ("diff", (INTEGERS,), {"axis": 0, "prepend": INTEGERS[:1]}),
    ("clip", (MATRIX, -0.5, 0.5), {}),
    ("matmul", (MATRIX, MATRIX.T), {}),
    ("matrix_transpose", (MATRIX,), {}),
    ("tensordot", (MATRIX, MATRIX), {"axes": ((0,), (0,))}),
    ("vecdot", (MATRIX, MATRIX), {}),
    ("floor_divide", (np.array([7, -7]), np.array([2, 2])), {}),
    ("remainder", (np.array([7, -7]), np.array([3, 3])), {}),
    ("bitwise_invert", (INTEGERS,), {}),
    ("trunc", (INTEGERS,), {}),
]


def check(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            check(a, b)
        return
    got, want = np.asarray(ours), np.asarray(theirs)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize(("name", "args", "kwargs"), SAME, ids=[name for name, _, _ in SAME])
def test_functions(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    own = {key: arrays(value) for key, value in kwargs.items()}
    check(getattr(xp, name)(*arrays(args), **own), getattr(np, name)(*args, **kwargs))


def test_floor_division_of_infinities_is_the_standards() -> None:
    inf = float("inf")
    got = xp.floor_divide(xp.asarray([inf, -inf, 1.0, -1.0]), xp.asarray([2.0, 2.0, inf, inf]))
    assert got.tolist() == [inf, -inf, 0, 0]
    assert np.signbit(got.numpy()).tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: xp.squeeze(x, axis=0), pc.ShapeError, "axis 0 must have size 1"),
        (lambda x: xp.take(x, xp.asarray([0])), ValueError, "`axis` is required"),
        (lambda x: xp.reshape(x.T, (12,), copy=False), ValueError, "`copy=False` is not possible"),
        (lambda x: xp.sum(x, axis=2), IndexError, "`axis` must be in"),
        (lambda x: xp.sum(x, axis=(0, 0)), ValueError, "must not repeat an axis"),
        (lambda x: xp.nonzero(x[0, 0]), pc.ShapeError, "at least one dimension"),
        (lambda x: xp.meshgrid(x, indexing="ab"), ValueError, "`indexing` must be"),
        (lambda x: xp.arange(0, 3, 0), ValueError, "`step` must not be 0"),
        (lambda x: xp.linalg.outer(x, x), pc.ShapeError, "vectors are required"),
        (lambda x: xp.cumulative_sum(x), ValueError, "`axis` is required"),
        (lambda x: xp.result_type(), ValueError, "at least one"),
        (lambda x: xp.add(1, 2), TypeError, "at least one array"),
        (lambda x: xp.concat([x, x[:, :1]]), pc.ShapeError, "same sizes"),
        (lambda x: xp.tensordot(x, x, axes=1), pc.ShapeError, "must be as long as"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(xp.asarray(MATRIX))
