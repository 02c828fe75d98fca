"""Imports at first use: neither a signal nor a fork breaks them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

# A package of ours whose import takes as long as a test wants.
SLOW = """
import __main__ as test
test.begun.set()
assert test.go.wait(60)
value = 1
"""

START = """
import os, signal, sys, threading, time
import plait_abi
sys.path.insert(0, {folder!r})
begun, go = threading.Event(), threading.Event()

def status_of(child):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"
"""


@pytest.fixture
def run(fresh: Callable[[str], str], tmp_path: Path) -> Callable[[str, str], str]:
    """Return a function that runs code beside a module ``plait_slow`` of the given source."""

    def run_beside(module: str, code: str) -> str:
        (tmp_path / "plait_slow.py").write_text(module)
        return fresh(START.format(folder=str(tmp_path)) + code)

    return run_beside


def test_a_fork_waits_for_the_import_of_another_thread(run: Callable[[str, str], str]) -> None:
    out = run(
        SLOW,
        """
importing = threading.Thread(target=__import__, args=("plait_slow",))
importing.start()
begun.wait()
threading.Timer(0.2, go.set).start()
child = os.fork()
if child == 0:
    import plait_slow
    os._exit(plait_slow.value)
print(go.is_set(), status_of(child))
""",
    )
    assert out == "True 1\n"


def test_a_fork_does_not_wait_for_imports_of_others(run: Callable[[str, str], str]) -> None:
    out = run(
        "",
        f"""
open(os.path.join(sys.path[0], "foreign.py"), "w").write({SLOW!r})
importing = threading.Thread(target=__import__, args=("foreign",))
importing.start()
begun.wait()
child = os.fork()
if child == 0:
    os._exit(7)
print(go.is_set(), status_of(child))
go.set()
""",
    )
    assert out == "False 7\n"


def test_a_fork_as_a_side_effect_of_an_import(run: Callable[[str, str], str]) -> None:
    out = run(
        """
import os, time
import __main__ as test
test.begun.set()
time.sleep(0.1)  # the other thread waits for this module by now
start = time.monotonic()
child = os.fork()
if child == 0:
    os._exit(5)
waited = time.monotonic() - start
""",
        """
def other():
    begun.wait()
    import plait_slow
waiting = threading.Thread(target=other)
waiting.start()
import plait_slow
waiting.join()
print(plait_slow.waited < 5, status_of(plait_slow.child))
""",
    )
    assert out == "True 5\n"


def test_threads_that_fork_at_once_leave_the_import_lock_free(
    run: Callable[[str, str], str],
) -> None:
    out = run(
        "value = 1",
        """
import _imp
statuses = []
def forks():
    for _ in range(10):
        child = os.fork()
        if child == 0:
            import plait_slow
            os._exit(plait_slow.value)
        statuses.append(status_of(child))
threads = [threading.Thread(target=forks) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(set(statuses), len(statuses), _imp.lock_held())
""",
    )
    assert out == "{1} 30 False\n"


@pytest.mark.parametrize("name", ["SIGINT", "SIGALRM", "SIGTERM"])
def test_a_signal_during_an_import_is_handled_once_after_it(
    run: Callable[[str, str], str], name: str
) -> None:
    out = run(
        f"""
import os, signal
os.kill(os.getpid(), signal.{name})
for _ in range(1000):  # the interpreter looks for signals at each turn
    pass
value = 1
""",
        f"""
from plait_abi.imports import import_module
raised = []
def handler(number, frame):
    raised.append((number, sys.modules["plait_slow"].value, frame is not None))
    raise KeyboardInterrupt
signal.signal(signal.{name}, handler)
try:
    import_module("plait_slow")
    print("not raised")
except KeyboardInterrupt:
    pass
print(raised == [(signal.{name}, 1, True)], signal.getsignal(signal.{name}) is handler)
print(import_module("plait_slow").value)
""",
    )
    assert out == "True True\n1\n"


def test_all_signals_of_an_import_are_handled_whatever_one_raises(
    run: Callable[[str, str], str],
) -> None:
    out = run(
        """
import os, signal
for number in (signal.SIGUSR1, signal.SIGINT, signal.SIGUSR2):
    os.kill(os.getpid(), number)
    for _ in range(1000):
        pass
raise ImportError("after all")
""",
        """
from plait_abi.imports import import_module
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append("1"))
signal.signal(signal.SIGUSR2, lambda *_: seen.append("2"))
try:
    import_module("plait_slow")
