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
    with pytest.raises(pc.DTypeError, match="add: the result is float32, which can't be cast"):
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


def test_ufuncs_without_an_operator_give_tensors() -> None:
    x, array = pc.tensor([1.0, 2.0]), np.array([1.0, 2.0], np.float32)
    for call in (
        lambda a: np.spacing(a),
        lambda a: np.cbrt(a),
        lambda a: np.add.outer(a, a),
        lambda a: np.add.accumulate(a),
        lambda a: np.subtract.reduce(a),
        lambda a: np.add.reduce(a, initial=3),
        lambda a: np.add(a, 1, where=np.array([True, False]), out=np.zeros(2, np.float32)),
        lambda a: np.modf(a)[1],
    ):
        got = call(x)
        assert np.asarray(got).tolist() == call(array).tolist()
        assert isinstance(got, (pc.Tensor, np.ndarray))
    assert type(np.spacing(x)) is pc.Tensor
    np.add.at(x, [0, 0], 1)
    assert x.tolist() == [3, 2] and x._version == 1


def test_arrays_share_memory() -> None:
    x = pc.arange(6.0)[::-1]
    for array in (np.asarray(x), np.array(x, copy=False), np.from_dlpack(x)):
        assert array.__array_interface__["data"][0] == x.data_ptr()
        assert array.tolist() == x.tolist() and array.strides == (-4,)
    assert np.array(x).__array_interface__["data"][0] != x.data_ptr()


M = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]], np.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.max(x, axis=1),
        lambda x: np.min(x),
        lambda x: np.amax(x, 0),
        lambda x: np.sum(x, axis=(0, 1)),
        lambda x: np.prod(x, 1, keepdims=True),
        lambda x: np.mean(x, axis=0),
        lambda x: np.std(x),
        lambda x: np.var(x, axis=1, ddof=1),
        lambda x: np.all(x > 0, axis=0),
        lambda x: np.argmax(x),
        lambda x: np.cumsum(x),
        lambda x: np.sort(x, axis=None),
        lambda x: np.argsort(x, axis=0),
        lambda x: np.clip(x, -1, None),
        lambda x: np.moveaxis(x, 0, 1),
        lambda x: np.concatenate([x, M], axis=1),
        lambda x: np.stack((M, x)),
        lambda x: np.vstack([x, x]),
        lambda x: np.reshape(x, (3, 2)),
        lambda x: np.where(x > 0, x, 0),
        lambda x: np.where(x > 0)[1],
        lambda x: np.dot(x, M.T),
        lambda x: np.dot(x, np.ones((2, 3, 4), np.float32)),
        lambda x: np.transpose(x),
        lambda x: np.squeeze(x[:1], axis=0),
        lambda x: np.expand_dims(x, (0, 2)),
        lambda x: np.repeat(x, 2, axis=1),
        lambda x: np.tile(x, 2),
        lambda x: np.split(x, 3, axis=1)[2],
        lambda x: np.take(x, [0, 2], axis=1),
        lambda x: np.unique(x),
        lambda x: np.flip(x, 1),
        lambda x: np.ones_like(x),
        lambda x: np.linalg.norm(x, axis=1),
        lambda x: np.linalg.inv(x[:, :2] @ x[:, :2].T + 3 * np.eye(2, dtype=np.float32)),
        lambda x: np.fft.rfft(x, axis=0),
        lambda x: np.round(x, 0),
    ],
)
def test_functions_that_are_no_ufuncs_give_tensors(call: Any) -> None:
    got, want = call(pc.tensor(M)), call(M)
    assert type(got) is pc.Tensor
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)


def test_what_arrays_are() -> None:
    x = pc.tensor(M)
    assert (np.size(x), np.size(x, 1), np.shape(x), np.ndim(x)) == (6, 3, (2, 3), 2)
    assert not np.iscomplexobj(x) and np.mean(pc.arange(4)).item() == 1.5
    assert np.array_repr(pc.tensor(M)) == np.array_repr(M)


def test_other_functions_convert_results_of_numpy_to_tensors() -> None:
    x = pc.tensor(M)
    for call in (
        np.median,
        lambda a: np.pad(a, 1),
        lambda a: np.kron(a, a),
        lambda a: np.isin(a, [4.0]),
        lambda a: np.histogram(a, 3)[0],
        lambda a: np.sum(a, where=M > 0),
        lambda a: np.max(a, initial=3),
        lambda a: np.reshape(a, -1, order="F"),
        lambda a: np.reshape(a, (3, 2), order="F"),
        lambda a: np.linalg.svd(a, compute_uv=False),
        lambda a: np.atleast_2d(a, a[0])[1],
    ):
        got = call(x)
        assert type(got) is pc.Tensor
        assert np.allclose(got.numpy(), call(M))
    assert np.allclose(x, M) is True and np.array_equal(x, M) is True
    assert type(np.unique_counts(x).counts) is pc.Tensor
    assert np.result_type(x) == np.float32 and np.array2string(x) == np.array2string(M)


def test_writes_of_numpy_are_seen() -> None:
    x = pc.zeros(3)
    np.copyto(x, np.ones(3, np.float32))
    assert x.tolist() == [1, 1, 1] and x._version == 1
    out = np.zeros(3, np.float32)
    assert np.sum(pc.tensor(M), axis=0, out=out) is out and out.tolist() == [3.5, 3, 0]
    assert np.cumsum(x, out=x) is x and x.tolist() == [1, 2, 3] and x._version == 2
    assert np.median(pc.tensor(M), axis=0, out=x) is x and x._version == 3


def test_refusals() -> None:
    x = pc.tensor(M)
    with pytest.raises(TypeError, match=r"np\.reshape: on tensors `order` must be C or F, got 'A'"):
        np.reshape(x, -1, order="A")
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        np.mean(x, axes=1)
    with pytest.raises(TypeError, match="no implementation found"):
        np.sum(x, out=np.ma.zeros(3))


def test_to_numpy_shares_memory() -> None:
    x = pc.tensor(M)
    assert x.to_numpy().__array_interface__["data"][0] == x.data_ptr()


@pytest.mark.parametrize(
    "name", ["maximum", "minimum", "fmax", "hypot", "logaddexp", "arctan2", "nextafter"]
)
def test_ufuncs_of_two_operands_take_numbers(name: str) -> None:
    """Also those whose operator takes tensors only; with NumPy's dtype of the result."""
    function = getattr(np, name)
    for values in (np.array([1.5, 3.5]), np.array([1.5, 3.5], np.float32)):
        for number in (2, 2.5):
            for order in (1, -1):
                arguments = [values, number][::order]
                operands = [pc.from_numpy(values), number][::order]
                result = function(*operands)
                assert isinstance(result, pc.Tensor)
                np.testing.assert_allclose(result.numpy(), function(*arguments), rtol=1e-6)
                assert result.numpy().dtype == function(*arguments).dtype
    assert np.maximum(pc.arange(3), 1.5).tolist() == [1.5, 1.5, 2.0]
    assert np.maximum(pc.arange(3), 1).dtype is pc.int64


def test_strides_are_those_of_the_array() -> None:
    array = np.zeros((1, 3, 8, 1, 8), np.float32)
    assert pc.from_numpy(array).stride() == tuple(n // 4 for n in array.strides)
    assert pc.from_numpy(array[:, ::2]).stride()[1:] == (128, 8, 8, 1)
