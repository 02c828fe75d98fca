"""Processes end cleanly: fork after use, exit with live threads, Ctrl-C, errors in user code."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

SETUP = """
import os, signal, sys, threading, time
import numpy as np
import plait_core as pc
import plait_autograd as pa
"""


def run(body: str, timeout: float = 240, expect: int = 0) -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-W",
            "ignore:This process:DeprecationWarning",
            "-c",
            SETUP + textwrap.dedent(body),
        ],
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def test_fork_after_use_computes_in_both() -> None:
    run("""
        x = pc.randn(400, 400)
        want = (x @ x).sum().item()
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                ok = (x @ x).sum().item() == want and (x + x).exp().sum().item() > 0
                w = pc.ones(3, requires_grad=True)
                (w * w).sum().backward()
                os._exit(0 if ok and w.grad.tolist() == [2, 2, 2] else 1)
            assert os.waitpid(pid, 0)[1] == 0
        assert (x @ x).sum().item() == want
    """)


def test_exit_with_live_threads_and_tensors() -> None:
    run("""
        keep = [pc.randn(1000) for _ in range(100)]
        leaf = pc.ones(10, requires_grad=True)
        graph = (leaf * 2).sin()
        def work():
            while True:
                (pc.randn(300, 300) @ pc.randn(300, 300)).sum()
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
        sys.exit(0)
    """)


def test_exit_in_a_custom_backward() -> None:
    text = run(
        """
        class F(pa.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, g):
                raise KeyError("mine")
        x = pc.ones(2, requires_grad=True)
        try:
            F.apply(x).sum().backward()
        except KeyError as error:
            assert error.args == ("mine",)
            names = []
            tb = error.__traceback__
            while tb:
                names.append(tb.tb_frame.f_code.co_name)
                tb = tb.tb_next
            assert "backward" in names, names
        y = pc.ones(2, requires_grad=True)
        (y * 3).sum().backward()
        assert y.grad.tolist() == [3, 3]
        F.apply(x).sum().backward()   # uncaught: ends with the traceback, not with a signal
        """,
        expect=1,
    )
    assert "KeyError: 'mine'" in text


@pytest.mark.parametrize(
    "statement", ["x = x + 1", "y = (x @ x).sum()", "(w * x).sum().backward()"]
)
def test_ctrl_c_in_a_long_loop(statement: str) -> None:
    run(
        f"""
        x = pc.randn(100, 100)
        w = pc.randn(100, 100, requires_grad=True)
        # a job in the background ignores it
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            while True:
                {statement}
        except KeyboardInterrupt:
            pass
        assert pc.ones(2).sum().item() == 2
        """
    )


def test_interpreter_exit_runs_no_python_from_threads() -> None:
    run("""
        class Loud(pc.Tensor):
            def __del__(self):
                pass
        held = pc.ones(4).as_subclass(Loud) if hasattr(pc.Tensor, "as_subclass") else pc.ones(4)
        w = pc.ones(4, requires_grad=True)
        out = w * held
        import atexit
        atexit.register(lambda: out.sum().backward())
    """)


INTERRUPTED_FORK = """
import _thread, os
# the first hook of all in the parent, and no Python: the signal is there when other hooks run
os.register_at_fork(after_in_parent=_thread.interrupt_main)
import plait, plait_data, plait_multiprocessing
import plait_data._workers._processes
plait.ones(1).numpy()
child = 0
try:
    child = os.fork()
    if child == 0:
        os._exit(0)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_fork_hooks_do_not_lose_an_interrupt() -> None:
    command = [sys.executable, "-c", INTERRUPTED_FORK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


FIRST_FORK = """
import os, sys, threading, time
import plait

def first():
    plait.ones(3).numpy()

def child_of_fork():
    child = os.fork()
    if child == 0:
        os._exit(plait.ones(4).sum().item() != 4)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.001)
    os.kill(child, 9)
    return "hangs"

thread = threading.Thread(target=first)
thread.start()
while not any(name.startswith("plait_core") for name in list(sys.modules)):
    time.sleep(0)
print(child_of_fork())
thread.join()
"""


def test_a_fork_in_the_middle_of_the_first_use_in_another_thread() -> None:
    # Python warns of a fork while the other thread runs
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FIRST_FORK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("0\n", "")
