"""A fork waits for imports of other threads."""

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


def test_an_interrupt_while_a_fork_waits_leaves_the_import_lock_free(
    run: Callable[[str, str], str],
) -> None:
    out = run(
        SLOW,
        """
import _imp
seen = []
sys.unraisablehook = lambda error: seen.append(error.exc_type)
importing = threading.Thread(target=__import__, args=("plait_slow",))
importing.start()
begun.wait()
def interrupt():  # the first hook: what comes next waits for the import
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
os.register_at_fork(before=interrupt)
child = os.fork()
if child == 0:
    os._exit(3)
held = _imp.lock_held()
go.set()
importing.join()
print(seen == [KeyboardInterrupt], held, status_of(child))
""",
    )
    assert out == "True False 3\n"


# A hook that is registered before plait's, so that it runs behind it.
FOREIGN_HOOK = """
import os, threading
hooked, done = threading.Event(), threading.Event()
def wait():
    hooked.set()
    assert done.wait(120)
os.register_at_fork(before=wait)
"""


def test_a_hook_of_others_may_wait_for_a_thread_that_imports(fresh: Callable[[str], str]) -> None:
    out = fresh(
        FOREIGN_HOOK
        + START.format(folder="")
        + """
def imports():
    hooked.wait()
    import colorsys
    done.set()
thread = threading.Thread(target=imports)
thread.start()
child = os.fork()
if child == 0:
    os._exit(4)
print(done.is_set(), status_of(child))
"""
    )
    assert out == "True 4\n"


def test_logging_may_import_under_its_lock(fresh: Callable[[str], str]) -> None:
    out = fresh(
        "import logging, logging.config\n"
        + START.format(folder="")
        + """
class Filter(logging.Filter):
    def __init__(self):  # made by dictConfig, under logging's lock
        begun.set()
        time.sleep(0.2)  # the fork waits for the lock by now
        import colorsys
config = {"version": 1, "filters": {"f": {"()": Filter}}}
thread = threading.Thread(target=logging.config.dictConfig, args=(config,))
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    os._exit(4)
thread.join()
print(status_of(child))
"""
    )
    assert out == "4\n"


def test_an_import_that_begins_in_a_hook_of_others_is_forgotten(
    fresh: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "plait_slow.py").write_text(SLOW.replace("test.begun.set()", "test.done.set()"))
    out = fresh(
        FOREIGN_HOOK
        + START.format(folder=str(tmp_path))
        + """
def imports():
    hooked.wait()
    import plait_slow
thread = threading.Thread(target=imports)
thread.start()
child = os.fork()
if child == 0:
    go.set()
    import plait_slow
    os._exit(plait_slow.value)
print(status_of(child))
go.set()
thread.join()
import plait_slow
print(plait_slow.value)
"""
    )
    assert out == "1\n1\n"
