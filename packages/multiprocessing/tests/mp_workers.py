"""Functions that the processes of the tests run; spawned ones import this module."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue as queue_module
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import plait_core as pc
import plait_multiprocessing as mp
from plait_multiprocessing import managers

__all__: list[str] = []


@contextlib.contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Send this process the signal of Ctrl-C when it has been in the block for some seconds."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def fill_and_echo(queue: Any, answers: Any, tensor: Any) -> None:
    tensor.fill_(3.0)
    x = queue.get()
    x.add_(1)
    answers.put((x, x[1:], x.T))
    queue.get()  # until the parent has looked


def produce(queue: Any, count: int) -> None:
    for i in range(count):
        queue.put(pc.full((1000,), float(i)))


def produce_and_die(sender: Any) -> None:
    sender.send([pc.arange(1000.0), pc.zeros(3, 4)[1:]])
    os.kill(os.getpid(), signal.SIGKILL)


def share_and_wait(sender: Any, count: int) -> None:
    references = [pc.zeros(100).share_memory_() for _ in range(count)]
    sender.send(len(references))
    time.sleep(120)


def hold(receiver: Any, sender: Any) -> None:
    x = receiver.recv()
    sender.send(float(x[0]))
    receiver.recv()
    del x


def raise_on_one(index: int, text: str) -> None:
    if index == 1:
        raise ValueError(text)
    time.sleep(120)


def kill_itself(index: int) -> None:
    if index == 1:
        faulthandler.disable()  # no dump of the stack in the tests' output
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(120)


def exit_with(index: int, code: int) -> None:
    sys.exit(code)


def set_element(index: int, tensor: Any) -> None:
    tensor[index] = index + 1.0


def add_one(tensor: Any) -> Any:
    return tensor + 1


def count_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def receive_many(receiver: Any, sender: Any, count: int) -> None:
    inherited = count_descriptors()
    references: list[Any] = []
    while len(references) < count:
        references += receiver.recv()
    sender.send(
        (count_descriptors() - inherited, mp.memory_stats().arenas, float(references[-1][0]))
    )


def limited_receiver(receiver: Any, sender: Any) -> None:
    import resource

    sender.send("ready")
    receiver.poll(None)
    duplicates = [os.dup(0) for _ in range(4)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(duplicates) + 1, max(duplicates) + 1))
    try:
        receiver.recv()
        sender.send("received")
    except OSError as error:
        sender.send(str(error))


def do_nothing() -> None:
    pass


def pass_around(index: int, queues: list[Any], seconds: float) -> None:
    """Make, send, view and drop tensors at random; each holds one number and is sent with it."""
    rng = random.Random(index)
    references: list[tuple[float, Any]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        step = rng.randrange(4)
        if step == 0:
            value = float(rng.randrange(1000))
            references.append((value, pc.full((rng.choice([1, 10, 1000, 100_000]),), value)))
        elif step == 1 and references:
            value, x = rng.choice(references)
            with contextlib.suppress(queue_module.Full):
                queue = rng.choice(queues)
                queue.put((value, x if rng.random() < 0.5 else x[len(x) // 2 :]), timeout=0.01)
        elif step == 2:
            with contextlib.suppress(queue_module.Empty):
                references.append(queues[index].get(timeout=0.005))
        elif references:
            value, x = references.pop(rng.randrange(len(references)))
            assert float(x[0]) == value == float(x[-1])
        del references[:-30]
    for queue in queues:
        queue.cancel_join_thread()


# ---- collectives


def reduce_everything(index: int, group: Any, results: Any) -> None:
    with group.join(index) as member:
        x = results[index]  # a row of shared memory
        member.all_reduce(x, "sum")
        member.barrier()


def die_in_group(index: int, group: Any, answers: Any) -> None:
    member = group.join(index)
    member.barrier()
    if index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        member.all_reduce(pc.zeros(5))
    except mp.GroupError as error:
        answers.put((index, os.getpid(), str(error)))


def put_into(things: Any) -> None:
    things["x"] = pc.ones(2)


class Doubler:
    """An object for a manager to keep."""

    def double(self, x: Any) -> Any:
        return x.mul_(2)


class Doublers(managers.BaseManager):
    """A manager of such objects."""


Doublers.register("Doubler", Doubler)


def fail_in_a_group(index: int, group: Any) -> None:
    with group.join(index) as member:
        if index == 1:
            raise ValueError("what went wrong")
        member.all_reduce(pc.ones(3))


def stop_in_a_group(index: int, group: Any, joined: Any) -> None:
    with group.join(index) as member:
        if index == 1:
            joined.set()
            os.kill(os.getpid(), signal.SIGSTOP)
        joined.wait()
        x = pc.ones(3)
        member._raw.start("all_reduce", [x], [x], timeout=0.5)
