"""The profiler's own file format: all of a recording, compressed.

A file is eight bytes of name, a JSON header with the version, the number of rows and the columns'
types, and blocks. Each block is compressed with zlib, with its length and a CRC-32 before it. The
first block has the tables as JSON. The others have the columns of `ROWS_PER_BLOCK` rows: for each
column the differences of neighbours, where these are small, with all first bytes before all second
bytes and so on. Numbers are little-endian.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

import numpy as np

from plait_profiler._recording import ROW, Context, Kind, Recording, Signature
from plait_profiler._tree import Array

MAGIC = b"plaitprf"
VERSION = 1
ROWS_PER_BLOCK = 1 << 17
MOST_TABLES = 1 << 30  # bytes, in files that do not say how many
LENGTHS = struct.Struct("<II")  # bytes, and their CRC-32
DIFFERENCES = ("start", "link", "b")  # columns of which neighbours are alike


def save_recording(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording to a file that `load_recording` reads.

    Args:
        recording: what a profile recorded.
        path: of the file, by convention with the ending ``.plaitprof``.

    Example:
        >>> import os, tempfile
        >>> import numpy as np
        >>> from plait_profiler._native import load_recording, save_recording
        >>> from plait_profiler._recording import ROW, Kind, Recording, Signature
        >>> recording = Recording(np.zeros(3, ROW), [Signature("r", Kind.RANGE)])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_recording(recording, os.path.join(folder, "run.plaitprof"))
        ...     loaded = load_recording(os.path.join(folder, "run.plaitprof"))
        >>> len(loaded.rows)
        3
    """
    tables = json.dumps(_tables(recording)).encode()
    header = {
        "version": VERSION,
        "rows": len(recording.rows),
        "tables": len(tables),
        "columns": [[name, ROW[name].str[1:]] for name in ROW.names or ()],
    }
    with open(path, "wb") as file, ThreadPoolExecutor() as pool:
        file.write(MAGIC)
        _put(file, json.dumps(header).encode())
        _put(file, zlib.compress(tables, 6))
        for rows in _parts(recording.rows):
            for block in pool.map(_encoded, [(name, rows[name]) for name in ROW.names or ()]):
                _put(file, block)


def load_recording(path: str | os.PathLike[str]) -> Recording:
    """Read a recording from a file that `save_recording` wrote.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is no such file, is damaged or incomplete, or if a newer version of
            this package wrote it. The message names the file.

    Example:
        >>> import os, tempfile
        >>> import numpy as np
        >>> from plait_profiler._native import load_recording, save_recording
        >>> from plait_profiler._recording import ROW, Kind, Recording, Signature
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "run.plaitprof")
        ...     save_recording(Recording(np.zeros(1, ROW), [Signature("r", Kind.RANGE)]), path)
        ...     recording = load_recording(path)
        >>> [signature.name for signature in recording.signatures]
        ['r']
    """
    try:
        with open(path, "rb") as file, ThreadPoolExecutor() as pool:
            return _read(file, pool)
    except _Damaged as error:
        raise ValueError(f"load_recording: {os.fspath(path)!r} {error}") from None
    except (LookupError, TypeError, ValueError, zlib.error) as error:
        text = f"is damaged: its content is not that of a recording ({error!r})"
        raise ValueError(f"load_recording: {os.fspath(path)!r} {text}") from error


class _Damaged(Exception):
    """The fault of a file; the message continues "the file"."""


def _read(file: BinaryIO, pool: ThreadPoolExecutor) -> Recording:
    if file.read(len(MAGIC)) != MAGIC:
        raise _Damaged("is not a recording of plait's profiler")
    header = json.loads(_take(file))
    version = header["version"]
    if version != VERSION:
        raise _Damaged(f"has version {version} of the format; this package reads {VERSION}")
    tables = json.loads(_unpacked(_take(file), int(header.get("tables", MOST_TABLES))))
    # deflate makes data at most 1032 times smaller
    if header["rows"] * ROW.itemsize > 1100 * os.fstat(file.fileno()).st_size:
        raise _Damaged("is damaged: it is too small for its number of rows")
    rows = np.empty(header["rows"], ROW)
    names = [name for name, _ in header["columns"]]
    for part in _parts(rows):
        # One list for each part: not more of the file than that is in memory.
        blocks = [(name, _take(file), part) for name in names]
        list(pool.map(_decode_into, blocks))
    if file.read(1):
        raise _Damaged("has bytes behind its end: it is damaged")
    recording = _recording_of(rows, tables)
    for column, table in (("signature", recording.signatures), ("context", recording.contexts)):
        if len(rows) and int(rows[column].max()) >= len(table):
            raise _Damaged(f"is damaged: a row has a {column} that is not in the file")
    return recording


