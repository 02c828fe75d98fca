"""The costs of calls, as the runtime reports them at their end: `cost_observer.c` asks it."""

from __future__ import annotations

import ctypes
import os
import pathlib
import shlex
import shutil
import subprocess
from typing import NamedTuple

import plait_abi

__all__ = ["Cost", "Observer"]

SOURCE = pathlib.Path(__file__).with_suffix(".c")


class Cost(NamedTuple):
    """The cost of a call, or the result of a cost function. None: the count of the runtime."""

    operations: int
    read: int | None = None
    written: int | None = None


class CCost(ctypes.Structure):
    """``plait_cost``."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("size", "operations", "read", "written")]


class Observer:
    """The plug-in, compiled in `folder`; it observes in a ``with`` block."""

    def __init__(self, folder: pathlib.Path) -> None:
        compiler = shlex.split(os.environ.get("CC", "")) or [shutil.which("cc") or "gcc"]
        path = folder / "cost_observer.so"
        options = ["-std=c11", "-shared", "-fPIC", f"-I{plait_abi.paths()['include']}"]
        options.append(f'-DNAME="cost_observer.{folder.name}"')  # each test file loads its own
        subprocess.run([*compiler, *options, str(SOURCE), "-o", str(path)], check=True)
        plait_abi.load(str(path))
        self._library = ctypes.CDLL(str(path))

    def __enter__(self) -> Observer:
        assert self._library.cost_observer_watch(1) == 0
        return self

    def __exit__(self, *_: object) -> None:
        self._library.cost_observer_watch(0)

    def parts(self) -> int:
        """Return the sum of the operations of the calls that the last call made."""
        return ctypes.c_uint64.in_dll(self._library, "cost_observer_parts").value

    def last(self) -> tuple[str, Cost]:
        """Return the operator of the last call that succeeded, and its cost."""
        result = CCost.in_dll(self._library, "cost_observer_cost")
        name = (ctypes.c_char * 64).in_dll(self._library, "cost_observer_name").value.decode()
        return name, Cost(result.operations, result.read, result.written)
