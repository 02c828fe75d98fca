"""The library without Python, and tensors of another type than core's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import plait_abi

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", ["storages_on_threads", "collectives_on_threads"])
def test_threads_of_a_program_without_python(name: str, tmp_path: Path) -> None:
    program = tmp_path / name
    cxx = os.environ.get("CXX", "c++").split()
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    extra = os.environ.get("PLAIT_BUILD_FLAGS", "").split()
    folders = [f"-I{plait_abi.paths()['include']}", f"-I{HERE.parent / 'cpp'}"]
    library = Path(str(plait_abi.paths("plait_multiprocessing")["libplait_multiprocessing.so"]))
    link = [str(library), f"-Wl,-rpath,{library.parent}", "-ldl", "-o", str(program)]
    source = str(HERE / f"{name}.cpp")
    subprocess.run([*cxx, *flags, *extra, *folders, source, *link], check=True)
    runtime = str(plait_abi.paths()["libplait_abi.so"])
    done = subprocess.run(
        [str(program), runtime, str(library)], capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stdout) == (0, "0 left\n"), done.stdout + done.stderr


def test_any_tensor_type_travels() -> None:
    """plait_abi's handles, which are the tensors where core is not imported."""
    code = """if True:
        import sys, plait_abi, plait_multiprocessing as mp
        from plait_multiprocessing import _shared
        x = _shared.empty(plait_abi.Handle, (2, 3), False, 2, 32)
        receiver, sender = mp.Pipe(duplex=False)
        sender.send(x)
        y = receiver.recv()
        assert type(y) is plait_abi.Handle and y.shape == (2, 3), y
        assert mp.is_shared(x) and mp.is_shared(y) and y.dtype.name == "float32"
        assert mp.Group(1).join(0).all_gather(y)[0].shape == (2, 3)
        assert "plait_core" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


NO_MEMORY = """if True:
    import ctypes, gc, os
    import plait_core as pc, plait_multiprocessing as mp
    fail_new = ctypes.CDLL(None).fail_new
    fail_new.argtypes, fail_new.restype = [ctypes.c_long], None

    def opened():
        gc.collect()
        return sorted(os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
                      if os.path.exists(f"/proc/self/fd/{n}"))

    def exchange():
        receiver, sender = mp.Pipe(duplex=False)
        with receiver, sender:
            sender.send(pc.full((300,), 2.0))
            return receiver.recv()[0].item()

    assert exchange() == 2
    before, stats = opened(), mp._shared.stats()[:2]
    failures = 0
    for n in range(1, 200):
        fail_new(n)
        try:
            assert exchange() == 2
        except MemoryError:
            failures += 1
        fail_new(0)
        assert opened() == before, (n, opened(), before)
        assert mp._shared.stats()[:2] == stats, (n, mp._shared.stats(), stats)
        assert exchange() == 2
    assert failures > 3, failures
"""


DROPPED = """if True:
    import ctypes, threading
    import plait_core as pc, plait_multiprocessing
    fail_new = ctypes.CDLL(None).fail_new
    fail_new.argtypes, fail_new.restype = [ctypes.c_long], None
    kept = [pc.ones(300)]

    def drop():
        fail_new(1)
        kept.clear()
        fail_new(0)

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()
    assert pc.ones(3).sum() == 3
"""


@pytest.mark.parametrize("program", [NO_MEMORY, DROPPED], ids=["messages", "a_thread_that_drops"])
def test_memory_that_ends_in_the_middle(program: str, tmp_path: Path) -> None:
    library = tmp_path / "failing_new.so"
    cxx = os.environ.get("CXX", "c++").split()
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    source = str(HERE / "failing_new.cpp")
    subprocess.run([*cxx, *flags, source, "-o", str(library)], check=True)
    preloaded = [str(library), *os.environ.get("LD_PRELOAD", "").split()]  # a sanitizer's
    environment = {**os.environ, "LD_PRELOAD": " ".join(preloaded)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
