"""An interrupt in the middle of an import at first use: the next use imports again."""

from __future__ import annotations

import subprocess
import sys

import pytest

ACTIONS = {
    "core": "plait.ones(2); plait.func.vmap(plait.sin)(plait.ones(2))",
    "nn": "plait.nn.Linear(2, 1)(plait.ones(1, 2)).sum().item()",
    "autograd": "plait.ones(2, requires_grad=True).sum().backward()",
    "optim": "plait.optim.Adam([plait.ones(2, requires_grad=True)]).step()",
    "data": "list(plait.utils.data.DataLoader(plait.utils.data.TensorDataset(plait.ones(4))))",
    "func": "plait.func.vmap(plait.sin)(plait.ones(2))",
    "distributed": "plait.distributed.is_initialized(); plait.distributed.device_mesh.DeviceMesh",
    "profiler": "plait.profiler.profile().__enter__().__exit__(None, None, None)",
    "multiprocessing": "plait.multiprocessing.get_context('fork').SimpleQueue().put(plait.ones(1))",
    "array_api": "plait.ones(2).__array_namespace__().ones(2)",
    "files": "f = io.BytesIO(); plait.save(plait.ones(2), f); f.seek(0); plait.load(f)",
}

# Each child of a fork interrupts the action at the nth line of a module of plait, and repeats it.
PROGRAM = """
import io, os, sys, traceback
import numpy  # it cannot be imported again after an interrupt
import plait

if {part!r} != "core":
    plait.ones(1)
action, points = compile({action!r}, "action", "exec"), {points}

def lines(stop):
    count = 0
    def trace(frame, event, argument):
        nonlocal count
        code = frame.f_code
        if code.co_name != "<module>" or "plait" not in code.co_filename:
            return None
        if event == "line":
            count += 1
            if count == stop:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace
    sys.settrace(trace)
    try:
        exec(action)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return count

def in_child(function):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = function()
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        finally:
            sys.stdout.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def attempt(stop):
    lines(stop)
    exec(action)
    return 0

def count_all():
    os.write(write, str(lines(0)).encode())
    return 0

read, write = os.pipe()
assert in_child(count_all) == 0
total = int(os.read(read, 100))
for stop in sorted({{1 + total * i // points for i in range(points)}}):
    if in_child(lambda: attempt(stop)):
        print("interrupted at line", stop, "of", total)
print("lines:", total)
"""


@pytest.mark.parametrize("part", ACTIONS)
def test_an_interrupted_import_is_repeated_at_the_next_use(part: str) -> None:
    program = PROGRAM.format(part=part, action=ACTIONS[part], points=6)
    # from 3.12 on Python warns of forks beside threads
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and done.stdout.startswith("lines:"), done.stdout + done.stderr
