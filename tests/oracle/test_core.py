"""Exchange with PyTorch by DLPack, and the same semantics where both have a function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import plait_core as pc

DTYPES = [
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]


@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
def test_there_and_back_without_a_copy(dtype: str) -> None:
    theirs = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype)).T
    ours = pc.from_dlpack(theirs)
    assert (ours.data_ptr(), ours.shape, ours.stride()) == (theirs.data_ptr(), (3, 2), (1, 3))
    assert ours.dtype is pc.dtype(dtype)
    assert ours.tolist() == theirs.tolist()
    back = torch.from_dlpack(ours)
    assert (back.data_ptr(), back.dtype, back.tolist()) == (
        theirs.data_ptr(),
        theirs.dtype,
        theirs.tolist(),
    )


def test_writes_are_seen_on_both_sides() -> None:
    theirs = torch.zeros(3)
    ours = pc.from_dlpack(theirs)
    ours[0] = 1
    theirs[1] = 2
    torch.from_dlpack(ours)[2] = 3
    assert ours.tolist() == theirs.tolist() == [1, 2, 3]


def test_torch_tensors_are_operands() -> None:
    theirs = torch.ones(2)
    assert (pc.ones(2) + theirs).tolist() == pc.add(theirs, 1).tolist() == [2, 2]
    assert pc.as_tensor(theirs).data_ptr() == theirs.data_ptr()
    assert pc.tensor(theirs).data_ptr() != theirs.data_ptr()
    assert pc.dtype(torch.bfloat16) is pc.bfloat16


def test_a_torch_tensor_that_requires_grad_is_refused() -> None:
    with pytest.raises((BufferError, RuntimeError), match="require"):
        pc.from_dlpack(torch.ones(1, requires_grad=True))


KEYS: list[Any] = [
    (0, slice(None), [1, 2]), ([0, 1], 0, slice(None)), (0, [0, 1], slice(1, None)), (None, [0, 1]),
    (slice(None), [[0, 1], [1, 0]], 0), (..., [0, 1]), ([1, 0], ..., 2),
    (True, 0), ([0, 1], None, [1, 1]),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_keys_where_pytorch_and_numpy_differ(key: Any) -> None:
    array = np.arange(24).reshape(2, 3, 4)
    theirs, ours = torch.from_numpy(array.copy()), pc.from_numpy(array.copy())
    assert ours[key].tolist() == theirs[key].tolist()
    theirs[key], ours[key] = -1, -1
    assert ours.tolist() == theirs.tolist()


VALUES: list[Any] = [
    1.0, 0.5, 1e-5, 1e9, 3, True, 1 + 2j, [1.0, 2.0], [1.5, 2.0], [0.0, 1e-4],
    [0.0, 1e-5], [1.0, 1001.0],
    [1.5, 2000.0], [0.0, 0.0], [float("nan"), 1.0], [float("inf"), 0.5, -2.25],
    [float("nan")], [-1, 10, 100],
    [[1.0, 2.0], [3.0, 4.5]], [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], [], [[], []], [True, False],
    [1 + 2j, 3.5 - 1j], [[1e10, 1.0]], [123456.789], [99999.5, 1.0], [1e8], [1.0, 1e8 + 1],
    list(range(1001)), [[float(i) for i in range(50)]] * 30, [0.1] * 30, list(range(100)),
    [[[[1.0]]], [[[2.0]]]], [-0.0, 1.0],
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda v: repr(v)[:30])
def test_the_text_is_pytorchs(value: Any) -> None:
    assert repr(pc.tensor(value)) == repr(torch.tensor(value))


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int32", "uint8"])
def test_the_text_of_other_dtypes_is_pytorchs(dtype: str) -> None:
    expected = repr(torch.tensor([1, 2], dtype=getattr(torch, dtype))).replace("torch.", "")
    assert repr(pc.tensor([1, 2], dtype=pc.dtype(dtype))) == expected
    expected = repr(torch.zeros(2, 0, dtype=getattr(torch, dtype))).replace("torch.", "")
    assert repr(pc.zeros(2, 0, dtype=pc.dtype(dtype))) == expected


def test_the_text_of_printing_options_is_pytorchs() -> None:
    value = np.random.default_rng(0).standard_normal((7, 12)) * 10
    for options in (
        {"precision": 2},
        {"linewidth": 40},
        {"threshold": 10, "edgeitems": 2},
        {"sci_mode": True},
    ):
        try:
            torch.set_printoptions(**options)
            pc.set_printoptions(**options)  # type: ignore[arg-type]
            assert repr(pc.tensor(value).float()) == repr(torch.tensor(value).float())
        finally:
            torch.set_printoptions(profile="default")
            pc.set_printoptions(profile="default")
