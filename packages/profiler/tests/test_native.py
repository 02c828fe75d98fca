"""The profiler's own files: what comes back, and what is said of damaged ones."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
import synthetic

from plait_profiler import _native
from plait_profiler._native import load_recording, save_recording
from plait_profiler._recording import ROW, Context, Kind, Recording, Signature


def assert_equal(one: Recording, other: Recording) -> None:
    assert one.rows.dtype == other.rows.dtype
    assert np.array_equal(one.rows, other.rows)
    for name in ("threads", "dropped", "begin", "end", "clock"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("signatures", "contexts", "reserved"):
        assert list(getattr(one, name)) == list(getattr(other, name))


@pytest.mark.parametrize("events", [300, 2 * _native.ROWS_PER_BLOCK + 1000])
def test_a_recording_can_be_loaded(tmp_path: Path, events: int) -> None:
    recording = synthetic.recording(events, processes=2)
    save_recording(recording, tmp_path / "a.plaitprof")
    assert_equal(load_recording(tmp_path / "a.plaitprof"), recording)


def test_any_numbers_are_restored(tmp_path: Path) -> None:
    octets = np.random.default_rng(0).integers(0, 256, 1000 * ROW.itemsize, dtype=np.uint8)
    rows = octets.view(ROW)
    rows["signature"] = rows["context"] = 0
    recording = Recording(rows, [Signature("", Kind.OP)])
    save_recording(recording, tmp_path / "a.plaitprof")
    assert_equal(load_recording(tmp_path / "a.plaitprof"), recording)


def test_signatures_keep_their_types(tmp_path: Path) -> None:
    tensor = ("complex64", (2, 0), (0, 1))
    inputs = (tensor, [tensor, ("int8", (), None)], [], (), (1, 2), 1 + 2j, 0.1, "a", None, True)
    signature = Signature("ƒ\n", Kind.COLLECTIVE, inputs, (tensor,), 2**70, 3, 4, True)
    context = Context("Net.x", "Linear", (("a.py", 1, "f"), ("b.py", 2, "<module>")))
    recording = Recording(
        np.zeros(0, ROW),
        [signature],
        [Context(), context],
        {(1, 2): "main"},
        {Kind.OP: 7},
        5,
        6,
        -7,
        [(1, 2)],
    )
    save_recording(recording, tmp_path / "a.plaitprof")
    loaded = load_recording(tmp_path / "a.plaitprof")
    assert_equal(loaded, recording)
    assert repr(loaded.signatures) == repr([signature])  # 1 is not True here


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.plaitprof"
    save_recording(synthetic.recording(1, calls=2), path)
    return path


def test_every_truncation_is_found(small: Path) -> None:
    whole = small.read_bytes()
    for length in range(len(whole)):
        small.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"load_recording: '.*small\.plaitprof' "):
            load_recording(small)


def test_every_changed_byte_is_found(small: Path) -> None:
    whole = small.read_bytes()
    for at in range(len(whole)):
        small.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        with pytest.raises(ValueError, match=r"load_recording: '.*small\.plaitprof' "):
            load_recording(small)


def test_bytes_behind_the_end(small: Path) -> None:
    small.write_bytes(small.read_bytes() + b"x")
    with pytest.raises(ValueError, match="bytes behind its end"):
        load_recording(small)


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"trace\.json' is not a recording"):
        load_recording(path)
    with pytest.raises(FileNotFoundError):
        load_recording(tmp_path / "absent")


def test_a_newer_version(tmp_path: Path) -> None:
    header = json.dumps({"version": 2}).encode()
    path = tmp_path / "new.plaitprof"
    checked = _native.LENGTHS.pack(len(header), zlib.crc32(header)) + header
    path.write_bytes(_native.MAGIC + checked)
    with pytest.raises(ValueError, match=r"new\.plaitprof' has version 2 .* reads 1"):
        load_recording(path)


def test_rows_with_unknown_names(tmp_path: Path) -> None:
    path = tmp_path / "a.plaitprof"
    for column in ("signature", "context"):
        rows = np.zeros(2, ROW)
        rows[column][1] = 1
        save_recording(Recording(rows, [Signature("", Kind.OP)]), path)
        with pytest.raises(ValueError, match=f"a row has a {column} that is not in the file"):
            load_recording(path)


def test_a_file_is_smaller_than_its_rows(tmp_path: Path) -> None:
    recording = synthetic.recording(20000)
    save_recording(recording, tmp_path / "a.plaitprof")
    assert (tmp_path / "a.plaitprof").stat().st_size < recording.rows.nbytes / 4


@pytest.mark.parametrize("header", [b"no JSON", b"[]", b"{}", b'{"version": 1, "rows": -1}'])
def test_a_header_that_no_writer_made(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "made.plaitprof"
    tables = zlib.compress(b"{}")
    blocks = [struct.pack("<II", len(each), zlib.crc32(each)) + each for each in (header, tables)]
    path.write_bytes(b"plaitprf" + b"".join(blocks))
    with pytest.raises(ValueError, match=r"load_recording: .*made\.plaitprof' is damaged"):
        load_recording(path)


def test_blocks_that_unpack_to_too_much(tmp_path: Path) -> None:
    """They take no more memory than the header says."""
    path, bomb = tmp_path / "bomb.plaitprof", zlib.compress(bytes(100 << 20), 1)

    def put(data: bytes) -> bytes:
        return _native.LENGTHS.pack(len(data), zlib.crc32(data)) + data

    tables = json.dumps(_native._tables(Recording(np.zeros(0, ROW), []))).encode()
    header = {"version": 1, "rows": 1, "columns": [[name, "u8"] for name in ROW.names or ()]}
    for message, blocks in [
        ({"tables": len(tables)}, [bomb]),
        ({"tables": -1}, [bomb]),
        ({"tables": len(tables)}, [zlib.compress(tables), *[bomb] * len(ROW)]),
        ({"rows": 10**12, "tables": len(tables)}, [zlib.compress(tables)]),
    ]:
        text = json.dumps(header | message).encode()
        path.write_bytes(_native.MAGIC + put(text) + b"".join(map(put, blocks)))
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match="is damaged"):
                _native.load_recording(path)
            assert tracemalloc.get_traced_memory()[1] < 50 << 20
        finally:
            tracemalloc.stop()
