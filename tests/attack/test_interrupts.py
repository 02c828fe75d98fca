"""Interrupts at random times: one is seen once, and an emergency save works after it."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import textwrap

import pytest

# The timer's signal raises KeyboardInterrupt as Ctrl-C does, without another process in the middle.
PROGRAM = """
    import io, os, random, signal, sys, time
    import numpy.random  # NumPy cannot be imported again after an interrupt, or loses it
    import plait, plait_multiprocessing as mp
    random = random.Random(int(sys.argv[1]))
    kind, repeats = sys.argv[2], int(sys.argv[3])
    folder = sys.argv[4]
    calls = seen = 0

    def handler(number, frame):
        global calls
        calls += 1
        raise KeyboardInterrupt

    # What a handler raises in a destructor, a callback of a weak reference or a hook of a fork,
    # Python itself prints and passes over. None of ours may be the one that handles a signal, but
    # what tells a loader's worker that an array is gone: its package has no code in C.
    lost = []
    allowed = {"release"}

    def unraisable(found):
        frame = found.exc_traceback and found.exc_traceback.tb_frame  # the outermost
        if frame is not None:
            code = frame.f_code
            if "plait_" in code.co_filename and code.co_name not in allowed:
                print(f"lost in {code.co_filename}:{code.co_firstlineno} {code.co_name}")
        lost.append(found.exc_type)

    sys.unraisablehook = unraisable
    signal.signal(signal.SIGALRM, handler)

    def save():
        plait.save({"w": plait.ones(50, 50)}, os.path.join(folder, "file"))

    def load():
        plait.load(good)

    def numpy():
        plait.ones(3).numpy().sum()

    def product():
        (plait.ones(20, 20) @ plait.ones(20, 20)).sum().item()
        plait.linalg.inv(plait.eye(3))

    def backward():
        nn = plait.nn
        model = nn.Sequential(nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 1))
        optimizer = plait.optim.Adam(model.parameters())
        model(plait.ones(4, 20)).sum().backward()
        optimizer.step()

    def loader():
        data = plait.utils.data
        table = data.TensorDataset(plait.arange(40).float())
        for (batch,) in data.DataLoader(table, batch_size=4, num_workers=random.choice([0, 0, 1])):
            batch.sum()

    def queue():
        queue = mp.Queue()
        try:
            queue.put(plait.ones(100))
            queue.get(timeout=60)
        finally:
            queue.close()
            queue.join_thread()

    def process():
        process = mp.get_context("fork").Process(target=time.sleep, args=(0.01,))
        process.start()
        process.join()

    def pool():
        with mp.get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2]

    work = globals()[kind]
    good = os.path.join(folder, "good")
    if kind == "load":
        writer = os.fork()  # so that this process has not saved yet
        if writer == 0:
            plait.save({"w": plait.ones(50, 50)}, good)
            os._exit(0)
        os.waitpid(writer, 0)

    def emergency():
        path = os.path.join(folder, "emergency")
        plait.save({"w": plait.full((2,), 3.0), "a": plait.ones(2).numpy()}, path)
        kept = plait.load(path)
        assert kept["w"].sum().item() == 6 and kept["a"].sum() == 2
        assert plait.ones(2).numpy().sum() == 2

    longest = 0.5
    for _ in range(repeats):
        calls = seen = 0
        lost.clear()
        begun = time.monotonic()
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, longest))
                work()
                longest = min(0.5, 1.5 * (time.monotonic() - begun) + 1e-3)
                while not calls:  # it may come later than the work takes
                    time.sleep(0.01)
            except KeyboardInterrupt:
                seen += 1
            except Exception as error:  # an interrupt that became something else
                print(f"became {type(error).__name__}: {error}")
            emergency()
        except KeyboardInterrupt:  # it came in the lines between
            seen += 1
            emergency()
        if not calls:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if seen != calls and not lost:
            print(f"{calls} calls of the handler, {seen} interrupts")
            break
    else:
        print("well")
    # An interrupt within the text of an older `eval` or `exec` (dataclasses have some) makes Python
    # end by SIGINT although it was caught, until the next one.
    eval("0")
"""

KINDS = ("save", "load", "numpy", "product", "backward", "loader", "queue", "process", "pool")


def attack(source: random.Random, repeats: int) -> None:
    seed, kind = str(source.randrange(1 << 30)), source.choice(KINDS)
    program = textwrap.dedent(PROGRAM)
    command = [sys.executable, "-X", "faulthandler", "-W", "ignore", "-c", program, seed, kind]
    try:
        with tempfile.TemporaryDirectory() as folder:
            command += [str(repeats), folder]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"{kind}: hangs: {error.stdout!r} {error.stderr!r}") from None
    text = f"{kind}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-5000:]}"
    assert done.returncode == 0 and done.stdout == "well\n", text


@pytest.mark.parametrize("repeats", [1, 30], ids=["first_use", "later_uses"])
def test_an_interrupt_is_raised_once_and_later_calls_work(rounds, repeats: int) -> None:
    for source in rounds:
        attack(source, repeats)
