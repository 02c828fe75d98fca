"""IDX files, the format of MNIST: an array of a few number types, big-endian.

The file starts with two zero bytes, a type code and the number of dimensions, then come the sizes
as 32-bit integers, then the elements in C order. Source: the page of the MNIST database (LeCun,
Cortes, Burges), "The IDX file format".
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["decode", "encode", "read", "write"]

_GZIP = b"\x1f\x8b"
_LONGEST_HEAD = 4 + 4 * 255
_STEP = 1 << 24  # bytes that are read at a time
_DTYPES: dict[int, np.dtype[Any]] = {
    0x08: np.dtype(">u1"),
    0x09: np.dtype(">i1"),
    0x0B: np.dtype(">i2"),
    0x0C: np.dtype(">i4"),
    0x0D: np.dtype(">f4"),
    0x0E: np.dtype(">f8"),
}
_CODES = {dtype.newbyteorder("="): code for code, dtype in _DTYPES.items()}


def read(path: str | os.PathLike[str]) -> npt.NDArray[Any]:
    """The array in an IDX file, gzipped or not, in this machine's byte order.

    Args:
        path: The file.

    Raises:
        ValueError: the file is not an IDX file, is cut short, or has bytes left over.

    Example:
        >>> import numpy as np, tempfile
        >>> from plait_data.datasets import idx
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     idx.write(folder + "/labels.gz", np.array([7, 2, 1], dtype=np.uint8))
        ...     idx.read(folder + "/labels.gz")
        array([7, 2, 1], dtype=uint8)
    """
    with open(path, "rb") as file:
        zipped = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        if not zipped:
            return decode(_content(file, str(path)), str(path))
        import gzip  # imported here, as most programs read no gzipped files

        try:
            with gzip.GzipFile(fileobj=file) as unzipped:
                return decode(_content(unzipped, str(path)), str(path))
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"idx.read: {path} must be a whole gzip file; {error}") from None


def _content(file: Any, name: str) -> bytes:
    """The bytes of a file, and not many more than its head says: a gzip file may unpack to a
    thousand times its size.
    """
    content = bytearray(file.read(_LONGEST_HEAD))
    rest = _size(bytes(content), name)[1] + 1 - len(content)
    while rest > 0 and (more := file.read(min(rest, _STEP))):
        content += more
        rest -= len(more)
    return bytes(content)


def write(path: str | os.PathLike[str], array: npt.ArrayLike) -> None:
    """Write an array as an IDX file, gzipped if the name ends in ``.gz``.

    The write is atomic, and the same array always gives the same bytes.

    Args:
        path: The file.
        array: The array.

    Example:
        >>> import os, tempfile
        >>> import numpy as np
        >>> from plait_data.datasets import idx
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "labels.gz")
        ...     idx.write(path, np.array([3, 1], dtype=np.uint8))
        ...     idx.read(path).tolist()
        [3, 1]

    Raises:
        TypeError: the dtype is none of uint8, int8, int16, int32, float32, float64.
        ValueError: no dimensions or more than 255, or a size that doesn't fit 32 bits.
    """
    content = encode(array)
    target = Path(path)
    if target.suffix == ".gz":
        import gzip

        content = gzip.compress(content, mtime=0)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def decode(content: bytes, name: str = "content") -> npt.NDArray[Any]:
    """The array in the bytes of an IDX file; ``name`` is for errors.

    Args:
        content: The bytes of the file.

    Example:
        >>> from plait_data.datasets import idx
        >>> idx.decode(b"\\0\\0\\x08\\x01\\0\\0\\0\\x02\\x03\\x01").tolist()
        [3, 1]
    """
    dtype, expected, shape = _size(content, name)
    if len(content) != expected:
        raise ValueError(
            f"idx.read: {name} must have {expected} bytes for shape {shape} of "
            f"{dtype.newbyteorder('=')}; got {len(content)}"
            + (" or more" if len(content) > expected else "")
        )
    start = 4 + 4 * len(shape)
    values = np.frombuffer(content, dtype=dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def _size(content: bytes, name: str) -> tuple[np.dtype[Any], int, tuple[int, ...]]:
    """The dtype, the number of bytes of the whole file and the shape that a file's head says."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _DTYPES:
        raise ValueError(
            f"idx.read: {name} must start with two zero bytes and a type code of "
            f"{', '.join(f'0x{code:02x}' for code in _DTYPES)}; got {content[:4].hex(' ')!r}"
        )
    dtype, ndim = _DTYPES[content[2]], content[3]
    start = 4 + 4 * ndim
    if len(content) < start:
        raise ValueError(f"idx.read: {name} must have {ndim} sizes; it ends before the last")
    shape = struct.unpack(f">{ndim}I", content[4:start])
    expected = start + math.prod(shape) * dtype.itemsize
    return dtype, expected, shape


def encode(array: npt.ArrayLike) -> bytes:
    """The bytes of an IDX file with this array.

    Args:
        array: The array.

    Example:
        >>> import numpy as np
        >>> from plait_data.datasets import idx
        >>> idx.encode(np.array([3, 1], dtype=np.uint8)).hex(" ")
        '00 00 08 01 00 00 00 02 03 01'
    """
    values = np.asarray(array)
    code = _CODES.get(values.dtype.newbyteorder("="))
    if code is None:
        dtypes = ", ".join(str(dtype) for dtype in _CODES)
        raise TypeError(f"idx.write: the dtype must be one of {dtypes}; got {values.dtype}")
    if not 1 <= values.ndim <= 255 or any(size >= 2**32 for size in values.shape):
        raise ValueError(
            "idx.write: the array must have 1 to 255 dimensions with sizes below 2**32; "
            f"got shape {values.shape}"
        )
    header = struct.pack(f">BBBB{values.ndim}I", 0, 0, code, values.ndim, *values.shape)
    return header + values.astype(_DTYPES[code]).tobytes()
