"""NumPy's functions on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc


def test_functions_give_tensors() -> None:
    x = pc.tensor([[1.0, 4.0], [9.0, 16.0]])
    for got, want in (
        (np.sqrt(x), x.sqrt()),
        (np.add(x, 1), x + 1),
        (np.add(1, x), x + 1),
        (np.multiply(x, np.ones(2, np.float32)), x),
        (np.add(np.ones((2, 2), np.float32), x), x + 1),
        (np.add([1.0, 2.0], x), x + pc.tensor([1.0, 2.0])),
        (np.power(x, 2), x**2),
        (np.greater(x, 3), x > 3),
        (np.absolute(-x), x),
        (np.matmul(x, x), x @ x),
        (np.arctan2(x, x), pc.atan2(x, x)),
        (np.float32(2) * x, x * 2),
        (np.ones((2, 2), np.float32) - x, 1 - x),
    ):
        assert type(got) is pc.Tensor and got.tolist() == want.tolist()
    quotient, rest = np.divmod(x, 3)
    assert quotient.tolist() == (x // 3).tolist() and rest.tolist() == (x % 3).tolist()


def test_out_is_written_and_returned() -> None:
    x, array, tensor = pc.arange(3), np.zeros(3), pc.zeros(3)
    assert np.add(x, 1, out=array) is array and array.tolist() == [1, 2, 3]
    assert np.add(array, x, out=tensor) is tensor and tensor.tolist() == [1, 3, 5]
    array += x
    assert type(array) is np.ndarray and array.tolist() == [1, 3, 5]
    with pytest.raises(pc.DTypeError, match="add: the result is float32, which cannot be cast"):
        np.add(x, 0.5, out=np.zeros(3, np.int64))
    readonly = np.zeros(3)
    readonly.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        np.add(x, 1, out=readonly)


def test_reductions() -> None:
    x = pc.tensor([[1.0, 2.0], [3.0, 4.0]])
    for got, want in (
        (np.add.reduce(x), [4, 6]),
        (np.add.reduce(x, axis=1), [3, 7]),
        (np.add.reduce(x, axis=None), 10),
        (np.multiply.reduce(x, axis=(0, 1)), 24),
        (np.maximum.reduce(x, axis=1, keepdims=True), [[2], [4]]),
        (np.logical_and.reduce(x > 1), [False, True]),
        (np.sum(x), 10),
        (np.mean(x), 2.5),
    ):
        assert np.asarray(got).tolist() == want
    out = np.zeros(2, np.float32)
    assert np.add.reduce(x, out=out) is out and out.tolist() == [4, 6]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: np.spacing(x), r"np.spacing: no operator of plait .* x.numpy\(\) first"),
        (lambda x: np.add(x, 1, where=[True, False]), "do not support `keyword where`"),
        (lambda x: np.add.outer(x, x), "do not support `outer`"),
        (lambda x: np.subtract.reduce(x), "no such reduction"),
    ],
)
def test_refusals(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call(pc.ones(2))


def test_arrays_share_memory() -> None:
    x = pc.arange(6.0)[::-1]
    for array in (np.asarray(x), np.array(x, copy=False), np.from_dlpack(x)):
        assert array.__array_interface__["data"][0] == x.data_ptr()
        assert array.tolist() == x.tolist() and array.strides == (-4,)
    assert np.array(x).__array_interface__["data"][0] != x.data_ptr()
