"""The emulation's numbers for tests, and programs in processes of their own."""

from __future__ import annotations

import ctypes
import os
import pathlib
import subprocess
import sys
import textwrap
from typing import Any

import plait_cuda

__all__ = ["Emulation", "run_program"]

LIBRARY = pathlib.Path(plait_cuda.__file__).parent / "emulation" / "libcuda.so.1"


class Emulation:
    """The faults on request and the counters of the emulated driver in this process."""

    def __init__(self) -> None:
        self._library: Any = ctypes.CDLL(str(LIBRARY))
        self._library.plait_emulation_get.restype = ctypes.c_int64
        self._library.plait_emulation_trap.restype = ctypes.c_char_p

    def set(self, name: str, value: int) -> None:
        """Set a number."""
        assert self._library.plait_emulation_set(name.encode(), ctypes.c_int64(value)), name

    def get(self, name: str) -> int:
        """Return a number."""
        return int(self._library.plait_emulation_get(name.encode()))

    def call(self, name: str, argument: object) -> None:
        """Call a function of the driver by its exported name."""
        assert getattr(self._library, name)(argument) == 0

    def trap(self) -> str:
        """Return the text of the last fault."""
        return str(self._library.plait_emulation_trap().decode())


START = """
import sys
sys.path.append(sys.argv[1])
from emulation_control import Emulation
import plait, plait_abi
emulation = Emulation()

def refused(kind, call, *texts):
    try:
        call()
    except kind as error:
        for text in texts:
            assert text in str(error), (text, str(error))
        return str(error)
    raise AssertionError(f"no {kind.__name__}")
"""


def run_program(code: str, *, text: str = "done\n", **environment: str) -> str:
    """Run a program on the emulation, which must end well and print `text` at its end; returns what
    it wrote to stderr.
    """
    program = START + textwrap.dedent(code) + "\nprint('done', flush=True)\n"
    done = subprocess.run(
        [sys.executable, "-c", program, str(pathlib.Path(__file__).parent)],
        env={**os.environ, "PLAIT_CUDA_EMULATION": "1", **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.stdout.endswith(text), done.stdout + done.stderr
    return done.stderr
