"""Passes in many Python threads at once; other threads run meanwhile."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import plait_autograd as pa
import plait_core as pc


def together(n: int, work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []
    start = threading.Barrier(n)

    def run(i: int) -> None:
        try:
            start.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_ten_thousand_rounds_on_shared_leaves_lose_nothing() -> None:
    a, b = pc.zeros(4, requires_grad=True), pc.zeros(4, requires_grad=True)

    def work(i: int) -> None:
        for _ in range(2500):
            ((a * 2).sum() + (a + b * 3).sum()).backward()

    together(4, work)
    assert a.grad.tolist() == [30000.0] * 4
    assert b.grad.tolist() == [30000.0] * 4


def test_passes_share_a_part_of_the_graph() -> None:
    x = pc.zeros(3, requires_grad=True)
    shared = x * 2
    for _ in range(20):
        shared = shared + x

    def work(i: int) -> None:
        for _ in range(200):
            (shared * (i + 1)).sum().backward(retain_graph=True)

    together(4, work)
    assert x.grad.tolist() == [22.0 * 200 * 10] * 3


def test_hooks_are_added_and_removed_while_the_collector_runs() -> None:
    w = pc.zeros(2, requires_grad=True)
    done = threading.Event()
    calls: list[int] = []

    def churn() -> None:
        while not done.is_set():
            handle = w.register_hook(lambda g: calls.append(1))
            y = w * 1
            y.register_hook(lambda g, y=y: y)
            gc.collect(0)
            handle.remove()

    thread = threading.Thread(target=churn)
    thread.start()
    try:

        def work(i: int) -> None:
            for _ in range(500):
                h = w * 2
                h.register_hook(lambda g: g * 2)
                h.sum().backward()

        together(3, work)
    finally:
        done.set()
        thread.join()
    assert w.grad.tolist() == [6000.0, 6000.0]


def test_large_operators_run_without_the_lock_while_the_collector_looks() -> None:
    done = threading.Event()
    x = pc.ones(100_000, requires_grad=True)
    x.note = {"kept": True}

    def collect() -> None:
        while not done.is_set():
            gc.collect()

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        for _ in range(100):
            y = x * 2
            y.note = {"n": 1}
            y.register_hook(lambda g, y=y: y.note["n"] and None)
            y.add_(1)
            (y * y).sum().backward()
            assert y.note == {"n": 1}
            assert x.note == {"kept": True}
            x.grad = None
    finally:
        done.set()
        thread.join()


def test_another_thread_counts_while_a_pass_runs() -> None:
    count = [0]
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            count[0] += 1
            time.sleep(0)  # offers the lock, which the pass must not hold

    x = pc.ones(3, requires_grad=True)
    y = x
    for _ in range(300_000):
        y = y * 1
    loss = y.sum()
    thread = threading.Thread(target=run)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # nobody is made to give the lock away
    try:
        thread.start()
        while not count[0]:
            time.sleep(0.001)
        before = count[0]
        loss.backward()
        during = count[0] - before
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert during > 100, during
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_a_chain_of_a_million_nodes() -> None:
    x = pc.ones(1, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    y.register_hook(lambda g: y * 0 + g)  # the collector walks it, too
    gc.collect()
    y.backward()
    assert x.grad.item() == 1.0


def test_saved_hooks_in_many_threads() -> None:
    w = pc.ones(2, requires_grad=True)

    def work(i: int) -> None:
        for _ in range(200):
            with pa.graph.saved_tensors_hooks(lambda t: (i, t), lambda packed: packed[1]):
                y: Any = (w * w).sum()
            y.backward()

    together(4, work)
    assert w.grad.tolist() == [1600.0, 1600.0]


RENEWAL = """
import threading
import plait_autograd as pa
import plait_core as pc


def work(i):
    x = pc.ones(4).requires_grad_()
    for _ in range(8000):
        y = x * 2
        views = [y[k:] for k in range(4)]
        y.mul_(x)  # now the views need other nodes
        if i % 2:
            for view in views:
                view * 2
        else:
            y[1:].mul_(x[0])
            pa.grad((y * y).sum(), x, create_graph=True)


threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_renew_histories_of_views_do_not_wait_for_each_other() -> None:
    """A pass has no global lock while it makes nodes, other threads have it while they wait."""
    subprocess.run([sys.executable, "-c", RENEWAL], check=True, timeout=120)