except KeyboardInterrupt as error:
    print(seen, type(error.__context__).__name__, error.__context__)
""",
    )
    assert out == "['1', '2'] ImportError after all\n"


def test_a_handler_that_the_import_sets_stays(run: Callable[[str, str], str]) -> None:
    out = run(
        """
import signal
def mine(*_): pass
signal.signal(signal.SIGUSR1, mine)
""",
        """
from plait_abi.imports import import_module, uninterrupted
signal.signal(signal.SIGUSR1, print)
with uninterrupted():
    module = import_module("plait_slow")
print(signal.getsignal(signal.SIGUSR1) is module.mine)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
""",
    )
    assert out == "True\nTrue\n"


def test_a_child_of_a_thread_that_forks_during_an_import_has_its_handlers(
    run: Callable[[str, str], str],
) -> None:
    """The main thread, which holds signals back, is not in the child."""
    out = run(
        SLOW.replace("plait_slow", "other"),
        """
from plait_abi.imports import uninterrupted
def forks():
    child = os.fork()
    if child == 0:
        os._exit(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    print(status_of(child))
with uninterrupted():
    thread = threading.Thread(target=forks)
    thread.start()
    thread.join()
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
""",
    )
    assert out == "1\nTrue\n"


def test_an_interrupt_while_a_fork_waits_is_not_lost(run: Callable[[str, str], str]) -> None:
    out = run(
        SLOW,
        """
importing = threading.Thread(target=__import__, args=("plait_slow",))
importing.start()
begun.wait()
def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)
    go.set()
threading.Timer(0.2, interrupt).start()
seen = 0
try:
    child = os.fork()
    if child == 0:
        os._exit(3)
    time.sleep(30)
except KeyboardInterrupt:
    seen += 1
print(seen, go.is_set(), status_of(child))
""",
    )
    assert out == "1 True 3\n"


def test_a_handler_that_an_import_chains_goes_on_calling_the_first(
    run: Callable[[str, str], str],
) -> None:
    out = run(
        """
import signal
calls = []
old = signal.getsignal(signal.SIGINT)
def mine(number, frame):
    calls.append(number)
    old(number, frame)
signal.signal(signal.SIGINT, mine)
""",
        """
from plait_abi.imports import import_module, uninterrupted
module = import_module("plait_slow")
def interrupt(block):
    module.calls.clear()
    try:
        with block:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass
        return "swallowed"
    except KeyboardInterrupt:
        return len(module.calls), signal.getsignal(signal.SIGINT) is module.mine
import contextlib
print(interrupt(contextlib.nullcontext()), interrupt(uninterrupted()))
signal.signal(signal.SIGINT, module.old)  # as a module does that takes its handler back
print(interrupt(contextlib.nullcontext())[0], interrupt(uninterrupted())[0])
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
""",
    )
    assert out == "(1, True) (1, True)\n0 0\nTrue\n"


def test_a_block_says_that_a_signal_waits_for_its_end(run: Callable[[str, str], str]) -> None:
    out = run(
        "",
        """
from plait_abi.imports import uninterrupted
signal.signal(signal.SIGUSR1, lambda *_: None)
with uninterrupted() as waits:
    print(bool(waits))
    os.kill(os.getpid(), signal.SIGUSR1)
    for _ in range(1000):
        pass
    with uninterrupted() as inner:
        print(bool(waits), bool(inner))
print(bool(waits))
""",
    )
    assert out == "False\nTrue False\nFalse\n"
