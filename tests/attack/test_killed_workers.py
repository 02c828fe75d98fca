"""Workers killed at random times: an error that names them or the right result, and no hang."""

from __future__ import annotations

import contextlib
import os
import queue as queues
import random
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import plait_core as pc
import plait_data
import plait_multiprocessing as mp

LONG = 60.0  # seconds; what takes longer hangs


class Squares:
    """A dataset that takes some time."""

    def __len__(self) -> int:
        return 200

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        time.sleep(0.0005)
        return np.full(500, index, np.float32), index * index


@contextlib.contextmanager
def killing(pids: list[int], after: float, which: signal.Signals) -> Iterator[None]:
    """Send one of the processes a signal, some time from now."""

    def kill() -> None:
        time.sleep(after)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, which)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def children() -> set[int]:
    path = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
    with open(path) as file:
        return {int(pid) for pid in file.read().split()}


def test_a_loader_whose_worker_is_killed(rounds) -> None:
    for source in rounds:
        before = children()
        method = source.choice([None, "fork"])
        loader = plait_data.DataLoader(
            Squares(), batch_size=8, num_workers=2, timeout=LONG, multiprocessing_context=method
        )
        batches = iter(loader)
        numbers = [next(batches)[1]]
        victim = source.choice(sorted(children() - before))
        try:
            with killing([victim], source.uniform(0, 0.1), signal.SIGKILL):
                numbers += [number for _, number in batches]
        except RuntimeError as error:
            assert str(victim) in str(error), f"{victim} was killed; {error}"
        else:
            assert np.concatenate(numbers).tolist() == [i * i for i in range(200)]
        del batches, loader
        wait_for(lambda reference=before: children() <= reference)


def work(x: pc.Tensor, pause: float) -> pc.Tensor:
    time.sleep(pause)
    return x + 1


def test_a_pool_whose_workers_are_killed(rounds) -> None:
    for source in rounds:
        before = children()
        size = source.choice([2, 2000])
        killed = 0
        with mp.get_context("fork").Pool(3) as pool:
            tasks = [
                pool.apply_async(work, (pc.full((size,), float(i)), source.uniform(0, 0.01)))
                for i in range(40)
            ]
            for _ in range(source.randint(1, 5)):
                time.sleep(source.uniform(0, 0.03))
                if alive := sorted(children() - before):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(source.choice(alive), signal.SIGKILL)
            for i, task in enumerate(tasks):
                try:
                    assert task.get(LONG).tolist() == [i + 1.0] * size
                except mp.ProcessExitedException as error:
                    assert "SIGKILL" in str(error) and str(error.error_pid) in str(error)
                    killed += 1
        assert killed <= 5
        wait_for(lambda reference=before: children() <= reference)


def send_all(queue, count: int) -> None:
    for i in range(count):
        queue.put(pc.full((1000,), float(i)))
    queue.close()
    queue.join_thread()


def test_a_queue_whose_sender_is_killed(rounds) -> None:
    for source in rounds:
        context = mp.get_context("fork")
        queue = context.Queue()
        sender = context.Process(target=send_all, args=(queue, 50))
        sender.start()
        assert sender.pid is not None
        with killing([sender.pid], source.uniform(0, 0.05), signal.SIGKILL):
            received = 0
            while True:
                ended = not sender.is_alive()
                try:
                    x = queue.get(timeout=0.5)
                except queues.Empty:
                    if ended:
                        break
                    continue
                assert x.tolist() == [float(received)] * 1000
                received += 1
        sender.join(LONG)
        assert sender.exitcode in (0, -signal.SIGKILL) and received <= 50
        assert sender.exitcode or received == 50
        queue.close()
        queue.join_thread()


def train(seed: int) -> None:
    w = pc.ones(64, 64, requires_grad=True)
    while True:
        (pc.ones(32, 64) @ w).relu().sum().backward()


