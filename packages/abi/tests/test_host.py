"""The host role: held objects, calls from C++, sites, threads, and the end of the process."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


class Target:
    """A callable with a weak reference, to see when it is freed."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, tensor: Any) -> Any:
        return self.function(tensor)


def apply(probe: ctypes.CDLL, function: Callable[[Any], Any], n: int = 3) -> tuple[int, str]:
    target, text = Target(function), ctypes.create_string_buffer(200)
    with_gil = ctypes.PyDLL(probe._name)
    with_gil.probe_hold.argtypes = [ctypes.py_object]
    with_gil.probe_hold(target)
    try:
        return probe.probe_apply(n, text, 200), text.value.decode()
    finally:
        probe.probe_drop()


def test_apply_wraps_and_unwraps(probe: ctypes.CDLL) -> None:
    seen: list[Any] = []
    code, _ = apply(probe, lambda t: seen.append(np.from_dlpack(t).tolist()) or t)
    assert (code, seen) == (1, [[0, 1, 2]])
    assert apply(probe, lambda t: (t,))[0] == 1
    assert apply(probe, lambda t: None)[0] == 0
    assert apply(probe, lambda t: (None, None))[0] == 0


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda t: 3, "tensors or None are required as results, got int"),
        (lambda t: (t, t), "1 results are required, got 2"),
        (lambda t: (), "1 results are required, got 0"),
        (lambda t: 1 / 0, "division by zero"),
    ],
)
def test_apply_keeps_the_exception(
    probe: ctypes.CDLL, function: Callable[[Any], Any], text: str
) -> None:
    code, message = apply(probe, function)
    assert code == -9
    assert text in message


def test_a_held_object_dropped_without_the_gil_is_freed_soon(probe: ctypes.CDLL) -> None:
    target = Target(lambda t: t)
    reference = weakref.ref(target)
    holder = ctypes.PyDLL(probe._name)
    holder.probe_hold.argtypes = [ctypes.py_object]
    holder.probe_hold(target)
    del target
    gc.collect()
    assert reference() is not None
    thread = threading.Thread(target=probe.probe_drop)  # CDLL: the GIL is given up around the call
    thread.start()
    thread.join()
    for _ in range(1000):  # a pending call of the main thread
        if reference() is None:
            break
    assert reference() is None


def test_a_held_object_dropped_with_the_gil_is_freed_at_once(probe: ctypes.CDLL) -> None:
    target = Target(lambda t: t)
    reference = weakref.ref(target)
    holder = ctypes.PyDLL(probe._name)
    holder.probe_hold.argtypes = [ctypes.py_object]
    holder.probe_hold(target)
    del target
    holder.probe_drop()
    assert reference() is None


def test_site_names_file_line_and_function(probe: ctypes.CDLL) -> None:
    text = ctypes.create_string_buffer(500)
    probe.probe_site(text, 500)
    file, _, rest = text.value.decode().rpartition(":")
    assert file.endswith("test_host.py")
    assert rest.endswith("in test_site_names_file_line_and_function")
    assert int(rest.split()[0]) > 1
    probe.probe_site(text, 8)
    assert len(text.value) == 7


def test_threads_share_operators(fresh: Callable[[str], str]) -> None:
    out = fresh(
        """
import threading, numpy as np, plait_abi
plait_abi.load(PROBE)
add = plait_abi.operator("probe_add")
results = [None] * 8
def work(i):
    x = np.full(10, float(i))
    for _ in range(200):
        y = np.from_dlpack(add(x, 1))
    results[i] = y[0]
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(results == [i + 1 for i in range(8)])
"""
    )
    assert out.strip() == "True"


def test_fork_after_use(fresh: Callable[[str], str]) -> None:
    out = fresh(
        """
import os, warnings, numpy as np, plait_abi
warnings.simplefilter("ignore")
plait_abi.load(PROBE)
add = plait_abi.operator("probe_add")
add(np.ones(3), 1)
pid = os.fork()
if not pid:
    os._exit(int(np.from_dlpack(add(np.ones(3), 4)).sum()))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    )
    assert out.strip() == "15"


def test_fork_while_threads_of_cpp_enter_python(fresh: Callable[[str], str]) -> None:
    """A child is killed by its alarm where the fork found CPython's lock of thread states taken."""
    out = fresh(
        """
import ctypes, os, signal, warnings, plait_abi
warnings.simplefilter("ignore")
plait_abi.load(PROBE)
library = ctypes.CDLL(PROBE)
def end_late(*_):
    os.kill(child, signal.SIGKILL)
signal.signal(signal.SIGALRM, end_late)
with_gil = ctypes.PyDLL(PROBE)
with_gil.probe_describe_in_threads(3)
ends = []
while len(ends) < 60 and not any(ends):
    child = os.fork()
    if not child:
        os._exit(0)
    signal.alarm(20)
    ends.append(os.waitpid(child, 0)[1])
    signal.alarm(0)
library.probe_describe_in_threads(0)
print(len(ends), set(ends))
"""
    )
    assert out.strip() == "60 {0}"


def test_two_threads_fork_at_once(fresh: Callable[[str], str]) -> None:
    """Locks that both forks take are free afterwards."""
    out = fresh(
        """
import ctypes, threading, plait_abi
plait_abi.load(PROBE)
library = ctypes.CDLL(PROBE)
threads = [threading.Thread(target=library.probe_fork, args=(100,)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
plait_abi.load(PROBE)
print("free")
"""
    )
    assert out.strip() == "free"


def test_exit_with_live_tensors_holds_and_threads(fresh: Callable[[str], str]) -> None:
    out = fresh(
        """
import ctypes, threading, time, numpy as np, plait_abi
plait_abi.load(PROBE)
library = ctypes.PyDLL(PROBE)
library.probe_hold.argtypes = [ctypes.py_object]
library.probe_hold(lambda t: t)
add = plait_abi.operator("probe_add")
results = [add(np.ones(3), 1) for _ in range(10)]
plait_abi.operator("probe_keep")(np.ones(5))
def forever():
    while True:
        add(np.ones(100_000), 1)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
print("end")
"""
    )
    assert out.strip() == "end"


def test_a_second_runtime_is_refused(fresh: Callable[[str], str], tmp_path: Any) -> None:
    import shutil

    import plait_abi

    copy = tmp_path / "lib" / "libplait_abi.so"
    copy.parent.mkdir()
    shutil.copy(plait_abi.paths()["libplait_abi.so"], copy)
    out = fresh(
        f"""
import ctypes, plait_abi
other = ctypes.CDLL({str(copy)!r})
other.plait_runtime_refusal.restype = ctypes.c_char_p
other.plait_runtime_v0.restype = ctypes.c_void_p
print("free", other.plait_runtime_v0() is not None)
try:
    plait_abi.runtime
except ImportError as error:
    print(error)
"""
    )
    first, second = out.splitlines()
    assert first == "free True"
    assert str(copy) in second
    assert plait_abi.paths()["libplait_abi.so"] in second
