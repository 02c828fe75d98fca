"""The library without Python, and tensors of another type than core's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import plait_abi
import plait_multiprocessing as mp

HERE = Path(__file__).parent


def test_threads_of_a_program_without_python(tmp_path: Path) -> None:
    program = tmp_path / "storages_on_threads"
    cxx = os.environ.get("CXX", "c++").split()
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    extra = os.environ.get("PLAIT_BUILD_FLAGS", "").split()
    folders = [f"-I{plait_abi.paths()['include']}", f"-I{HERE.parent / 'cpp'}"]
    library = Path(str(plait_abi.paths("plait_multiprocessing")["libplait_multiprocessing.so"]))
    link = [str(library), f"-Wl,-rpath,{library.parent}", "-ldl", "-o", str(program)]
    source = str(HERE / "storages_on_threads.cpp")
    subprocess.run([*cxx, *flags, *extra, *folders, source, *link], check=True)
    runtime = str(plait_abi.paths()["libplait_abi.so"])
    done = subprocess.run(
        [str(program), runtime, str(library)], capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stdout) == (0, "0 left\n"), done.stdout + done.stderr


def test_any_tensor_type_travels() -> None:
    """plait_abi's own handles: what a tensor is where core is not imported."""
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
    assert mp.__version__ == "0.1.0"