def _parts(rows: Array) -> Iterator[Array]:
    for begin in range(0, len(rows), ROWS_PER_BLOCK):
        yield rows[begin : begin + ROWS_PER_BLOCK]


def _put(file: BinaryIO, data: bytes) -> None:
    file.write(LENGTHS.pack(len(data), zlib.crc32(data)))
    file.write(data)


def _take(file: BinaryIO) -> bytes:
    lengths = file.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        raise _Damaged("ends too early: it was cut off, or is still being written")
    length, checksum = LENGTHS.unpack(lengths)
    here = file.tell()
    # Ask for no more memory than the file has bytes: the length may be the damage.
    if length > file.seek(0, os.SEEK_END) - here:
        raise _Damaged("ends too early: it was cut off, or is still being written")
    file.seek(here)
    data = file.read(length)
    if zlib.crc32(data) != checksum:
        raise _Damaged("is damaged: a checksum differs")
    return data


def _encoded(column: tuple[str, Array]) -> bytes:
    name, values = column
    if name in DIFFERENCES:
        values = np.diff(values, prepend=np.zeros(1, values.dtype))  # modulo 2**64
    size = values.dtype.itemsize
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return zlib.compress(little.view(np.uint8).reshape(-1, size).T.tobytes(), 1)


def _unpacked(data: bytes, most: int) -> bytes:
    """Return what was compressed; it is an error, and takes no memory, if it is longer."""
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(data, max(most, 0) + 1)
    if len(content) > most:
        raise _Damaged(f"is damaged: a block has more than {most} bytes")
    if not unpacking.eof or unpacking.unused_data:
        raise _Damaged("is damaged: a block does not end where it should")
    return content


def _decode_into(block: tuple[str, bytes, Array]) -> None:
    name, data, rows = block
    kind = ROW[name]
    octets = np.frombuffer(_unpacked(data, len(rows) * kind.itemsize), np.uint8)
    if octets.size != len(rows) * kind.itemsize:
        raise _Damaged(f"is damaged: the column {name!r} has the wrong length")
    little = np.ascontiguousarray(octets.reshape(kind.itemsize, -1).T)
    values = little.view(kind.newbyteorder("<")).ravel()
    if name in DIFFERENCES:
        values = np.cumsum(values, dtype=kind)
    rows[name] = values


def _tables(recording: Recording) -> dict[str, Any]:
    return {
        "begin": recording.begin,
        "end": recording.end,
        "clock": recording.clock,
        "reserved": [list(pair) for pair in recording.reserved],
        "dropped": {str(int(kind)): count for kind, count in recording.dropped.items()},
        "threads": [[*key, name] for key, name in recording.threads.items()],
        "signatures": [
            [s.name, int(s.kind), _plain(s.inputs), _plain(s.outputs), *_numbers(s)]
            for s in recording.signatures
        ],
        "contexts": [
            [c.module, c.module_type, [list(line) for line in c.stack]] for c in recording.contexts
        ],
    }


def _recording_of(rows: Array, tables: dict[str, Any]) -> Recording:
    return Recording(
        rows,
        [
            Signature(name, Kind(kind), _value(inputs), _value(outputs), *numbers)
            for name, kind, inputs, outputs, *numbers in tables["signatures"]
        ],
        [
            Context(module, kind, tuple((file, line, name) for file, line, name in stack))
            for module, kind, stack in tables["contexts"]
        ],
        {(process, thread): name for process, thread, name in tables["threads"]},
        {Kind(int(kind)): count for kind, count in tables["dropped"].items()},
        tables["begin"],
        tables["end"],
        tables["clock"],
        [(time, size) for time, size in tables["reserved"]],
    )


def _numbers(signature: Signature) -> list[int]:
    return [signature.operations, signature.read, signature.written, signature.composite]


def _plain(value: Any) -> Any:
    """Return a signature's value for JSON, where tuples and complex numbers have a mark."""
    if isinstance(value, tuple):
        return {"tuple": [_plain(item) for item in value]}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    return value


def _value(plain: Any) -> Any:
    if isinstance(plain, dict):
        if "complex" in plain:
            return complex(*plain["complex"])
        return tuple(_value(item) for item in plain["tuple"])
    return [_value(item) for item in plain] if isinstance(plain, list) else plain