def test_backward_passes_that_are_killed_in_children(rounds) -> None:
    x = pc.ones(64, 64, requires_grad=True)
    x.sum().backward()  # threads of the pool exist
    for source in rounds:
        process = mp.get_context("fork").Process(target=train, args=(0,))
        process.start()
        assert process.pid is not None
        with killing([process.pid], source.uniform(0, 0.2), signal.SIGKILL):
            x.grad = None
            (x * 2).sum().backward()
            assert x.grad[0, 0].item() == 2
        process.join(LONG)
        assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("which", [signal.SIGKILL, signal.SIGSTOP])
def test_a_group_whose_member_does_not_come(rounds, which: signal.Signals) -> None:
    for source in rounds:
        context = mp.get_context("fork")
        group, answers = mp.Group(3, timeout=5.0), context.SimpleQueue()
        processes = [
            context.Process(target=reduce_for_ever, args=(rank, group, answers))
            for rank in range(3)
        ]
        for process in processes:
            process.start()
        for _ in processes:
            assert answers.get() == "joined"
        victim = source.randrange(3)
        pid = processes[victim].pid
        assert pid is not None
        with killing([pid], source.uniform(0, 0.1), which):
            texts = [answers.get() for _ in range(2)]
        os.kill(pid, signal.SIGKILL)
        for process in processes:
            process.join(LONG)
            assert process.exitcode is not None
        for text in texts:
            assert f"rank {victim} (pid {pid})" in text, (victim, texts)


def reduce_for_ever(rank: int, group: mp.Group, answers) -> None:
    x = pc.ones(1000)
    with group.join(rank) as member:
        member._raw.start("barrier", timeout=LONG)
        answers.put("joined")
        try:
            while True:
                member.all_reduce(x, "mean")
        except (mp.GroupError, TimeoutError) as error:
            answers.put(str(error))
            time.sleep(3)  # it has not left: the others wait for the one that does not come


def test_a_communicator_whose_member_is_killed(rounds) -> None:
    context = mp.get_context("fork")
    for source in rounds:
        answers, where = context.SimpleQueue(), f"shm:attack-{os.getpid()}-{source.random()}"
        seed = source.randrange(10**6)
        processes = [
            context.Process(target=talk_for_ever, args=(rank, where, seed, answers))
            for rank in range(3)
        ]
        for process in processes:
            process.start()
        for _ in processes:
            assert answers.get() == "joined"
        victim = source.randrange(3)
        pid = processes[victim].pid
        assert pid is not None
        with killing([pid], source.uniform(0, 0.2), signal.SIGKILL):
            texts = [answers.get() for _ in range(2)]
        for process in processes:
            process.join(LONG)
            assert process.exitcode is not None
        for text in texts:  # its rank is another one in a part
            assert f"(pid {pid}) died" in text, (victim, texts)


def talk_for_ever(rank: int, where: str, seed: int, answers) -> None:
    """Run works, messages and parts of the group; tell the error that ends it."""
    same, own = random.Random(seed), random.Random(seed + rank)
    try:
        with mp.Communicator.open(where, rank, 3, timeout=LONG) as group:
            answers.put("joined")
            while True:
                count, tag = same.choice([0, 1, 1000, 60_000]), same.randrange(3)
                x, got, total = pc.full((count,), float(rank)), pc.zeros(count), pc.ones(count)
                works = [
                    group.isend(x, (rank + 1) % 3, tag),
                    group.irecv(got, (rank - 1) % 3, tag),
                    group.all_reduce(total, async_op=True),
                ]
                if same.random() < 0.3 and (part := group.split(same.randrange(2), -rank)):
                    part.barrier()
                    part.leave()
                own.shuffle(works)
                for work in works:
                    work.wait()
                assert (total == 3).all() and (got == (rank - 1) % 3).all()
    except mp.GroupError as error:
        answers.put(str(error))
    except BaseException as error:
        answers.put(repr(error))


def wait_for(condition) -> None:
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
