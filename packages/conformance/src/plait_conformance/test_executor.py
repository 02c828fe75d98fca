"""Role ``executor``: the thread pool that all kernels share."""

from __future__ import annotations

import collections
import os
import threading
import time
from typing import Any

import numpy as np
import pytest

import plait_abi
from plait_conformance._executor import Executor
from plait_conformance._memory import in_child, repeated

COUNTS = (0, 1, 2, 3, 7, 8, 64, 1000)


class Tally:
    """The number of calls for each index."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls: collections.Counter[int] = collections.Counter()
        self.threads: set[int] = set()

    def note(self, index: int) -> None:
        with self.lock:
            self.calls[index] += 1
            self.threads.add(threading.get_ident())

    def check(self, n: int) -> None:
        skipped = [i for i in range(n) if not self.calls[i]]
        assert not skipped, f"of {n} indices these were skipped: {skipped[:10]}"
        again = [i for i in range(n) if self.calls[i] > 1]
        assert not again, f"of {n} indices these were called again: {again[:10]}"
        strange = [i for i in self.calls if i >= n]
        assert not strange, f"there are {n} indices; these were called: {strange[:10]}"


@pytest.mark.parametrize("n", COUNTS)
def test_every_index_is_called_once(executor: Executor, n: int) -> None:
    for _ in range(5):
        tally = Tally()
        executor.parallel(n, tally.note)
        tally.check(n)


def test_it_returns_when_all_is_done(executor: Executor) -> None:
    done = Tally()

    def piece(i: int) -> None:
        time.sleep(0.001 * (i % 3))
        done.note(i)

    for _ in range(10):
        executor.parallel(12, piece)
        done.check(12)
        done = Tally()


def test_nested_calls_run_in_their_caller(executor: Executor) -> None:
    outer, inner = Tally(), Tally()
    widths: list[int] = []

    def piece(i: int) -> None:
        outer.note(i)
        widths.append(executor.width)
        tally = Tally()
        executor.parallel(5, tally.note)
        tally.check(5)
        assert tally.threads == {threading.get_ident()}, "a nested call left its thread"
        for k in range(5):
            inner.note(5 * i + k)

    executor.parallel(20, piece)
    outer.check(20)
    inner.check(100)
    assert set(widths) == {1}, f"the width is 1 within a piece, not {set(widths)}"


def test_several_threads_at_once(executor: Executor) -> None:
    tallies = [[Tally() for _ in range(20)] for _ in range(4)]
    raised: list[BaseException] = []

    def work(own_tallies: list[Tally]) -> None:
        try:
            for tally in own_tallies:
                executor.parallel(30, tally.note)
                tally.check(30)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=work, args=(own_tallies,)) for own_tallies in tallies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def test_no_more_threads_than_its_width(executor: Executor) -> None:
    lock, running, most = threading.Lock(), 0, 0

    def piece(_: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.001)
        with lock:
            running -= 1

    width = executor.width
    assert width >= 1
    executor.parallel(40, piece)
    assert most <= width, f"{most} pieces ran at once, the width is {width}"


def test_width_one_is_the_caller_alone(executor: Executor) -> None:
    with executor.of_width(1):
        assert executor.width == 1
        tally = Tally()
        executor.parallel(100, tally.note)
        tally.check(100)
        assert tally.threads == {threading.get_ident()}


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_the_width_can_be_set(executor: Executor, threads: int) -> None:
    with executor.of_width(threads):
        assert 1 <= executor.width <= threads
        tally = Tally()
        executor.parallel(200, tally.note)
        tally.check(200)
        assert len(tally.threads) <= threads


def test_results_do_not_depend_on_the_width(executor: Executor) -> None:
    chance = np.random.default_rng(0)
    x = chance.standard_normal((300, 400)).astype(np.float32)
    y = chance.standard_normal((400, 200)).astype(np.float32)
    calls: dict[str, tuple[Any, ...]] = {
        "mm": (x, y),
        "sum": (x,),
        "softmax": (x, 1),
        "exp": (x,),
        "sort": (x,),
    }
    value: dict[str, list[bytes]] = {name: [] for name in calls}
    for threads in (1, 2, 3):
        with executor.of_width(threads):
            for name, args in calls.items():
                result = plait_abi.operator(name)(*args)
                first = result[0] if isinstance(result, tuple) else result
                value[name].append(np.from_dlpack(first).tobytes())
    for name, (one, *others) in value.items():
        assert all(other == one for other in others), f"{name} depends on the number of threads"


def test_an_error_within_a_piece_stays_there(executor: Executor) -> None:
    tally = Tally()
    x, index = np.zeros(3, np.float32), np.array([7])

    def piece(i: int) -> None:
        tally.note(i)
        with pytest.raises(IndexError):
            plait_abi.operator("gather")(x, 0, index)

    executor.parallel(20, piece)
    tally.check(20)
    again = Tally()
    executor.parallel(20, again.note)
    again.check(20)


def test_it_works_in_the_child_of_a_fork(executor: Executor) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    before = Tally()
    executor.parallel(50, before.note)  # its threads are there, and are not in the child
    before.check(50)

    def work() -> None:
        for n in COUNTS:
            tally = Tally()
            executor.parallel(n, tally.note)
            tally.check(n)

    for _ in range(3):
        in_child(work)
    after = Tally()
    executor.parallel(50, after.note)
    after.check(50)


def test_it_works_in_a_child_while_threads_use_it(executor: Executor) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork")

    def work() -> None:
        tally = Tally()
        executor.parallel(50, tally.note)
        tally.check(50)

    with repeated(lambda: executor.parallel_in_c(8)):
        for _ in range(5):
            in_child(work)
