"""A zip of uncompressed records, written from front to back (PKWARE's APPNOTE, with zip64)."""

from __future__ import annotations

import struct
from typing import Any

from plait_core._checkpoints._atomic import Writer
from plait_core._checkpoints._digest import crc_of

__all__ = ["Zip"]

_ALIGNMENT = 64
_MANY = 0xFFFFFFFF
_DATE = (1 << 5) | 1  # 1980-01-01, so that the same object always gives the same bytes


class Zip:
    """A writer of records whose bytes begin at multiples of 64, for readers that map the file."""

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
