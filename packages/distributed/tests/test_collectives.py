"""Collectives of tensors of every dtype against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_distributed as dist

SIZE = 3
DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "complex64",
    "complex128",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool",
)
Op = dist.ReduceOp


def numbers(rank: int, *shape: int, dtype: str = "float32") -> Any:
    """The numbers of a rank, which every process can make."""
    values = np.random.default_rng([7, rank]).integers(-9, 10, shape)
    if dtype.startswith("complex"):
        values = values + 1j * values[..., ::-1]
    if dtype == "uint8":
        values = np.abs(values)
    return pc.tensor(values).to(getattr(pc, dtype))


def every(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    """The numbers of all ranks, in a dtype that NumPy has."""
    results = [numbers(rank, *shape, dtype=dtype) for rank in range(SIZE)]
    wide = dtype in ("float16", "bfloat16")
    return np.stack([(x.float() if wide else x).numpy() for x in results])


def plain(x: Any) -> np.ndarray[Any, Any]:
    """A result as NumPy has it."""
    return (x.float() if x.dtype in (pc.float16, pc.bfloat16) else x).numpy()


def ops_of(dtype: str) -> dict[Any, Any]:
    """The reductions of a dtype with NumPy's functions."""
    if dtype == "bool":
        return {
            Op.SUM: np.any,
            Op.MAX: np.any,
            Op.MIN: np.all,
            Op.BXOR: lambda x, axis: x.sum(0) % 2,
        }
    results: dict[Any, Any] = {Op.SUM: np.sum, Op.PRODUCT: np.prod}
    if not dtype.startswith("complex"):
        results.update({Op.MIN: np.min, Op.MAX: np.max})
    if dtype.startswith(("int", "uint")):
        for op, function in zip(
            (Op.BAND, Op.BOR, Op.BXOR),
            (np.bitwise_and, np.bitwise_or, np.bitwise_xor),
            strict=True,
        ):
            results[op] = lambda x, axis, f=function: f.reduce(x, axis)
    else:
        results[Op.AVG] = np.mean
    return results


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(ranks: Any, dtype: str) -> None:
    def work(rank: int) -> Any:
        results = {}
        for op in ops_of(dtype):
            x = numbers(rank, 4, 3, dtype=dtype)
            dist.all_reduce(x, op)
            y = numbers(rank, 4, 3, dtype=dtype)
            dist.reduce(y, 1, op)
            parts = [numbers(rank, 4, 3, dtype=dtype) for _ in range(SIZE)]
            z = pc.empty_like(parts[0])
            dist.reduce_scatter(z, parts, op)
            w = pc.empty_like(parts[0])
            dist.reduce_scatter_tensor(w, pc.cat(parts), op)
            results[op] = [plain(each) for each in (x, y, z, w)]
        return results

    own = every(4, 3, dtype=dtype)
    for rank, results in enumerate(ranks(SIZE, work)):
        for op, function in ops_of(dtype).items():
            want = function(own, axis=0)
            if dtype not in ("bool", "bfloat16", "float16"):
                want = want.astype(own.dtype)
            x, y, z, w = results[op]
            close = 0.02 if dtype in ("bfloat16", "float16") else 1e-6
            for result in (x, z, w):
                np.testing.assert_allclose(result, want, rtol=close, err_msg=str(op))
            if rank == 1:
                np.testing.assert_allclose(y, want, rtol=close, err_msg=str(op))
            else:
                np.testing.assert_array_equal(y, own[rank])


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies(ranks: Any, dtype: str) -> None:
    def work(rank: int) -> Any:
        x = numbers(rank, 2, 3, dtype=dtype)
        message = x.clone()
        dist.broadcast(message, 2)
        lists = [pc.empty_like(x) for _ in range(SIZE)]
        dist.all_gather(lists, x)
        stacked, joined = pc.empty(SIZE, 2, 3, dtype=x.dtype), pc.empty(SIZE * 2, 3, dtype=x.dtype)
        dist.all_gather_into_tensor(stacked, x)
        dist.all_gather_into_tensor(joined, x)
        gathered = [pc.empty_like(x) for _ in range(SIZE)] if rank == 1 else None
        dist.gather(x, gathered, dst=1)
        own = pc.empty_like(x)
        dist.scatter(own, lists if rank == 0 else None, src=0)
        return [
            plain(message),
            [plain(each) for each in lists],
            plain(stacked),
            plain(joined),
            [plain(each) for each in gathered or ()],
            plain(own),
        ]

    want = every(2, 3, dtype=dtype)
    for rank, (message, lists, stacked, joined, gathered, own) in enumerate(ranks(SIZE, work)):
        np.testing.assert_array_equal(message, want[2])
        np.testing.assert_array_equal(lists, want)
        np.testing.assert_array_equal(stacked, want)
        np.testing.assert_array_equal(joined, want.reshape(-1, 3))
        np.testing.assert_array_equal(own, want[rank])
        assert len(gathered) == (SIZE if rank == 1 else 0)
        if rank == 1:
            np.testing.assert_array_equal(gathered, want)


