"""Communicators that find each other by a name: forms, works, messages, and what goes wrong."""

from __future__ import annotations

import functools
import gc
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import mp_workers
import numpy as np
import pytest

import plait_core as pc
import plait_multiprocessing as mp

COUNT = iter(range(10**6))


def fresh() -> str:
    return f"shm:test-{os.getpid()}-{next(COUNT)}"


def together(size: int, work: Any, timeout: float = 60.0) -> list[Any]:
    """Run ``work(communicator)`` in `size` processes; return what they return, by rank."""
    context = mp.get_context("fork")
    answers, where = context.SimpleQueue(), fresh()

    def child(rank: int) -> None:
        try:
            with mp.Communicator.open(where, rank, size, timeout=timeout) as group:
                answers.put((rank, work(group)))
        except BaseException as error:
            answers.put((rank, error))

    processes = [context.Process(target=child, args=(rank,)) for rank in range(size)]
    for process in processes:
        process.start()
    results = dict(answers.get() for _ in processes)
    for process in processes:
        process.join()
    for answer in results.values():
        if isinstance(answer, BaseException):
            raise answer
    return [results[rank] for rank in range(size)]


def error_of(call: Any) -> str:
    """Return the kind and text of a call's error."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def is_in_use(where: str) -> bool:
    """Return whether a socket listens at this address of a group."""
    name = where.partition(":")[2]
    return f"/{name}\n" in Path("/proc/net/unix").read_text()


def test_the_forms_of_torch_distributed() -> None:
    def work(group: mp.Communicator) -> Any:
        rank, size = group.rank, group.size
        x = pc.arange(3.0) + rank
        assert group.all_reduce(x, "max") is None
        y = pc.full((2,), float(rank))
        group.broadcast(y, src=1)
        z = pc.full((2,), float(rank + 1))
        group.reduce(z, 2, "product")
        rows = [pc.zeros(2) for _ in range(size)]
        group.all_gather(rows, pc.full((2,), float(rank)))
        at_one = [pc.zeros(1) for _ in range(size)] if rank == 1 else None
        group.gather(pc.full((1,), float(rank)), at_one, dst=1)
        own = pc.zeros(2, dtype=pc.int64)
        group.scatter(own, [pc.full((2,), 10 + i) for i in range(size)] if rank == 0 else None)
        part = pc.zeros(2, 2).T
        group.reduce_scatter(part, [pc.full((2, 2), float(i)) for i in range(size)])
        parts = [np.zeros(1) for _ in range(size)]
        group.all_to_all(parts, [np.full(1, 10.0 * rank + i) for i in range(size)])
        bits = pc.tensor([1 << rank, 7])
        group.all_reduce(bits, "xor")
        group.barrier()
        return (
            (x.tolist(), y.tolist(), z.tolist(), [row.tolist() for row in rows]),
            at_one and [row.item() for row in at_one],
            (own.tolist(), part.tolist(), [float(p[0]) for p in parts], bits.tolist()),
        )

    for rank, (first, at_one, last) in enumerate(together(3, work)):
        x, y, z, rows = first
        assert (x, y, rows) == ([2.0, 3.0, 4.0], [1.0, 1.0], [[0.0] * 2, [1.0] * 2, [2.0] * 2])
        assert z == ([6.0, 6.0] if rank == 2 else [float(rank + 1)] * 2)
        assert at_one == ([0.0, 1.0, 2.0] if rank == 1 else None)
        own, part, parts, bits = last
        assert own == [10 + rank] * 2 and part == [[3.0 * rank] * 2] * 2
        assert parts == [rank, 10.0 + rank, 20.0 + rank] and bits == [7, 7]


def test_works_go_on_by_themselves() -> None:
    def work(group: mp.Communicator) -> Any:
        tensors = [pc.full((20_000 * i + 1,), float(group.rank + i)) for i in range(6)]
        versions = [x._version for x in tensors]
        works = [group.all_reduce(x, async_op=True) for x in tensors]
        tensors[0].data = pc.zeros(5)  # what runs keeps the old bytes
        last = pc.ones(1)
        group.all_reduce(last)
        for each in reversed(works):
            assert each.wait() is None and each.is_completed()
        tensors[1].share_memory_()  # which a storage that others use cannot
        assert all(x._version > v for x, v in zip(tensors[1:], versions[1:], strict=True))
        del works
        group.all_reduce(tensors[1], async_op=True)  # nobody waits for it
        group.barrier()
        return [float(x[-1]) for x in tensors], float(last)

    for values, last in together(2, work):
        assert values == [0.0, 6.0, 5.0, 7.0, 9.0, 11.0] and last == 2.0


def test_messages() -> None:
    def work(group: mp.Communicator) -> Any:
        other = 1 - group.rank
        big = pc.arange(300_000.0) + group.rank
        got = pc.zeros(600_000)[::2]
        sent = group.isend(big, other)
        assert group.recv(got, other) == other and sent.wait() is None
        # more than an outbox holds, some received in another order
        works = [group.isend(pc.tensor([tag]), other, tag=tag) for tag in range(100)]
        inbox = {tag: pc.zeros(1, dtype=pc.int64) for tag in range(100)}
        for tag in [*range(59, -1, -1), *range(60, 100)]:
            group.recv(inbox[tag], other, tag)
        for each in works:
            each.wait()
        received = group.irecv(got, other, tag=3)
        group.barrier()  # a message that is waited for does not hold collectives up
        last = group.isend(big, other, tag=3)
        source = received.wait()
        last.wait()
        return source, float(got[7]), [int(x) for x in inbox.values()]

    for rank, (source, seven, values) in enumerate(together(2, work)):
        assert source == 1 - rank and seven == 7.0 + source and values == list(range(100))


def test_messages_that_do_not_fit_or_do_not_come() -> None:
    heard = mp.get_context("fork").Event()

    def work(group: mp.Communicator) -> Any:
        x, texts = pc.ones(3), []
        if group.rank == 0:
            texts.append(error_of(lambda: group.send(pc.ones(4), 1, tag=5)))
            receive = functools.partial(group._raw.start, "recv", (), (x,), peer=1, timeout=1)
            texts.append(error_of(receive))
            texts.append(error_of(receive(tag=8, asynchronous=True).wait))
            heard.set()
        else:
            texts.append(error_of(lambda: group.recv(x, 0, tag=5)))
            assert heard.wait(60)
        group.all_reduce(x)
        return texts, x.tolist()

    (texts, x), (others, y) = together(2, work)
    refused = (
        "the same tensor on both ranks is required (tag 5); rank 0 sends 4 elements of float32, "
        "rank 1 receives 3 elements of float32"
    )
    assert texts[0] == f"GroupError: send: {refused}"
    assert others == [f"GroupError: recv: {refused}"]
    assert texts[1].startswith("TimeoutError: recv: waited 1 s for rank 1 (pid ")
    assert texts[1].endswith("to send it (tag 0)") and texts[2].endswith("(tag 8)")
    assert x == y == [2.0] * 3, "the group goes on"


def test_parts_of_a_group_and_of_a_part() -> None:
    def work(group: mp.Communicator) -> Any:
        half = group.split(group.rank // 2, key=-group.rank)
        assert half is not None
        alone = half.split(half.rank)
        assert alone is not None and alone.size == 1
        x = pc.ones(2) * group.rank
        half.all_reduce(x)
        group.leave()  # the part does not need it
        half.barrier()
        return half.rank, half.size, float(x[0])

    assert together(4, work) == [(1, 2, 1.0), (0, 2, 1.0), (1, 2, 5.0), (0, 2, 5.0)]


def test_an_abort_names_the_rank_and_the_reason() -> None:
    def work(group: mp.Communicator) -> Any:
        x = pc.ones(3)
        if group.rank == 0:
            group.recv(pc.ones(1), 1, tag=1)
            group.abort("the loss is NaN")
            group.abort("a second reason")
            return error_of(group.barrier)
        waits = group.irecv(pc.ones(2), 0)
        group.send(pc.ones(1), 0, tag=1)
        return error_of(lambda: group.all_reduce(x)), error_of(waits.wait)

    first, (second, third) = together(2, work)
    assert first.startswith("GroupError: barrier: rank 0 (pid ")
    for text, call in ((second, "all_reduce"), (third, "recv")):
        assert text.startswith(f"GroupError: {call}: rank 0 (pid ")
        assert text.endswith("aborted the group: the loss is NaN")


def test_a_name_is_free_again_and_no_file_remains(left_in_shared_memory: Any) -> None:
    where = fresh()

    def work(rank: int, answers: Any) -> None:
        for turn in range(3):
            with mp.Communicator.open(where, rank, 2, timeout=240) as group:
                x = pc.ones(1) + turn
                group.all_reduce(x)
        answers.put(float(x))
        if rank:
            os.kill(os.getpid(), signal.SIGKILL)

    context = mp.get_context("fork")
    answers = context.SimpleQueue()
    processes = [context.Process(target=work, args=(rank, answers)) for rank in range(2)]
    for process in processes:
        process.start()
    assert [answers.get(), answers.get()] == [6.0, 6.0]
    for process in processes:
        process.join()
    assert not is_in_use(where) and not left_in_shared_memory()


def test_the_error_names_a_rank_that_does_not_connect() -> None:
    where = fresh()
    text = error_of(lambda: mp.Communicator.open(where, 1, 2, timeout=0.3))
    assert text == "TimeoutError: open: waited 0.3 s for rank 0 to open the group"
    text = error_of(lambda: mp.Communicator.open(where, 0, 3, timeout=0.3))
    assert text.startswith("TimeoutError: open: waited 0.3 s for rank 1, which has not joined, ra")
    assert not is_in_use(where)


# Seconds for members to come before the next thing happens. Nobody can see that they came: where a
# machine is so busy that they did not, a test is repeated with more.
PAUSES = (0.5, 3.0, 10.0)


def coming_wrongly(rank: int, size: int, pause: float) -> tuple[str, dict[int, str]]:
    """Let ranks 0 and 2 of 4 meet, then this thread come, too; return all errors."""
    where, result = fresh(), {}

    def come(caller: int) -> None:
        result[caller] = error_of(lambda: mp.Communicator.open(where, caller, 4, timeout=4 * pause))

    threads = [threading.Thread(target=come, args=(caller,)) for caller in (0, 2)]
    for thread in threads:
        thread.start()
    time.sleep(pause)
    own = error_of(lambda: mp.Communicator.open(where, rank, size, timeout=4 * pause))
    for thread in threads:
        thread.join()
    return own, result


def test_who_has_another_size_is_sent_away() -> None:
    text = "one `size` is required: rank 0 opens a group of 4, rank 1 one of 3"
    for pause in PAUSES:
        own, result = coming_wrongly(1, 3, pause)
        if all(text in each for each in (own, *result.values())):
            break
    assert own.startswith("GroupError: open: ") and text in own
    assert text in result[0] and text in result[2]  # the group cannot become complete


def test_who_has_the_rank_of_another_is_sent_away() -> None:
    for pause in PAUSES:
        own, result = coming_wrongly(2, 4, pause)
        text = f"waited {4 * pause:g} s for rank 1, which has not joined"
        if "must be free" in own and all(text in each for each in result.values()):
            break
    assert own.startswith("GroupError: open: the rank must be free; rank 2 (pid")
    for each in result.values():  # whoever notices first, and the other one, which it tells
        assert text in each


@pytest.mark.parametrize("descriptors", [0, 20], ids=["many descriptors", "few descriptors"])
def test_silent_connections_do_not_block_others(descriptors: int) -> None:
    where, silent = fresh(), []
    context = mp.get_context("fork")

    def work(rank: int) -> None:
        if rank == 0 and descriptors:
            used = len(os.listdir("/proc/self/fd"))
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + descriptors, used + descriptors))
        with mp.Communicator.open(where, rank, 2, timeout=120) as group:
            group.barrier()

    host = context.Process(target=work, args=(0,))
    host.start()
    address = f"\0plait/{os.getuid()}/{where[4:]}"
    deadline = time.monotonic() + 120
    while len(silent) < 400:  # a second each would be more than the timeout
        end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            end.connect(address)
            silent.append(end)
        except OSError:
            end.close()
            assert time.monotonic() < deadline
            time.sleep(0.01)
    work(1)
    host.join()
    assert host.exitcode == 0
    for end in silent:
        end.close()


def test_a_member_that_dies_at_the_meeting() -> None:
    context = mp.get_context("fork")
    for pause in PAUSES:
        where = fresh()

        def come(where: str = where) -> None:
            mp.Communicator.open(where, 1, 3, timeout=240)

        process = context.Process(target=come)
        process.start()
        results: list[str] = []

        def open_first(where: str = where, results: list[str] = results) -> None:
            results.append(error_of(lambda: mp.Communicator.open(where, 0, 3, timeout=20)))

        first = threading.Thread(target=open_first)
        first.start()
        time.sleep(pause)
        process.kill()
        process.join()
        first.join()
        if "died" in results[0]:
            break
    assert results == [f"GroupError: open: rank 1 (pid {process.pid}) died"]


def test_wrong_arguments() -> None:
    for where in ("", "shm:", "tcp://localhost:1", "block:1:2:3"):
        with pytest.raises(ValueError, match='`where` must be "shm:NAME"'):
            mp.Communicator.open(where, 0, 1)
    with pytest.raises(ValueError, match="at most 80 bytes, got 81"):
        mp.Communicator.open("shm:" + "x" * 81, 0, 1)
    with pytest.raises(ValueError, match="block of a group"):
        mp.Communicator.open("block:1:2:3:4:5", 0, 1)
    with pytest.raises(ValueError, match="`rank`"):
        mp.Communicator.open(fresh(), 2, 2)
    with pytest.raises(ValueError, match=r"`size` must be in \[1, 1024\], got 2000"):
        mp.Communicator.open(fresh(), 0, 2000)
    for timeout in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="`timeout` must be positive"):
            mp.Communicator.open(fresh(), 0, 1, timeout=timeout)
    with pytest.raises(ValueError, match="no communicator named nobody is provided for 'cpu'"):
        mp.Communicator.open(fresh(), 0, 1, provider="nobody")
    alone, x = mp.Communicator.open(fresh(), 0, 1), pc.ones(2)
    for wrong, text in (
        (lambda: alone.send(x, 0), "`peer` must be another rank"),
        (lambda: alone.broadcast(x, 1), "`src` must be in"),
        (lambda: alone.all_reduce(x, "median"), "`op`"),
        (lambda: alone.all_gather([], x), "1 inputs and 1 outputs are required, got 1 and 0"),
        (lambda: alone.all_gather([pc.ones(3)], x), "one size are required, got 2 and 3 elements"),
        (lambda: alone.scatter(x), "1 inputs and 1 outputs are required, got 0 and 1"),
    ):
        with pytest.raises(ValueError, match=text):
            wrong()
    for wrong, text in (
        (lambda: alone.all_reduce(x, "xor"), "integers or bools are required for xor, got float"),
        (lambda: alone.all_reduce(3.0), "tensors are required, got float"),
        (lambda: alone.all_gather([x.double()], x), "float32 and float64"),
        (lambda: alone.abort(None), "abort: `why` must be a str, got NoneType"),
        (lambda: alone.recv(x, None), "recv: `src` must be an int, got NoneType"),
        (lambda: alone.send(x, True), "send: `dst` must be an int, got bool"),
        (lambda: alone.isend(x, 0, tag="a"), "send: `tag` must be an int, got str"),
        (lambda: alone.broadcast(x, src=0.0), "broadcast: `src` must be an int, got float"),
        (lambda: alone.split(None), "split: `color` must be an int, got NoneType"),
    ):
        with pytest.raises(TypeError, match=text):
            wrong()
    with pytest.raises(RuntimeError, match="history"):
        alone.all_reduce(pc.ones(2, requires_grad=True) * 2)
    alone.leave()
    with pytest.raises(ValueError, match="left its group"):
        alone.barrier()


def test_what_is_written_has_a_place_for_each_element() -> None:
    alone, member = mp.Communicator.open(fresh(), 0, 1), mp.Group(1).join(0)
    x, row = pc.arange(6.0), pc.zeros(1).expand(3)
    y, array = pc.zeros(3), np.zeros(8, np.float32)
    twice = np.lib.stride_tricks.as_strided(array, (3, 2), (4, 8))
    one = "`tensor` of shape .* must have a place for each element"
    for call, text in (
        (lambda: alone.all_reduce(row), f"all_reduce: {one}"),
        (lambda: alone.all_reduce(twice), r"`tensor` of shape \(3, 2\)"),
        (lambda: alone.broadcast(row), f"broadcast: {one}"),
        (lambda: alone.all_gather([row], y), r"all_gather: `tensor_list\[0\]` of shape \(3,\)"),
        (lambda: alone.gather(y, [row]), r"`gather_list\[0\]`"),
        (lambda: alone.scatter(row, [y]), "scatter: `tensor`"),
        (lambda: alone.reduce_scatter(row, [y]), "reduce_scatter: `output`"),
        (lambda: alone.all_to_all([row], [y]), r"`output_tensor_list\[0\]`"),
        (lambda: alone.all_gather([x[1:4]], x[:3]), "`tensor` of .* that overlaps an output"),
        (lambda: alone.all_to_all([x[1:4]], [x[:3]]), r"`input_tensor_list\[0\]`"),
        (lambda: member.all_reduce(row), "`tensors` of shape"),
        (lambda: member.all_reduce([pc.zeros(2, dtype=pc.int64), y, row]), r"`tensors\[2\]`"),
        (lambda: member.all_reduce([x[:3], x[2:]]), r"`tensors\[1\]`"),
        (lambda: member.all_reduce([x, x]), r"`tensors\[1\]`"),
        (lambda: member.scatter(row, [y]), "scatter: `tensor`"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    assert x.tolist() == [0, 1, 2, 3, 4, 5]  # nothing was written
    # what interleaves without meeting, and an input that is the output
    rows = pc.zeros(4, 3)
    member.all_reduce(list(rows.unbind(1)))
    alone.all_gather([x[:3]], x[:3])
    alone.all_reduce(x.flip(0)[::2])
    alone.all_reduce(rows.T)
    alone.all_gather([y], row)  # it is only read


def test_a_forked_child_is_no_member_and_does_not_hang() -> None:
    group = mp.Communicator.open(fresh(), 0, 1)
    other = mp.Group(2, timeout=240).join(0)
    work = other.all_reduce(pc.ones(3), async_op=True)  # its thread is not in the child
    receiver, sender = mp.Pipe(duplex=False)

    def child() -> None:
        calls = (
            *(group.barrier, other.barrier, work.wait, work.is_completed),
            *(lambda: group.split(0), lambda: other.abort("why")),
        )
        sender.send([error_of(call) for call in calls])
        group.leave()
        other.leave()
        gc.collect()

    process = mp.get_context("fork").Process(target=child)
    process.start()
    texts = receiver.recv()
    process.join(240)
    assert process.exitcode == 0
    for text in texts:
        assert text.startswith("GroupError: ")
        assert f"the process {os.getpid()}, of which this one is a forked child" in text
    group.barrier()  # the parent is one still
    assert not work.is_completed()
    other.abort("the end of the test")
    assert "the end of the test" in error_of(work.wait)


def test_ctrl_c_ends_the_wait_for_a_work_and_not_the_work() -> None:
    group = mp.Group(2, timeout=240)
    member, x = group.join(0), pc.ones(2)
    work = member.all_reduce(x, async_op=True)
    with pytest.raises(KeyboardInterrupt), mp_workers.interrupted_after(0.2):
        work.wait()
    group.join(1).all_reduce(pc.ones(2))
    assert work.wait() is x and x.tolist() == [2.0, 2.0]


def test_ctrl_c_at_the_meeting() -> None:
    with pytest.raises(KeyboardInterrupt), mp_workers.interrupted_after(0.2):
        mp.Communicator.open(fresh(), 1, 2)


ENDS = """if True:
    import plait_core as pc, plait_multiprocessing as mp
    member = mp.Group(2, timeout=600).join(0)
    works = [member.all_reduce(pc.ones(5), async_op=True), member.irecv(pc.ones(5), 1)]
    {then}
