"""Processes that are killed, limits that are reached, forks after threads.

``PLAIT_FAULT_ROUNDS=1000`` repeats the random ones 1000 times.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import mp_workers
import pytest

import plait_core as pc
import plait_multiprocessing as mp
import plait_nn as nn

ROUNDS = int(os.environ.get("PLAIT_FAULT_ROUNDS", "50"))


def run(code: str, **options: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        **options,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def test_the_consumer_reads_messages_of_a_killed_producer(context) -> None:
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=mp_workers.produce_and_die, args=(sender,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    numbers, view = receiver.recv()
    assert numbers.sum() == 499500 and view.shape == (2, 4)
    numbers.add_(1)
    assert numbers[0] == 1


def test_kills_leave_no_name_and_no_descriptor(left_in_shared_memory: Any) -> None:
    context = mp.get_context("fork")
    before = mp_workers.count_descriptors()
    for _ in range(ROUNDS):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=mp_workers.share_and_wait, args=(sender, 20))
        process.start()
        assert receiver.recv() == 20
        process.kill()
        process.join()
        process.close()
        receiver.close()
        sender.close()
    assert not left_in_shared_memory()
    assert mp_workers.count_descriptors() == before


def test_a_receiver_that_is_killed_costs_its_blocks_alone() -> None:
    context = mp.get_context("fork")
    to, here = context.Pipe()
    process = context.Process(target=mp_workers.hold, args=(to, to))
    process.start()
    x = pc.full((1000,), 2.0)
    here.send(x)
    assert here.recv() == 2.0
    process.kill()
    process.join()
    address = x.data_ptr()
    del x
    y = pc.zeros(1000).share_memory_()
    assert y.data_ptr() != address  # a count that is never released: the note says so


def test_a_process_that_ends_gives_its_counts_back(context) -> None:
    to, here = context.Pipe()
    process = context.Process(target=mp_workers.hold, args=(to, to))
    process.start()
    x = pc.full((100_000,), 2.0)
    here.send(x)
    assert here.recv() == 2.0
    address = x.data_ptr()
    del x
    other = pc.zeros(100_000).share_memory_()
    assert other.data_ptr() != address  # it is held over there
    here.send(None)
    process.join()
    assert pc.zeros(100_000).share_memory_().data_ptr() == address


def test_a_forked_child_keeps_inherited_objects() -> None:
    context = mp.get_context("fork")
    receiver, sender = context.Pipe()
    inherited = [pc.full((50_000,), 3.0).share_memory_()]

    def child() -> None:
        sender.send(None)
        sender.recv()
        sender.send(float(inherited.pop().sum()))

    process = context.Process(target=child)
    process.start()
    receiver.recv()
    inherited.clear()  # the child holds another count, so that the block is not reused
    references = [pc.zeros(50_000).share_memory_() for _ in range(3)]
    receiver.send(None)
    assert receiver.recv() == 150_000.0 and len(references) == 3
    process.join()


def test_children_take_no_blocks_of_their_parent() -> None:
    context = mp.get_context("fork")
    before = pc.zeros(10).share_memory_()
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=mp_workers.produce, args=(_Puts(sender), 5))
    process.start()
    own = [pc.full((1000,), -1.0).share_memory_() for _ in range(5)]
    theirs = [receiver.recv() for _ in range(5)]
    process.join()
    assert [float(x[5]) for x in theirs] == [0, 1, 2, 3, 4]
    assert all((x == -1).all() for x in own) and before.tolist() == [0] * 10


class _Puts:
    def __init__(self, sender: object) -> None:
        self.put = sender.send  # type: ignore[attr-defined]


@pytest.mark.parametrize("kills", [0, 2])
def test_no_tensor_has_the_bytes_of_another(kills: int) -> None:
    context = mp.get_context("fork")
    queues = [context.Queue(20) for _ in range(4)]
    processes = [
        context.Process(
            target=mp_workers.pass_around,
            args=(i, queues, 1.5 if i >= kills else 600.0),  # some are not to end by themselves
        )
        for i in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes[:kills]:
        time.sleep(0.4)
        process.kill()
    for process in processes:
        process.join(240)
    assert [process.exitcode for process in processes] == [-9] * kills + [0] * (4 - kills)
    for queue in queues:
        queue.close()


def test_many_tensors_need_few_descriptors() -> None:
    context = mp.get_context("fork")
    to, far = context.Pipe()
    process = context.Process(target=mp_workers.receive_many, args=(far, far, 100_000))
    process.start()
    far.close()
    before = mp_workers.count_descriptors()
    references = []
    for _ in range(100):
        some = [pc.full((8,), 1.0) for _ in range(1000)]
        to.send(some)
        references += some
    descriptors, arenas, value = to.recv()
    process.join()
    assert value == 1.0 and arenas <= 12 and descriptors <= 32
    assert mp_workers.count_descriptors() <= before + 4
    assert mp.memory_stats().arenas <= 12


def test_fork_after_threads() -> None:
    context = mp.get_context("fork")
    model = nn.Linear(64, 64)
    model(pc.randn(512, 64))  # the thread pool works
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            pc.zeros(1000).share_memory_()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(max(20, ROUNDS)):
            process = context.Process(target=mp_workers.do_nothing)
            process.start()
            process.join(240)
            assert process.exitcode == 0
            process.close()
    finally:
        stop.set()
        thread.join()


def test_a_child_forked_after_threads_computes_and_shares() -> None:
    context = mp.get_context("fork")
    model = nn.Linear(256, 256)
    x = pc.randn(512, 256)
    expected = model(x).detach()
    queue = context.SimpleQueue()

    def child() -> None:
        queue.put(model(x).detach())

    for _ in range(5):
        process = context.Process(target=child)
        process.start()
        assert (queue.get() == expected).all()
        process.join(240)
        assert process.exitcode == 0


def test_too_few_descriptors_name_the_limit() -> None:
    context = mp.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=mp_workers.limited_receiver, args=(there, there))
    process.start()
    assert here.recv() == "ready"
    here.send(_ARENA.clone())
    assert "RLIMIT_NOFILE" in here.recv()
    process.join()
    out = run(
        """
        import os, resource, plait_core as pc
        import plait_multiprocessing as mp
        pc.zeros(1)
        taken = [os.dup(0) for _ in range(3)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1,) * 2)
        try:
            pc.zeros(3).share_memory_()
        except RuntimeError as error:
            print(error)
        """
    )
    assert "RLIMIT_NOFILE" in out and "ulimit -n" in out


_ARENA = pc.ones(10)


def test_a_pipe_without_descriptors_names_the_limit() -> None:
    out = run(
        """
        import os, resource
        import plait_multiprocessing as mp
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        kept = []
        try:
            while True:
                kept.append(mp.Pipe())
        except OSError as error:
            print(error)
        """
    )
    assert "RLIMIT_NOFILE) is 64" in out


def test_a_process_forked_by_hand_gives_back_as_it_exits() -> None:
    out = run(
        """
        import os, sys, plait_core as pc, plait_multiprocessing as mp
        x = pc.zeros(100_000).share_memory_()
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        os.waitpid(pid, 0)
        address = x.data_ptr()
        del x
        print(pc.zeros(100_000).share_memory_().data_ptr() == address)
        """
    )
    assert out == "True\n"


def test_too_little_memory_is_an_error() -> None:
    big = pc.empty(2, device="meta")
    assert big.numel() == 2
    from plait_multiprocessing import _shared

    with pytest.raises(MemoryError, match="shared memory"):
        _shared.create(1 << 45)
    with pytest.raises(MemoryError, match="shared memory"):
        _shared.create(1 << 60)
    out = run(
        """
        import os
        os.environ["PLAIT_SHARED_MEMORY_LIMIT"] = str(4 << 20)
        import plait_core as pc
        kept = [pc.zeros(1 << 18).share_memory_() for _ in range(2)]
        try:
            while True:
                kept.append(pc.zeros(1 << 18).share_memory_())
        except MemoryError as error:
            print(len(kept), type(error).__name__, error)
        kept.pop()
        kept.append(pc.ones(1 << 18).share_memory_())  # what is free is used again
        print(float(kept[-1].sum()))
        """
    )
    assert "OutOfMemoryError" in out and "PLAIT_SHARED_MEMORY_LIMIT" in out
    assert out.startswith("3 ") and "262144.0" in out


def test_a_limit_that_is_no_number_is_an_error() -> None:
    out = run(
        """
        import os
        os.environ["PLAIT_SHARED_MEMORY_LIMIT"] = "1g"
        import plait_core as pc
        try:
            pc.zeros(3).share_memory_()
        except ValueError as error:
            print(error)
        """
    )
    assert "PLAIT_SHARED_MEMORY_LIMIT: a number of bytes is required, got '1g'" in out


def test_a_limit_of_file_sizes_is_an_error() -> None:
    out = run(
        """
        import resource, signal, plait_core as pc, plait_multiprocessing
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            pc.zeros(1 << 20).share_memory_()
        except MemoryError as error:
            print(error)
        """
    )
    assert "RLIMIT_FSIZE" in out


def test_a_limit_of_addresses_makes_arenas_smaller() -> None:
    limit = resource.getrlimit(resource.RLIMIT_AS)
    assert limit[1] in (resource.RLIM_INFINITY, limit[1])
    out = run(
        """
        import resource, plait_core as pc, plait_multiprocessing as mp
        pc.zeros(1).share_memory_()
        kept = [pc.ones(1 << 22).share_memory_() for _ in range(3)]
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (used + (90 << 20),) * 2)
        kept += [pc.ones(1 << 22).share_memory_() for _ in range(2)]
        print(all(float(x.sum()) == 1 << 22 for x in kept))
        """
    )
    assert out == "True\n"