def test_all_to_all_with_equal_and_other_sizes(ranks: Any) -> None:
    def work(rank: int) -> Any:
        inputs = [pc.full((rank + 1, 1 + other), float(10 * rank + other)) for other in range(SIZE)]
        outputs = [pc.empty(other + 1, 1 + rank) for other in range(SIZE)]
        work = dist.all_to_all(outputs, inputs, async_op=True)
        assert work is not None and work.wait()
        same = [pc.empty(2) for _ in range(SIZE)]
        dist.all_to_all(same, [pc.full((2,), float(10 * rank + other)) for other in range(SIZE)])
        single = pc.empty(SIZE)
        dist.all_to_all_single(single, pc.arange(SIZE) + 10.0 * rank)
        sizes = [rank + 1] * SIZE
        uneven = pc.empty(sum(range(1, SIZE + 1)))
        dist.all_to_all_single(
            uneven, pc.full((SIZE * (rank + 1),), float(rank)), list(range(1, SIZE + 1)), sizes
        )
        none = [pc.empty(0) for _ in range(SIZE)]
        dist.all_to_all(none, none)
        return [x.tolist() for x in outputs], [x.tolist() for x in same], single, uneven.tolist()

    for rank, (outputs, same, single, uneven) in enumerate(ranks(SIZE, work)):
        for other in range(SIZE):
            value = 10.0 * other + rank
            assert outputs[other] == [[value] * (rank + 1)] * (other + 1)
            assert same[other] == [value, value]
        assert single.tolist() == [10.0 * other + rank for other in range(SIZE)]
        assert uneven == [0.0, 1.0, 1.0, 2.0, 2.0, 2.0]


def test_tensors_that_are_not_dense_or_have_a_history(ranks: Any) -> None:
    def work(rank: int) -> Any:
        whole = pc.zeros(4, 3)
        part = whole.t()[1:]
        part.copy_(pc.full((2, 4), float(rank + 1)))
        dist.all_reduce(part)
        leaf = pc.ones(2, requires_grad=True)
        dist.broadcast(leaf, 0)
        inner = leaf * 2
        dist.all_reduce(inner)
        separate = [pc.zeros(2, 2).t() for _ in range(2)]
        dist.all_gather(separate, pc.full((2, 2), float(rank)), async_op=True).wait()
        return whole.tolist(), inner.tolist(), [x.tolist() for x in separate]

    for whole, inner, separate in ranks(2, work):
        assert whole == [[0.0, 3.0, 3.0]] * 4
        assert inner == [4.0, 4.0]
        assert separate == [[[0.0, 0.0]] * 2, [[1.0, 1.0]] * 2]


def test_many_asynchronous_ones_in_any_order_of_waiting(ranks: Any) -> None:
    def work(rank: int) -> Any:
        tensors = [pc.full((1000 * i + 1,), float(rank + i)) for i in range(8)]
        works = [dist.all_reduce(x, async_op=True) for x in tensors]
        future = works[3].get_future().then(lambda done: done.value()[0].sum().item())
        for each in reversed(works):
            assert each.wait(timeout=100) and each.is_completed() and each.is_success()
            assert each.exception() is None
        return [x[0].item() for x in tensors], future.wait()

    for firsts, total in ranks(2, work):
        assert firsts == [2.0 * i + 1 for i in range(8)]
        assert total == 7.0 * 3001


def test_several_at_once(ranks: Any) -> None:
    def work(rank: int) -> Any:
        some = [pc.full((2,), float(rank)), pc.full((3, 3), 1.0)]
        dist.all_reduce_coalesced(some)
        lists = [[pc.empty(2), pc.empty(3, 3)] for _ in range(2)]
        dist.all_gather_coalesced(lists, some)
        return [x.sum().item() for x in (*some, *lists[1])]

    assert ranks(2, work) == [[2.0, 18.0, 2.0, 18.0]] * 2


def test_the_same_bits_in_every_run_and_on_every_rank(ranks: Any) -> None:
    def work(rank: int) -> Any:
        x = pc.tensor(np.random.default_rng(rank).standard_normal(50_001).astype(np.float32))
        dist.all_reduce(x)
        return x.numpy().tobytes()

    first, second = ranks(3, work), ranks(3, work)
    assert len({*first, *second}) == 1


def test_halves_are_summed_in_float32(ranks: Any) -> None:
    def work(rank: int) -> Any:
        x = pc.tensor([2048.0 if rank == 0 else 1.0]).half()
        dist.all_reduce(x)
        return x.item()

    # in float16, 2048 + 1 is 2048, each time
    assert ranks(3, work) == [2050.0] * 3


@pytest.mark.usefixtures("alone")
def test_wrong_arguments_are_named() -> None:
    x = pc.ones(2)
    with pytest.raises(TypeError, match=r"all_reduce: `op` must be one of ReduceOp\.SUM"):
        dist.all_reduce(x, "sum")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`tensor` must be a tensor, got list"):
        dist.all_reduce([x])
    with pytest.raises(ValueError, match="for each of the 1 ranks, got 2"):
        dist.all_gather([x, x], x)
    with pytest.raises(ValueError, match="must have 2 elements"):
        dist.all_gather([pc.ones(3)], x)
    with pytest.raises(ValueError, match="1 times the elements of `input_tensor`"):
        dist.all_gather_into_tensor(pc.ones(3), x)
    with pytest.raises(ValueError, match="`src` must be a member"):
        dist.broadcast(x, 1)
    with pytest.raises(ValueError, match="give `src` or `group_src`"):
        dist.broadcast(x, 0, group_src=0)
    with pytest.raises(ValueError, match="the sum 2"):
        dist.all_to_all_single(x, x, [1], [2])
    with pytest.raises(TypeError, match="floating-point"):
        dist.all_reduce(pc.ones(2, dtype=pc.int64), Op.AVG)
    with pytest.raises(TypeError, match="`group` must be a ProcessGroup"):
        dist.all_reduce(x, group="all")
