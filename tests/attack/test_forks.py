"""Forks at random times while threads are at work: each child computes, and ends."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap

import pytest

BEGIN = """
    import faulthandler, io, os, random, sys, threading, time
    import plait
    random = random.Random(int(sys.argv[1]))

    def fork(compute):
        child = os.fork()
        if child:
            return child
        faulthandler.dump_traceback_later(60, exit=True)  # says where the child hangs
        try:
            compute()
            os._exit(0)
        except BaseException as error:
            print(f"child: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(2)

    def wait_for(children):
        statuses = {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}
        assert statuses <= {0}, statuses

    def step():
        w = plait.ones(3, 3, requires_grad=True)
        ((plait.ones(2, 3) @ w) ** 2).sum().backward()
        assert w.grad[0, 0].item() == 12

    def array():
        assert plait.arange(4).numpy().sum() == 6

    def file():
        kept = io.BytesIO()
        plait.save({"w": plait.ones(2)}, kept)
        assert plait.load(io.BytesIO(kept.getvalue()))["w"].sum().item() == 2

    def products():
        x = plait.ones(4, 4, dtype=plait.complex64)
        assert (x @ x)[0, 0].item() == 4
        assert plait.linalg.inv(plait.eye(3)).sum().item() == 3

    def module():
        assert plait.nn.Linear(2, 2)(plait.ones(1, 2)).shape == (1, 2)

    def numbers():
        assert plait.randn(5).shape == (5,)

    works = [step, array, file, products, module, numbers]
"""

FIRST_USES = """
    threads = [threading.Thread(target=random.choice(works)) for _ in range(2)]
    pause = random.uniform(0, 0.5)
    for thread in threads:
        thread.start()
    children = []
    for _ in range(2):
        time.sleep(pause / 2)
        children.append(fork(random.choice(works)))
    wait_for(children)
    for thread in threads:
        thread.join()
"""

LATER_USES = """
    import plait_multiprocessing as mp
    for work in works:
        work()
    weights = plait.ones(64, 64, requires_grad=True)
    queue = mp.SimpleQueue()
    done = False

    def backward():
        (plait.ones(8, 64) @ weights).sum().backward()
        view = weights.detach()[1:]
        view.add_(0)

    def allocate():
        [plait.empty(random.randrange(1 << 18)) for _ in range(10)]

    def send():
        queue.put(plait.ones(100))
        assert queue.get().sum().item() == 100

    def exchange():
        plait.from_numpy(plait.ones(100).numpy()).add_(1)

    def tangents():
        plait.autograd.functional.jvp(lambda x: x * x, plait.ones(2), plait.ones(2))

    mine = [backward, allocate, exchange, tangents, *works]

    def run(work):
        while not done:
            work()

    def in_child():
        for work in mine:
            work()

    chosen = [send, *random.sample(mine, 3)]
    threads = [threading.Thread(target=run, args=(work,)) for work in chosen]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            time.sleep(random.uniform(0, 0.01))
            wait_for([fork(in_child)])
    finally:
        done = True
    for thread in threads:
        thread.join()
"""


def attack(source: random.Random, code: str) -> None:
    program = textwrap.dedent(BEGIN) + textwrap.dedent(code)
    seed = str(source.randrange(1 << 30))
    command = [sys.executable, "-X", "faulthandler", "-W", "ignore", "-c", program, seed]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-5000:]


@pytest.mark.parametrize("code", [FIRST_USES, LATER_USES], ids=["first_uses", "later_uses"])
def test_a_child_computes_whatever_other_threads_did(rounds, code: str) -> None:
    for source in rounds:
        attack(source, code)
