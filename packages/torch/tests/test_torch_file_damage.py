"""Damage of PyTorch's files: the typed error, or a field that nothing depends on.

PLAIT_CHECKPOINT_FLIPS sets the number of tries.
"""

from __future__ import annotations

import io
import os
import random
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc

FLIPS = int(os.environ.get("PLAIT_CHECKPOINT_FLIPS", "3000"))


def small() -> tuple[bytes, dict[str, Any]]:
    value = {"w": pc.arange(12.0), "deep": [{"b": pc.ones(5, dtype=pc.int64)}], "n": (1, "x", 0.5)}
    file = io.BytesIO()
    pc.save(value, file, format="torch")
    return file.getvalue(), value


def is_small(value: Any) -> bool:
    return (
        list(value) == ["w", "deep", "n"]
        and value["n"] == (1, "x", 0.5)
        and value["w"].tolist() == list(range(12))
        and value["deep"][0]["b"].tolist() == [1] * 5
    )


def loads_or_complains(data: bytes, **options: Any) -> Any:
    """Return whether a file loads; the only exception allowed is the typed one."""
    try:
        return pc.load(io.BytesIO(data), **options)
    except pc.CheckpointError:
        return None


def harmless(data: bytes) -> set[int]:
    """The bytes of a zip that do not influence what is loaded."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos, offset = archive.infolist(), archive.start_dir
    results: set[int] = set()
    for info in infos:
        begin = info.header_offset
        length, extra = struct.unpack("<2H", data[begin + 26 : begin + 30])
        # version, flags, date, and sum and sizes, which are taken from the directory
        results |= {begin + i for i in (4, 5, 6, 7, *range(10, 26))}
        results |= set(range(begin + 30 + length, begin + 30 + length + extra))
        if info.filename.endswith("/version"):  # a record that is not read, and its sum
            body = begin + 30 + length + extra
            results |= set(range(body, body + info.file_size)) | set(
                range(offset + 16, offset + 20)
            )
        # versions, flags, date, disk, attributes
        results |= {offset + i for i in (4, 5, 6, 7, 8, 9, 12, 13, 14, 15, *range(34, 42))}
        offset += 46 + len(info.filename) + len(info.extra)
    # the lengths in the last entry end with the directory
    results |= {offset - 46 - len(info.filename) + i for i in range(28, 34)}
    return results | {
        offset + i for i in (4, 5, 6, 7, 8, 9, 10, 11, 20, 21)
    }  # disks, counts, comment


@pytest.mark.parametrize("mapped", [False, True])
def test_a_bit_of_every_byte_of_a_zip(tmp_path: Path, mapped: bool) -> None:
    """A flipped bit is an error, or in a field that nothing depends on; no options are needed."""
    data, _ = small()
    path = tmp_path / "a"
    fields, loaded = harmless(data), set()
    chance = random.Random(0)
    for offset in range(len(data)):
        bit = 8 * offset + chance.randrange(8)
        broken = bytearray(data)
        broken[offset] ^= 1 << bit % 8
        path.write_bytes(broken)
        try:
            result = pc.load(path, mmap=mapped, verify=True if mapped else None)
        except pc.CheckpointError:
            continue
        assert is_small(result), bit
        loaded.add(bit // 8)
    assert loaded <= fields, sorted(loaded - fields)


def test_a_zip_is_checked_unless_it_is_mapped(tmp_path: Path) -> None:
    data, _ = small()
    path = tmp_path / "a"
    offset = data.index(np.arange(12, dtype="<f4").tobytes())
    path.write_bytes(data[: offset + 5] + b"\x40" + data[offset + 6 :])
    for options in ({}, {"verify": True}, {"verify": True, "mmap": True}):
        with pytest.raises(pc.CheckpointError, match="its crc differs; verify=False loads it"):
            pc.load(path, **options)
    with pytest.raises(pc.CheckpointError, match="its crc differs"):
        pc.load(io.BytesIO(path.read_bytes()))
    for options in ({"verify": False}, {"mmap": True}):
        assert pc.load(path, **options)["w"].tolist() != list(range(12))
    pickled = data.index(b"archive/data.pkl") + 64
    path.write_bytes(data[:pickled] + b"?" + data[pickled + 1 :])
    with pytest.raises(pc.CheckpointError, match=r"data\.pkl' of .* is damaged: its crc"):
        pc.load(path, mmap=True)  # small records are always checked


def test_a_zip_without_sums() -> None:
    """As PyTorch writes it after `set_crc32_options(False)`: all sums are 0."""
    data, _ = small()
    broken = bytearray(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        offset = archive.start_dir
        for info in archive.infolist():
            for at in (info.header_offset + 14, offset + 16):
                broken[at : at + 4] = bytes(4)
            offset += 46 + len(info.filename)
    assert is_small(pc.load(io.BytesIO(bytes(broken))))
    with pytest.raises(pc.CheckpointError, match=r"saved without checksums.*verify=False loads it"):
        pc.load(io.BytesIO(bytes(broken)), verify=True)


def test_a_file_of_the_older_format_has_no_sums() -> None:
    legacy = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
    with pytest.raises(pc.CheckpointError, match="older format, which has no checksums"):
        pc.load(io.BytesIO(legacy), verify=True)


MEMORY = """
import resource, sys
import plait_core as pc

pc.load(sys.argv[2])
limit = int(open("/proc/self/statm").read().split()[0]) * 4096 + 50_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for mapped in (False, True):
    try:
        pc.load(sys.argv[1], mmap=mapped)
    except pc.OutOfMemoryError as error:
        assert isinstance(error, MemoryError) and not isinstance(error, pc.CheckpointError)
        assert "not enough memory for" in str(error) and "damaged" not in str(error), error
    else:
        raise AssertionError("loaded")
"""


def test_too_little_memory_is_no_damage(tmp_path: Path) -> None:
    large, tiny = tmp_path / "large", tmp_path / "tiny"
    pc.save({"x": pc.ones(100_000_000, dtype=pc.uint8)}, large, format="torch")
    pc.save({"x": pc.ones(1)}, tiny, format="torch")
    subprocess.run([sys.executable, "-c", MEMORY, str(large), str(tiny)], check=True)


def test_random_bytes_after_known_beginnings() -> None:
    chance = random.Random(3)
    starts = [
        b"PK\x03\x04",
        b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.",
    ]
    for _ in range(FLIPS // 3):
        for start in starts:
            assert loads_or_complains(start + chance.randbytes(chance.randrange(200))) is None
