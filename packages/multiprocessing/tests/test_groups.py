"""Collectives against NumPy, and errors where members are absent."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import mp_workers
import numpy as np
import pytest

import plait_core as pc
import plait_multiprocessing as mp


def together(size: int, work: Any, **options: Any) -> list[Any]:
    """Run ``work(member)`` in `size` processes; return what they return, by rank."""
    context = mp.get_context("fork")
    group, answers = mp.Group(size, **options), context.SimpleQueue()

    def child(rank: int) -> None:
        try:
            answers.put((rank, work(group.join(rank))))
        except BaseException as error:
            answers.put((rank, error))

    processes = [context.Process(target=child, args=(rank,)) for rank in range(size)]
    for process in processes:
        process.start()
    results = dict(answers.get() for _ in processes)
    for process in processes:
        process.join()
    return [results[rank] for rank in range(size)]


def numbers(rank: int, n: int, dtype: str = "float32") -> Any:
    values = np.random.default_rng(rank).standard_normal(n) * 3
    if dtype == "bool":
        return pc.tensor(values > 0)
    return pc.tensor(values).to(dtype)


@pytest.mark.parametrize("n", [8000, 8193, 300_000])
@pytest.mark.parametrize("shared", ["all", "some", "none", "part"])
@pytest.mark.parametrize("size", [2, 3])
def test_all_reduce_of_shared_memory(n: int, shared: str, size: int) -> None:
    def work(member: Any) -> list[bytes]:
        x = pc.zeros(n + 5)
        if shared in ("all", "part") or (shared == "some" and member.rank == 1):
            x.share_memory_()
        x = x[5:] if shared == "part" else x[:n]  # an address that vectors do not like
        entries = []
        for turn in range(4):
            x.copy_(numbers(member.rank + 10 * turn, n))
            member.all_reduce(x, "mean" if turn % 2 else "sum")
            entries.append(x.numpy().tobytes())
            member.barrier()
        return entries

    results = together(size, work)
    assert all(result == results[0] for result in results)
    for turn, entries in enumerate(results[0]):
        rows = [numbers(rank + 10 * turn, n).numpy() for rank in range(size)]
        total = sum(rows[1:], rows[0])
        expected = total / np.float32(size) if turn % 2 else total
        assert entries == expected.tobytes()


def test_shared_memory_is_free_again_behind_all_reduces() -> None:
    def work(member: Any) -> tuple[int, int]:
        def reduce_some() -> int:
            for _ in range(5):
                x = pc.ones(1 << 18).share_memory_()
                member.all_reduce(x)
                del x
            member.barrier()  # the others have given the blocks back
            return mp.memory_stats().committed

        return reduce_some(), reduce_some()

    for before, after in together(2, work):
        assert before == after


def test_pipelined_collectives_between_others() -> None:
    def work(member: Any) -> list[Any]:
        results = []
        for turn in range(3):
            results.append(member.all_reduce(numbers(member.rank + turn, 3000)).tolist())
            results.append(member.broadcast(numbers(member.rank + turn, 100), 1).tolist())
            results.append([x.tolist() for x in member.all_gather(numbers(member.rank, 700))])
            parts = [numbers(member.rank + r, 900) for r in range(member.size)]
            results.append(member.reduce_scatter(parts).tolist())
            member.barrier()
        return results

    small, large = together(3, work, chunk=1024), together(3, work)
    assert small == large  # any number of chunks under way


@pytest.mark.parametrize("op", ["sum", "mean", "product", "min", "max"])
@pytest.mark.parametrize("n", [0, 1, 1000, 50_000])
def test_all_reduce(op: str, n: int) -> None:
    results = together(3, lambda m: m.all_reduce(numbers(m.rank, n), op))
    rows = np.stack([numbers(rank, n).numpy() for rank in range(3)])
    reduce = {
        "sum": lambda x: x[0] + x[1] + x[2],
        "mean": lambda x: (x[0] + x[1] + x[2]) / np.float32(3),
        "product": lambda x: x[0] * x[1] * x[2],
        "min": lambda x: x.min(0),
        "max": lambda x: x.max(0),
    }[op]
    for result in results:
        assert np.array_equal(result.numpy(), reduce(rows))  # in the ranks' order: the same bits


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float64",
        "complex64",
        "complex128",
    ],
)
def test_dtypes(dtype: str) -> None:
    results = together(2, lambda m: m.all_reduce(numbers(m.rank, 300, dtype)))
    first, second = numbers(0, 300, dtype), numbers(1, 300, dtype)
    if dtype == "bool":
        expected = first | second
    elif dtype in ("float16", "bfloat16"):
        expected = (first.to("float32") + second.to("float32")).to(dtype)
    else:
        expected = first + second
    assert all((result == expected).all() for result in results)
    assert results[0].dtype is first.dtype


def test_halves_keep_special_values() -> None:
    values = [0.0, -0.0, float("inf"), float("nan"), 65504.0, 6e-8, -3e-5, 1.0009765625, 70000.0]

    def work(member: Any) -> Any:
        out = []
        for dtype in ("float16", "bfloat16"):
            x = pc.tensor(values).to(dtype)
            other = pc.tensor([1.0] * len(values)).to(dtype)
            out.append(member.all_reduce(x if member.rank == 0 else other, "product"))
        return out

    for halves, brains in together(2, work):
        for got, dtype in ((halves, "float16"), (brains, "bfloat16")):
            want = pc.tensor(values).to(dtype).to("float32").numpy()
            assert np.array_equal(got.to("float32").numpy(), want, equal_nan=True)


def test_nan_wins_in_min_and_max() -> None:
    def work(member: Any) -> Any:
        x = pc.tensor([float("nan"), 1.0] if member.rank == 0 else [2.0, float("nan")])
        return member.all_reduce(x.clone(), "min"), member.all_reduce(x, "max")

    for low, high in together(2, work):
        assert np.isnan(low.numpy()).all() and np.isnan(high.numpy()).all()


def test_lists_strides_and_numpy_arrays() -> None:
    def work(member: Any) -> Any:
        base = pc.zeros(4, 6)
        view = base.T[1:5:2]
        view.fill_(float(member.rank + 1))
        whole = pc.full((70_000,), 2.0)
        ints = pc.ones(3, dtype=pc.int64)
        array = np.full(5, member.rank, np.float64)
        same = [view, ints, whole]
        assert member.all_reduce(same) is same
        member.all_reduce(array)
        return base, ints, whole, array

    for base, ints, whole, array in together(2, work):
        expected = np.zeros((4, 6))
        expected[:, [1, 3]] = 3
        assert np.array_equal(base.numpy(), expected) and ints.tolist() == [2, 2, 2]
        assert (whole == 4).all() and array.tolist() == [1.0] * 5


def test_broadcast_gather_and_scatter() -> None:
    def work(member: Any) -> Any:
        x = pc.arange(200_000.0) * (member.rank + 1)
        rows = member.all_gather(x[:5])
        at_one = member.gather(x[::50_000], root=1)
        member.broadcast(x, root=2)
        parts = [pc.full((2, 3), float(member.rank + 10 * i)) for i in range(3)]
        own = member.reduce_scatter(parts, "max")
        big = member.reduce_scatter([pc.full((90_000,), float(i)) for i in range(3)])
        member.barrier()
        return [row.tolist() for row in rows], at_one, float(x[7]), own, big

    for rank, (rows, at_one, seven, own, big) in enumerate(together(3, work)):
        assert rows == [[0.0, k, 2.0 * k, 3.0 * k, 4.0 * k] for k in (1, 2, 3)]
        assert (at_one is None) == (rank != 1) and seven == 21.0
        if at_one is not None:
            assert at_one[2].tolist() == [0.0, 150_000.0, 300_000.0, 450_000.0]
        assert own.tolist() == [[10.0 * rank + 2] * 3] * 2
        assert (big == 3.0 * rank).all() and big.shape == (90_000,)


def test_the_bits_do_not_depend_on_the_order_of_arrival() -> None:
    def work(member: Any) -> Any:
        out = []
        for turn in range(3):
            time.sleep(0.02 * ((member.rank + turn) % 3))
            out.append(member.all_reduce(numbers(member.rank, 40_000)).numpy().tobytes())
        return out

    results = {bits for bits_of_rank in together(3, work) for bits in bits_of_rank}
    assert len(results) == 1


def test_many_steps_and_small_chunks() -> None:
    def work(member: Any) -> Any:
        x = pc.ones(1000)
        for _ in range(60):
            member.all_reduce(x, "mean")
            member.broadcast(x, root=1)
            member.barrier()
        return float(x.sum())

    assert together(4, work, chunk=128) == [1000.0] * 4


def test_versions_move_on() -> None:
    member = mp.Group(1).join(0)
    x = pc.ones(3)
    before = x._version
    member.all_reduce(x)
    assert x._version > before
    w = pc.ones(2, requires_grad=True)
    assert member.broadcast(w) is w  # a leaf is written as by an optimizer
    with pytest.raises(RuntimeError, match="history"):
        member.all_reduce(w * 2)


def test_spawned_members() -> None:
    results = pc.arange(6.0).reshape(2, 3).clone().share_memory_()
    mp.spawn(mp_workers.reduce_everything, (mp.Group(2), results), nprocs=2)
    assert results.tolist() == [[3.0, 5.0, 7.0], [3.0, 5.0, 7.0]]


def test_wrong_arguments() -> None:
    for bad in (0, -1, 2000):
        with pytest.raises(ValueError, match="size"):
            mp.Group(bad)
    with pytest.raises(ValueError, match="timeout"):
        mp.Group(1, timeout=0)
    with pytest.raises(ValueError, match="chunk"):
        mp.Group(1, chunk=100)
    group = mp.Group(2, timeout=0.2)
    with pytest.raises(ValueError, match="rank"):
        group.join(2)
    member = group.join(0)
    assert repr(member) == "Member(rank=0, size=2)" and "size=2" in repr(group)
    with pytest.raises(ValueError, match=r"rank 0 \(pid .*has it"):
        group.join(0)
    x = pc.ones(2)
    for wrong, text in (
        (lambda: member.all_reduce(x, "median"), "op"),
        (lambda: member.broadcast(x, root=2), "root"),
        (lambda: member.reduce_scatter([x]), "2 tensors of one shape"),
    ):
        with pytest.raises(ValueError, match=text):
            wrong()
    for wrong, text in (
        (lambda: member.all_reduce(pc.ones(2, dtype=pc.int32), "mean"), "floating"),
        (lambda: member.all_reduce(np.ones(2, np.int64), "mean"), "floating"),
        (lambda: member.all_reduce(pc.ones(2, dtype=pc.complex64), "max"), "complex"),
        (lambda: member.all_reduce(3.0), "tensors are required"),
        (lambda: member.all_gather(np.ones(2)), "tensor of plait"),
        (lambda: member.all_reduce(pc.ones(2, device="meta")), "CPU"),
    ):
        with pytest.raises(TypeError, match=text):
            wrong()
    frozen = np.ones(2)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match=r"written|read-only"):
        member.all_reduce(frozen)
    member.leave()
    with pytest.raises(ValueError, match="left its group"):
        member.barrier()


def test_different_calls_raise_an_error_and_the_group_still_works() -> None:
    def work(member: Any) -> Any:
        x = pc.ones(3 + member.rank)
        try:
            member.all_reduce(x)
            text = ""
        except mp.GroupError as error:
            text = str(error)
        try:
            member.barrier() if member.rank else member.broadcast(pc.ones(2))
        except mp.GroupError as error:
            text += str(error)
        return text, float(member.all_reduce(pc.ones(1))), x.tolist()

    for rank, (text, total, x) in enumerate(together(2, work)):
        assert "rank 0 calls all_reduce of 3 elements of float32 (sum)" in text
        assert "rank 1 calls all_reduce of 4 elements" in text and "rank 1 calls barrier" in text
        assert total == 2.0 and x == [1.0] * (3 + rank)


def test_a_member_that_never_joins_is_named() -> None:
    group = mp.Group(3, timeout=0.3)
    member = group.join(1)
    with pytest.raises(TimeoutError, match=r"barrier: waited 0.3 s for rank 0, which has not joi"):
        member.barrier()
    with pytest.raises(mp.GroupError, match="the group is broken: rank 1"):
        member.barrier()


def test_all_survivors_name_the_member_that_does_not_come() -> None:
    group = mp.Group(3, timeout=240)
    members = [group.join(rank) for rank in range(3)]  # 2 is like stopped: it is there, and waits
    errors: list[Exception] = []

    def meet() -> None:
        try:
            members[1].barrier()
        except mp.GroupError as error:
            errors.append(error)

    patient = threading.Thread(target=meet)
    patient.start()
    time.sleep(0.1)  # it waits when 0 begins, and at the latest when 0 gives up
    with pytest.raises(TimeoutError) as raised:
        members[0]._raw.start("barrier", timeout=2)
    patient.join()
    for error in (raised.value, *errors):
        assert f"waited 2 s for rank 2 (pid {os.getpid()})" in str(error)
    assert errors
    with pytest.raises(mp.GroupError, match=r"rank 0 \(pid \d+\) waited 2 s for rank 2"):
        members[2].barrier()  # it learns that the others no longer wait for it


def test_a_dead_member_is_named_by_rank_and_pid() -> None:
    context = mp.get_context("fork")
    group, answers = mp.Group(3, timeout=600), context.SimpleQueue()
    processes = [
        context.Process(target=mp_workers.die_in_group, args=(rank, group, answers))
        for rank in range(3)
    ]
    start = time.monotonic()
    for process in processes:
        process.start()
    results = [answers.get(), answers.get()]
    assert time.monotonic() - start < 240  # long before the timeout
    for process in processes:
        process.join()
    assert processes[1].exitcode == -signal.SIGKILL
    texts = " ".join(text for _, _, text in results)
    assert f"rank 1 (pid {processes[1].pid}) died" in texts
    assert all("all_reduce" in text for _, _, text in results)


def test_a_member_that_left_is_named() -> None:
    group = mp.Group(2, timeout=240)
    other = threading.Thread(target=lambda: group.join(1).leave())
    with group.join(0) as member:
        other.start()
        with pytest.raises(mp.GroupError, match=rf"rank 1 \(pid {os.getpid()}\) left"):
            member.barrier()
    other.join()


def test_a_forked_copy_of_a_member_is_none() -> None:
    group = mp.Group(1)
    member = group.join(0)
    process = mp.get_context("fork").Process(target=member.leave)
    process.start()
    process.join()
    member.barrier()
    assert float(member.all_reduce(pc.ones(1))) == 1.0


def test_ctrl_c_ends_the_wait() -> None:
    member = mp.Group(2, timeout=600).join(0)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), mp_workers.interrupted_after(0.2):
        member.barrier()
    assert time.monotonic() - start < 240


def test_a_rank_is_an_int() -> None:
    group = mp.Group(2)
    for rank in ("0", 0.0, True):
        with pytest.raises(TypeError, match="join: `rank` must be an int"):
            group.join(rank)  # type: ignore[arg-type]
    with group.join(np.int64(1)) as member:
        assert member.rank == 1
