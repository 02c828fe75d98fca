"""The functions of plait/run.h for Python, through ctypes. It imports no package of plait."""

from __future__ import annotations

import ctypes
import math
import struct
from typing import Any

INPUT, OUTPUT, WEIGHT, NUMBER = 1, 2, 3, 4
BORROW = 1


class Settings(ctypes.Structure):
    """The struct plait_run_settings."""

    _fields_ = (
        ("size", ctypes.c_uint64),
        ("libraries", ctypes.c_char_p),
        ("memory_limit", ctypes.c_uint64),
        ("threads", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
    )


class Tensor(ctypes.Structure):
    """The struct plait_run_tensor."""

    _fields_ = (
        ("size", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
        ("nbytes", ctypes.c_uint64),
        ("ndim", ctypes.c_int32),
        ("item_size", ctypes.c_uint32),
    )


def load(path: str) -> ctypes.CDLL:
    """Load the library and declare its functions."""
    library = ctypes.CDLL(path)
    handle, text, u32, u64 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64
    whole = ctypes.c_int
    arguments: dict[str, tuple[Any, list[Any]]] = {
        "open": (whole, [text, ctypes.POINTER(Settings), ctypes.POINTER(handle)]),
        "open_memory": (
            whole,
            [ctypes.c_void_p, u64, ctypes.POINTER(Settings), ctypes.POINTER(handle)],
        ),
        "close": (None, [handle]),
        "error": (text, [handle]),
        "count": (u32, [handle, whole]),
        "find": (whole, [handle, whole, text]),
        "get": (whole, [handle, whole, u32, ctypes.POINTER(Tensor)]),
        "set": (whole, [handle, whole, u32, ctypes.c_void_p, u64, u32]),
        "execute": (whole, [handle]),
        "save": (whole, [handle, text]),
        "save_memory": (whole, [handle, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(u64)]),
        "memory": (u64, [handle]),
    }
    for name, (result, types) in arguments.items():
        function = getattr(library, f"plait_run_{name}")
        function.restype, function.argtypes = result, types
    return library


class RunError(Exception):
    """An error of the library: its number and its text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Run:
    """A handle of the library."""

    def __init__(
        self, library: ctypes.CDLL, file: str | bytes, libraries: str = "", **more: int
    ) -> None:
        """Open the file of a path, or of bytes in memory."""
        self._library = library
        self.handle = ctypes.c_void_p()
        settings = Settings(ctypes.sizeof(Settings), libraries.encode() or None, **more)
        rest = ctypes.byref(settings), ctypes.byref(self.handle)
        if isinstance(file, str):
            code = library.plait_run_open(file.encode(), *rest)
        else:
            code = library.plait_run_open_memory(file, len(file), *rest)
        if code:
            text = library.plait_run_error(self.handle).decode()
            self.close()
            raise RunError(code, text)

    def close(self) -> None:
        """Free the handle."""
        self._library.plait_run_close(self.handle)
        self.handle = ctypes.c_void_p()

    def _check(self, code: int) -> None:
        if code:
            raise RunError(code, self._library.plait_run_error(self.handle).decode())

    def count(self, kind: int) -> int:
        """Return the number of entries."""
        return int(self._library.plait_run_count(self.handle, kind))

    def find(self, kind: int, name: str) -> int:
        """Return the index of an entry, or -1."""
        return int(self._library.plait_run_find(self.handle, kind, name.encode()))

    def get(self, kind: int, index: int) -> Tensor:
        """Describe an entry."""
        tensor = Tensor(ctypes.sizeof(Tensor))
        self._check(self._library.plait_run_get(self.handle, kind, index, ctypes.byref(tensor)))
        return tensor

    def read(self, kind: int, index: int) -> tuple[str, tuple[int, ...], bytes]:
        """Return dtype, shape and bytes of a dense tensor."""
        tensor = self.get(kind, index)
        shape = tuple(tensor.shape[: tensor.ndim])
        assert tensor.nbytes == math.prod(shape) * tensor.item_size
        return tensor.dtype.decode(), shape, ctypes.string_at(tensor.data, tensor.nbytes)

    def set(self, kind: int, index: int, data: Any, nbytes: int = -1, flags: int = 0) -> None:
        """Set an entry to bytes, or to what lies at an address."""
        size = len(data) if nbytes < 0 else nbytes
        self._check(self._library.plait_run_set(self.handle, kind, index, data, size, flags))

    def execute(self) -> None:
        """Run the graph."""
        self._check(self._library.plait_run_execute(self.handle))

    def number(self, index: int) -> float:
        """Return a number."""
        dtype, shape, data = self.read(NUMBER, index)
        assert (dtype, shape) == ("float64", ())
        return float(struct.unpack("d", data)[0])

    def set_number(self, index: int, value: float) -> None:
        """Set a number."""
        self.set(NUMBER, index, struct.pack("d", value))

    def save(self, path: str) -> None:
        """Write the graph to a file."""
        self._check(self._library.plait_run_save(self.handle, path.encode()))

    def saved(self) -> bytes:
        """Return the bytes of the graph's file."""
        data, nbytes = ctypes.c_void_p(), ctypes.c_uint64()
        self._check(
            self._library.plait_run_save_memory(
                self.handle, ctypes.byref(data), ctypes.byref(nbytes)
            )
        )
        return ctypes.string_at(data, nbytes.value)  # type: ignore[arg-type]

    def memory(self) -> int:
        """Return the bytes that are planned."""
        return int(self._library.plait_run_memory(self.handle))