"""


@pytest.mark.parametrize(
    "then", ["pass", "member.leave()", "del member, works", "raise SystemExit"]
)
def test_a_process_ends_with_unfinished_works(then: str) -> None:
    command = [sys.executable, "-c", ENDS.format(then=then)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_members_have_all_of_it() -> None:
    context = mp.get_context("fork")
    group, answers = mp.Group(3), context.SimpleQueue()

    def work(rank: int) -> None:
        with group.join(rank) as member:
            x = pc.full((2,), float(rank + 1))
            same = member.reduce(x, root=1, op="product")
            own = member.scatter(
                pc.zeros(2), [pc.full((2,), float(i)) for i in range(3)] if rank == 2 else None, 2
            )
            sent = member.all_to_all([pc.tensor([10 * rank + i]) for i in range(3)])
            later = member.all_gather(pc.tensor([rank]), async_op=True)
            many = member.all_reduce([pc.ones(2), pc.ones(1, dtype=pc.int64)], async_op=True)
            if rank == 0:
                member.send(pc.ones(2), 1)
            if rank == 1:
                member.recv(own, 0)
            gathered = [int(row) for row in later.wait()]
            sums = [row.tolist() for row in many.wait()]
            part = member.split(0 if rank else -1)
            size = part.size if part else 0
        answers.put(
            (
                rank,
                same is x,
                x.tolist(),
                own.tolist(),
                [int(y) for y in sent],
                gathered,
                sums,
                size,
            )
        )

    processes = [context.Process(target=work, args=(rank,)) for rank in range(3)]
    for process in processes:
        process.start()
    for rank, same, x, own, sent, gathered, sums, size in sorted(answers.get() for _ in range(3)):
        assert same and x == ([6.0, 6.0] if rank == 1 else [float(rank + 1)] * 2)
        assert own == [1.0 if rank == 1 else float(rank)] * 2
        assert sent == [rank, 10 + rank, 20 + rank] and gathered == [0, 1, 2]
        assert sums == [[3.0, 3.0], [3]] and size == (2 if rank else 0)
    for process in processes:
        process.join()


def test_killed_members_leave_no_memory() -> None:
    """A process that is killed does not say that it needs the group's memory no more."""
    context = mp.get_context("fork")
    committed = []

    def child(where: str, way: str) -> None:
        group = mp.Communicator.open(where, 1, 2)
        group.all_reduce(pc.ones(1 << 16))
        if way == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if way == "leaves":
            group.leave()

    for way in ("killed", "leaves", "ends") * 3:
        where = fresh()
        process = context.Process(target=child, args=(where, way))
        process.start()
        with mp.Communicator.open(where, 0, 2) as group:
            group.all_reduce(pc.ones(1 << 16))
            with pytest.raises(mp.GroupError) as caught:
                group.barrier()
            assert caught.value.ranks == (1,)
        process.join()
        del group, caught
        gc.collect()
        committed.append(mp.memory_stats().committed)
    assert max(committed[1:]) == committed[0]


def test_who_did_not_get_a_rank_does_not_leave_for_its_owner() -> None:
    group = mp.Group(2)
    first, second = group.join(0), group.join(1)
    with pytest.raises(ValueError, match="has it"):
        group.join(1)
    works = [member.barrier(async_op=True) for member in (first, second)]
    for work in works:
        assert work is not None
        work.wait()
