"""Loads the component, and finds the library of UCX."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from multiprocessing import util

import plait_abi

__all__ = ["is_available", "library_version"]

if not sys.platform.startswith("linux"):
    raise ImportError(f"plait_ucx: Linux is required, this is {sys.platform}")

_path = plait_abi.paths("plait_ucx")["libplait_ucx.so"]
plait_abi.load(_path)
_library = ctypes.CDLL(str(_path))
_library.plait_ucx_set_library.argtypes = (ctypes.c_char_p,)
_library.plait_ucx_set_library.restype = None
_library.plait_ucx_version.argtypes = (ctypes.POINTER(ctypes.c_uint),)
_library.plait_ucx_version.restype = ctypes.c_char_p
_library.plait_ucx_disconnect.argtypes = ()
_library.plait_ucx_disconnect.restype = None


class _Watch:
    """An object for the after-fork hook of multiprocessing, which needs one."""


def _at_end(watch: object = None) -> None:
    # children of multiprocessing end by os._exit, which runs nothing else
    util.Finalize(None, _library.plait_ucx_disconnect, exitpriority=-100)


_watch = _Watch()
util.register_after_fork(_watch, _at_end)  # a child forgets its parent's finalizers
_at_end()


def _of_wheel() -> str | None:
    """Return the path of libucp in the package libucx, which libucx-cu12 and -cu13 install."""
    try:
        found = importlib.util.find_spec("libucx")
    except (ImportError, ValueError):
        return None
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        path = os.path.join(folder, "lib", "libucp.so.0")
        if os.path.exists(path):
            return path
    return None


_wheel = _of_wheel()
if _wheel is not None:
    _library.plait_ucx_set_library(os.fsencode(_wheel))


def library_version() -> tuple[int, int, int]:
    """Return the version of UCX, which is opened if it was not yet.

    Raises:
        RuntimeError: if it is not there, or of a version that is not known.

    Example:
        >>> import plait_ucx
        >>> not plait_ucx.is_available() or plait_ucx.library_version() >= (1, 10, 0)
        True
    """
    numbers = (ctypes.c_uint * 3)()
    why = _library.plait_ucx_version(numbers)
    if why is not None:
        raise RuntimeError(f"plait_ucx: {why.decode(errors='replace')}")
    return numbers[0], numbers[1], numbers[2]


def is_available() -> bool:
    """Return whether UCX is there, so that groups can be opened.

    Example:
        >>> import plait_ucx
        >>> plait_ucx.is_available() in (True, False)
        True
    """
    try:
        library_version()
    except RuntimeError:
        return False
    return True
