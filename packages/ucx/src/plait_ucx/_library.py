"""Loads the component, and finds the library of UCX."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import math
import os
import pathlib
import sys
from collections.abc import Iterator
from multiprocessing import util

import plait_abi
from plait_ucx._meeting import MOST_RANKS, Place, exchange

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
_library.plait_ucx_is_open.argtypes = (ctypes.c_char_p,)
_library.plait_ucx_begin.argtypes = (
    ctypes.c_char_p,
    ctypes.c_uint32,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_char_p),
)
_library.plait_ucx_begin.restype = ctypes.c_void_p
_library.plait_ucx_address.argtypes = (ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t))
_library.plait_ucx_address.restype = ctypes.c_void_p  # of bytes that may have zeros
_library.plait_ucx_join.argtypes = (
    ctypes.c_void_p,
    ctypes.c_uint32,
    ctypes.POINTER(ctypes.c_char_p),
    ctypes.POINTER(ctypes.c_size_t),
)
_library.plait_ucx_join.restype = ctypes.c_char_p
_library.plait_ucx_end.argtypes = (ctypes.c_void_p,)
_library.plait_ucx_end.restype = None
_library.plait_ucx_interface.argtypes = (ctypes.c_char_p,)
_library.plait_ucx_interface.restype = ctypes.c_char_p


class _Watch:
    """An object for the after-fork hook of multiprocessing, which needs one."""


def _disconnect_at_exit(watch: object = None) -> None:
    # children of multiprocessing end by os._exit, which runs nothing else
    util.Finalize(None, _library.plait_ucx_disconnect, exitpriority=-100)


_watch = _Watch()
util.register_after_fork(_watch, _disconnect_at_exit)  # a child does not inherit finalizers
_disconnect_at_exit()


def _path_in_wheel() -> str | None:
    """Return the path of libucp in the package libucx, which libucx-cu12 and -cu13 install."""
    try:
        result = importlib.util.find_spec("libucx")
    except (ImportError, ValueError):
        return None
    for folder in (result.submodule_search_locations or ()) if result is not None else ():
        path = os.path.join(folder, "lib", "libucp.so.0")
        if os.path.exists(path):
            return path
    return None


def _devices_towards(place: Place) -> str:
    """Return the names, as UCX calls them, of the interface that leads to a place and of the RDMA
    adapters, which carry data only between processes that exchanged keys.
    """
    if not place.addresses:
        return "lo"
    name: bytes = _library.plait_ucx_interface(place.own_ip().encode())
    adapters = sorted(pathlib.Path("/sys/class/infiniband").glob("*/ports/*"))
    ports = [f"{port.parts[-3]}:{port.name}" for port in adapters]
    return ",".join([*filter(None, [name.decode()]), *ports])


@contextlib.contextmanager
def _prepare(where: str, rank: int, size: int, timeout: float) -> Iterator[None]:
    """Exchange the addresses of a new group's processes, before `Communicator.open` opens it."""
    if size > MOST_RANKS:
        raise ValueError(f"open: `size` must be at most {MOST_RANKS}, got {size}")
    if not isinstance(where, str) or not 0 < timeout < math.inf:
        yield  # `open` raises the error
        return
    name = where.encode()
    if _library.plait_ucx_is_open(name):
        yield
        return
    place = Place.parse(where)
    reason = ctypes.c_char_p()
    own = _library.plait_ucx_begin(
        name, rank, _devices_towards(place).encode(), ctypes.byref(reason)
    )
    if not own:
        raise plait_abi.PlaitError(f"open: {(reason.value or b'').decode(errors='replace')}")
    try:
        length = ctypes.c_size_t()
        address = _library.plait_ucx_address(own, ctypes.byref(length))
        addresses = exchange(place, rank, size, ctypes.string_at(address, length.value), timeout)
        error_text = _library.plait_ucx_join(
            own,
            size,
            (ctypes.c_char_p * size)(*addresses),
            (ctypes.c_size_t * size)(*map(len, addresses)),
        )
        if error_text is not None:
            raise plait_abi.PlaitError(f"open: {error_text.decode(errors='replace')}")
        yield
    finally:
        _library.plait_ucx_end(own)


plait_abi.Communicator.prepare_with("ucx", _prepare)

_wheel = _path_in_wheel()
if _wheel is not None:
    _library.plait_ucx_set_library(os.fsencode(_wheel))


def library_version() -> tuple[int, int, int]:
    """Return the version of UCX; load the library if it is not loaded yet.

    Raises:
        RuntimeError: UCX is not installed, or its version is not supported.

    Example:
        >>> import plait_ucx
        >>> not plait_ucx.is_available() or plait_ucx.library_version() >= (1, 10, 0)
        True
    """
    numbers = (ctypes.c_uint * 3)()
    reason = _library.plait_ucx_version(numbers)
    if reason is not None:
        raise RuntimeError(f"plait_ucx: {reason.decode(errors='replace')}")
    return numbers[0], numbers[1], numbers[2]


def is_available() -> bool:
    """Return whether UCX is installed in a supported version.

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
