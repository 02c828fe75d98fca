"""The records in a zip of `torch.save`: `torch._C.PyTorchFileReader` and `PyTorchFileWriter`."""

from __future__ import annotations

import hashlib
import os
import struct
import sys
import zipfile
from typing import Any

import plait
from plait_core._checkpoints._format import Writer, crc_of

_ID = ".data/serialization_id"
_ALIGNMENT = 64
_MANY = 0xFFFFFFFF
_DATE = (1 << 5) | 1  # 1980-01-01, so that the same object always gives the same bytes


class Zip:
    """A writer of a zip of uncompressed records, from front to back (PKWARE's APPNOTE, with zip64).

    The bytes of records begin at multiples of 64, for readers that map the file.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._begin = writer.tell()
        self._directory: list[bytes] = []

    def add(self, name: str, data: Any) -> None:
        """Write one record: bytes, or a contiguous array of them."""
        size, crc, text = memoryview(data).nbytes, crc_of(data), name.encode()
        offset = self._writer.tell() - self._begin
        large = size >= _MANY
        extra = struct.pack("<HHQQ", 1, 16, size, size) if large else b""
        padding = -(offset + 30 + len(text) + len(extra) + 4) % _ALIGNMENT
        padded = extra + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        field = _MANY if large else size
        facts = (0, 0, 0, _DATE, crc, field, field, len(text))
        version = 45 if large else 20
        self._writer.write(
            struct.pack("<4s5H3L2H", b"PK\x03\x04", version, *facts, len(padded)) + text + padded
        )
        self._writer.write(data)
        wide = ([size, size] if large else []) + ([offset] if offset >= _MANY else [])
        extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
        version = 45 if wide else 20
        self._directory.append(
            struct.pack("<4s6H3L2H", b"PK\x01\x02", version, version, *facts, len(extra))
            + struct.pack("<3H2L", 0, 0, 0, 0, min(offset, _MANY))
            + text
            + extra
        )

    def finish(self) -> None:
        """Write the directory."""
        offset = self._writer.tell() - self._begin
        directory = b"".join(self._directory)
        count, size = len(self._directory), len(directory)
        self._writer.write(directory)
        if count >= 0xFFFF or offset >= _MANY:
            end = offset + size
            wide = struct.pack(
                "<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, offset
            )
            self._writer.write(wide + struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1))
        field = min(count, 0xFFFF)
        self._writer.write(
            struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, field, field, size, min(offset, _MANY), 0)
        )


class PyTorchFileReader:
    """A reader of the records of a zip, by their names without the folder.

    Args:
        source: a path, or a file object open for reading bytes that can seek.

    Raises:
        RuntimeError: if the file is no zip, or a record is not available.

    Example:
        >>> import io
        >>> from plait_torch._zip_records import PyTorchFileReader, PyTorchFileWriter
        >>> file = io.BytesIO()
        >>> writer = PyTorchFileWriter(file)
        >>> writer.write_record("words", b"abc", 3)
        >>> writer.write_end_of_file()
        >>> reader = PyTorchFileReader(io.BytesIO(file.getvalue()))
        >>> reader.has_record("words"), reader.get_record("words")
        (True, b'abc')
    """

    def __init__(self, source: Any) -> None:
        try:
            self._zip = zipfile.ZipFile(source)
        except (OSError, zipfile.BadZipFile) as error:
            raise RuntimeError(f"PyTorchFileReader: the file cannot be read: {error}") from error
        names = self._zip.namelist()
        self._folder = names[0].partition("/")[0] if names else ""

    def _info(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._zip.getinfo(f"{self._folder}/{name}")
        except KeyError:
            raise RuntimeError(f"PyTorchFileReader: there is no record {name!r}") from None

    def has_record(self, name: str) -> bool:
        """Return whether there is a record."""
        return f"{self._folder}/{name}" in self._zip.NameToInfo

    def get_record(self, name: str) -> bytes:
        """Return the bytes of a record, which must not be compressed."""
        info = self._info(name)
        if info.compress_type != zipfile.ZIP_STORED:  # it may unpack to a thousand times its size
            raise RuntimeError(f"PyTorchFileReader: the record {name!r} is compressed")
        return self._zip.read(info)

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """Return a tensor of the first elements of a record.

        Args:
            numel: the number of elements.
            dtype: their dtype; `UntypedStorage` means bytes.
        """
        kind = dtype if isinstance(dtype, plait.dtype) else plait.uint8
        return plait.frombuffer(bytearray(self.get_record(name)), dtype=kind, count=numel)

    def get_record_size(self, name: str) -> int:
        """Return the number of bytes of a record."""
        return self._info(name).file_size

    def get_record_header_offset(self, name: str) -> int:
        """Return where the header of a record begins in the file."""
        return self._info(name).header_offset

    def get_record_offset(self, name: str) -> int:
        """Return where the bytes of a record begin in the file."""
        header = self._header(self._info(name).header_offset)
        lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        return self._info(name).header_offset + 30 + lengths

    def _header(self, offset: int) -> bytes:
        file: Any = self._zip.fp
        file.seek(offset)
        result: bytes = file.read(30)
        return result

    def get_all_records(self) -> list[str]:
        """Return the names of all records."""
        return [name.removeprefix(f"{self._folder}/") for name in self._zip.namelist()]

    def serialization_id(self) -> str:
        """Return the text that the writer gave the file, or ""."""
        return self.get_record(_ID).decode() if self.has_record(_ID) else ""


class PyTorchFileWriter:
    """A writer of a zip of records that are not compressed, for `PyTorchFileReader`.

    Args:
        file: a path, or a file object open for writing bytes, also one that cannot seek.
        compute_crc32: has no effect: records have sums.
        storage_alignment: has no effect: the bytes of records begin at multiples of 64.

    Raises:
        RuntimeError: if a name is written twice, or after the end.

    Example:
        >>> import io
        >>> from plait_torch._zip_records import PyTorchFileWriter
        >>> writer = PyTorchFileWriter(io.BytesIO())
        >>> writer.write_record("a", "text", 4)
        >>> sorted(writer.get_all_written_records())
        ['a']
    """

    def __init__(self, file: Any, compute_crc32: bool = True, storage_alignment: int = 64) -> None:
        self._owned = isinstance(file, (str, os.PathLike))
        self._file = open(file, "wb") if self._owned else file  # noqa: SIM115
        name = os.path.splitext(os.path.basename(os.fspath(file)))[0] if self._owned else ""
        self._name = name or "archive"
        self._zip = Zip(Writer(self._file.write))
        self._written: set[str] = set()
        self._sum = hashlib.blake2b(digest_size=16)
        self._version, self._ended = 3, False

    def archive_name(self) -> str:
        """Return the name of the folder in the zip."""
        return self._name

    def set_min_version(self, version: int) -> None:
        """Write at least this number as the version of the format."""
        self._version = max(self._version, version)

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Write the first `size` bytes of a text, bytes, or a storage or tensor on the CPU.

        The record of `serialization_id`, copied from another file, is left out.
        """
        if name == _ID:
            return
        if self._ended or name in self._written:
            raise RuntimeError(
                f"PyTorchFileWriter: {name!r} cannot be written: "
                + ("the file has its end" if self._ended else "there is a record of this name")
            )
        text = _bytes_of(data)[:size]
        if len(text) < size:
            raise ValueError(f"PyTorchFileWriter: {size} bytes are required, got {len(text)}")
        self._zip.add(f"{self._name}/{name}", text)
        self._written.add(name)
        self._sum.update(name.encode() + b"\0" + text)

    def get_all_written_records(self) -> set[str]:
        """Return the names of the records."""
        return set(self._written)

    def serialization_id(self) -> str:
        """Return a text that names the records written so far: equal for equal files."""
        return str(int.from_bytes(self._sum.digest(), "big")).zfill(40)

    def write_end_of_file(self) -> None:
        """Write the version, the text of `serialization_id` and the directory of the zip."""
        if self._ended:
            return
        if "version" not in self._written:
            text = f"{self._version}\n"
            self.write_record("version", text, len(text))
        if "byteorder" not in self._written:
            self.write_record("byteorder", sys.byteorder, len(sys.byteorder))
        self._zip.add(f"{self._name}/{_ID}", self.serialization_id().encode())
        self._zip.finish()
        self._ended = True
        if self._owned:
            self._file.close()
        elif hasattr(self._file, "flush"):
            self._file.flush()


def _bytes_of(data: Any) -> bytes:
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, plait.Tensor):
        data = data.untyped_storage()
    if isinstance(data, plait.UntypedStorage):
        return bytes(plait.tensor([], dtype=plait.uint8).set_(data).numpy())
    return bytes(data)
