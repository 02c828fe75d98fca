"""Threads whose first uses of plait come at the same time, in a new process."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import faulthandler, os, signal, sys, threading
faulthandler.dump_traceback_later(60, exit=True)
sys.setswitchinterval(1e-4)
{before}

def forks():
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(30)
        import plait
        os._exit(int((plait.ones(2) + 1).sum().item()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4

uses = [
    "import plait; plait.linalg.inv(plait.eye(2))",
    "import plait; plait.fft.fft(plait.ones(4))",
    "import plait; plait.vmap(lambda x: x * 2)(plait.ones(3))",
    "import plait; plait.nn.Linear(2, 2)(plait.ones(1, 2)).sum().backward()",
    "import plait; plait.nn.functional.relu(plait.ones(2))",
    "import plait, io; plait.save([plait.ones(2)], io.BytesIO())",
    "import plait; list(plait.utils.data.DataLoader([1, 2, 3]))",
    "import plait; plait.report()",
]
steps = [lambda use=use: exec(use, {{}}) for use in uses] + [forks] * {forks}
barrier, errors = threading.Barrier(len(steps)), []

def run(step):
    barrier.wait()
    try:
        step()
    except BaseException as error:
        errors.append(error)

threads = [threading.Thread(target=run, args=(step,)) for step in steps]
for thread in threads: thread.start()
for thread in threads: thread.join()
if errors: raise errors[0]
"""
QUIET = "ignore:This process:DeprecationWarning"  # of forks beside threads, from Python 3.12 on


@pytest.mark.parametrize("forks", [0, 2])
@pytest.mark.parametrize("before", ["import plait_abi", "import plait"])
def test_first_uses_at_the_same_time_end(before: str, forks: int) -> None:
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-W", QUIET, "-c", PROGRAM.format(before=before, forks=forks)],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_a_finder_of_modules_imports_nothing() -> None:
    """Before Python 3.12 the thread holds the lock of all imports while it asks a finder."""
    code = """
import sys
import plait
from plait import _aliases
before = set(sys.modules)
finder = next(each for each in sys.meta_path if isinstance(each, _aliases._Finder))
for name in ("plait.linalg", "plait.nn.functional", "plait.nn.utils.rnn", "plait.utils.data"):
    assert finder.find_spec(name, None) is not None, name
assert finder.find_spec("plait.nn.utils", None).submodule_search_locations is not None
assert finder.find_spec("plait.linalg", None).submodule_search_locations is None
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.stdout == "[]\n", done.stdout + done.stderr
