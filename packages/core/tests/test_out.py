"""The form out=: which operators have it, and what becomes of its target."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import kernel as kernel_for

A = [[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]]

CALLS: dict[str, Callable[..., Any]] = {
    "std": lambda x, **out: pc.std(x, 0, **out),
    "std of all": lambda x, **out: pc.std(x, **out),
    "var": lambda x, **out: pc.var(x, 1, unbiased=False, **out),
    "var_mean": lambda x, **out: pc.var_mean(x, 1, **out),
    "norm": lambda x, **out: pc.norm(x, 2, 1, **out),
    "norm by name": lambda x, **out: pc.norm(x, "fro", **out),
    "median": lambda x, **out: pc.median(x, **out),
    "max of pairs": lambda x, **out: pc.max(x, x.t(), **out),
    "min of pairs": lambda x, **out: pc.min(x, x.t(), **out),
    "max along": lambda x, **out: pc.max(x, 1, **out),
    "amax of all": lambda x, **out: pc.amax(x, None, **out),
    "linalg.norm": lambda x, **out: pc.linalg.norm(x, **out),
    "linalg.matrix_norm": lambda x, **out: pc.linalg.matrix_norm(x, "nuc", **out),
    "linalg.vector_norm": lambda x, **out: pc.linalg.vector_norm(x, 3, **out),
    "linalg.det": lambda x, **out: pc.linalg.det(x, **out),
    "linalg.slogdet": lambda x, **out: pc.linalg.slogdet(x, **out),
    "linalg.inv": lambda x, **out: pc.linalg.inv(x, **out),
    "linalg.pinv": lambda x, **out: pc.linalg.pinv(x, **out),
    "linalg.qr": lambda x, **out: pc.linalg.qr(x, **out),
    "linalg.lu": lambda x, **out: pc.linalg.lu(x, **out),
    "linalg.svdvals": lambda x, **out: pc.linalg.svdvals(x, **out),
    "linalg.eigvalsh": lambda x, **out: pc.linalg.eigvalsh(x, **out),
    "linalg.cond": lambda x, **out: pc.linalg.cond(x, **out),
    "linalg.matrix_power": lambda x, **out: pc.linalg.matrix_power(x, 3, **out),
    "linalg.matrix_exp": lambda x, **out: pc.linalg.matrix_exp(x, **out),
    "linalg.matrix_rank": lambda x, **out: pc.linalg.matrix_rank(x, **out),
    "linalg.solve": lambda x, **out: pc.linalg.solve(x, x, **out),
    "linalg.lstsq": lambda x, **out: pc.linalg.lstsq(x, x, **out),
    "linalg.cholesky": lambda x, **out: pc.linalg.cholesky(x, **out),
    "linalg.tensorinv": lambda x, **out: pc.linalg.tensorinv(x, 1, **out),
    "linalg.multi_dot": lambda x, **out: pc.linalg.multi_dot([x, x, x], **out),
    "tensordot": lambda x, **out: pc.tensordot(x, x, 1, **out),
    "cdist": lambda x, **out: pc.cdist(x, x, **out),
    "trace": lambda x, **out: pc.trace(x, **out),
    "diag": lambda x, **out: pc.diag(x, **out),
    "roll": lambda x, **out: pc.roll(x, 1, **out),
    "nonzero": lambda x, **out: pc.nonzero(x, **out),
    "masked_select": lambda x, **out: pc.masked_select(x, x > 1, **out),
    "sort": lambda x, **out: pc.sort(x, **out),
    "argsort": lambda x, **out: pc.argsort(x, **out),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_go_to_empty_targets(name: str) -> None:
    call, x = CALLS[name], pc.tensor(A, dtype=pc.float64)
    want = call(x)
    if isinstance(want, pc.Tensor):
        target = pc.empty(0, dtype=want.dtype)
        assert call(x, out=target) is target
        result: tuple[Any, ...] = (target,)
        want = (want,)
    else:
        result = tuple(pc.empty(0, dtype=each.dtype) for each in want)
        returned = call(x, out=result)
        assert all(a is b for a, b in zip(returned, result, strict=True))
    for a, b in zip(result, want, strict=True):
        assert a.shape == b.shape and a.tolist() == b.tolist()


def test_a_strided_target_is_written_in_its_layout() -> None:
    x = pc.tensor(A, dtype=pc.float64)
    for name in ("linalg.inv", "linalg.cholesky", "roll", "linalg.matrix_exp", "linalg.pinv"):
        whole = pc.zeros(6, 6, dtype=pc.float64)
        CALLS[name](x, out=whole.t()[::2, ::2])
        assert whole.t()[::2, ::2].tolist() == CALLS[name](x).tolist(), name
        assert not whole[1::2].any() and not whole[:, 1::2].any()


def test_another_shape_is_a_warning() -> None:
    x = pc.ones(3, 4)
    target = pc.zeros(2, 3)
    with pytest.warns(UserWarning, match=r"An output with one or more elements was .* \(sum: give"):
        assert pc.sum(x, 0, out=target) is target
    assert target.tolist() == [3, 3, 3, 3]
    with pytest.warns(UserWarning, match=r"had shape \(4,\), which .* of the result, \(3,\)"):
        pc.std(x, 1, out=target)
    assert target.tolist() == [0, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pc.sum(x, 0, out=pc.empty(0))
        with pytest.raises(UserWarning):
            pc.sum(x, 0, out=pc.ones(1))


@pytest.mark.filterwarnings("ignore:.*was resized")
def test_a_resized_target_keeps_memory_that_suffices() -> None:
    x, memory = pc.ones(2, 3), pc.zeros(8)
    target = memory[1:7].view(2, 3)
    pc.sum(x, 0, out=target)
    assert memory.tolist() == [0, 2, 2, 2, 0, 0, 0, 0]
    target = memory[6:]
    pc.sum(x, 0, out=target)
    assert target.tolist() == [2, 2, 2] and memory[6:].tolist() == [0, 0]
    pc.sum(memory.view(2, 4), 1, out=memory)  # it reads what it is to overwrite
    assert memory.tolist() == [6, 0]


@pytest.mark.filterwarnings("ignore:.*was resized")
@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: pc.sum(x, 0, out=out),
        lambda x, out: pc.amax(x, 0, out=out),
        lambda x, out: pc.prod(x, 0, out=out),
        lambda x, out: pc.any(x, 0, out=out),
        lambda x, out: pc.logsumexp(x, 0, out=out),
        lambda x, out: pc.max(x, 0, out=(out, pc.empty(0, dtype=pc.int64))).values,
        lambda x, out: pc.cat([x, x], out=out),
        lambda x, out: pc.cat([pc.ones(2, 4), x], out=out),
        lambda x, out: pc.outer(x[0], x[1], out=out),
        lambda x, out: pc.matmul(x, pc.ones(4, 2), out=out),
        lambda x, out: pc.add(x, pc.ones(2, 3, 4), out=out),
        lambda x, out: pc.logaddexp(pc.ones(2, 3, 4), x, out=out),
        lambda x, out: pc.index_select(x, 0, pc.tensor([2, 0]), out=out),
    ],
)
def test_a_resized_target_may_be_an_input(call: Callable[[Any, Any], Any]) -> None:
    values = pc.arange(12.0).view(3, 4) + 1
    x = values.clone()
    assert call(x, x) is x
    assert x.tolist() == call(values, pc.empty(0)).tolist()


def test_kernels_in_python_get_no_output_that_is_an_input() -> None:
    """Only pointwise operators promise that a kernel may get one; a kernel may clear its output."""

    def kernel(x: Any, dim: int, dtype: Any, out: Any) -> None:
        result = np.from_dlpack(out)
        result[...] = 0
        result += np.cumsum(np.from_dlpack(x), axis=dim)

    x = pc.ones(100, 100)
    with kernel_for("cumsum", kernel):
        assert x.cumsum_(0)[-1, 0].item() == 100
    assert pc.ones(100).cumsum_(0)[-1].item() == 100


def test_arrays_of_others_keep_their_shape() -> None:
    array = np.zeros(3)
    with pytest.raises(ValueError, match=r"the result has shape \(2,\), which does not fit `out`"):
        pc.sum(pc.ones(2, 2, dtype=pc.float64), 0, out=pc.from_numpy(array))


def test_dtypes_that_cannot_be_cast_are_refused() -> None:
    x = pc.ones(2, 2)
    for call, dtype in (("std", pc.int64), ("linalg.inv", pc.int32), ("linalg.norm", pc.bool_)):
        with pytest.raises(RuntimeError, match=r"the result is float32, which can't be cast to"):
            CALLS[call](x, out=pc.empty(0, dtype=dtype))
    assert pc.std(x, 0, out=pc.empty(0, dtype=pc.float64)).dtype is pc.float64


def test_in_place_forms_keep_their_shape() -> None:
    with pytest.raises(ValueError, match="does not fit `self`"):
        pc.ones(2).add_(pc.ones(3, 2))
    with pytest.raises(TypeError, match="unexpected keyword `out`"):
        pc.ones(2).add_(1, out=pc.ones(2))


def test_none_is_no_target() -> None:
    assert pc.norm(pc.ones(4), out=None).item() == 2
