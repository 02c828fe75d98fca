"""Damaged and forged checkpoints of every format that `load` reads.

Each gives the value that was saved or a `CheckpointError`: no other value, no crash, no wait, no
memory beyond a bound, and no file of the folder is touched.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import random
import resource
import struct
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_distributed.checkpoint as dcp

LEGACY_HEAD = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19." + b"\x80\x02M\xe9\x03."
PATIENCE = 60.0  # seconds a load of some kilobytes may take on a loaded machine
MEMORY = 64 << 20  # bytes it may take
LETTERS = b"abcdefghijklmnopqrstuvwxyz0123456789 ._"


def value() -> dict[str, Any]:
    x = pc.arange(60.0).reshape(5, 12)
    return {
        "x": x,
        "t": x.t(),
        "deep": [{"b": pc.ones(5, dtype=pc.int64)}, (1, "text", 0.5, None, 2**70)],
        "bytes": b"abc" * 5,
    }


def is_value(result: Any) -> bool:
    right = value()
    return (
        isinstance(result, dict)
        and list(result) == list(right)
        and all(pc.equal(result[key], right[key]) for key in ("x", "t"))
        and result["deep"][0]["b"].tolist() == [1] * 5
        and result["deep"][1] == right["deep"][1]
        and result["bytes"] == right["bytes"]
    )


def flat() -> dict[str, Any]:
    return {"x": pc.arange(60.0), "b": pc.ones(5, dtype=pc.int64)}


def is_flat(result: Any) -> bool:
    right = flat()
    return (
        isinstance(result, dict)
        and set(result) == {"x", "b"}
        and all(pc.equal(result[key], right[key]) for key in right)
    )


def saved(form: str) -> bytes:
    file = io.BytesIO()
    pc.save(value(), file, format=form)
    return file.getvalue()


def of_others() -> bytes:
    """A safetensors file of another program: it has no digests."""
    x, b = np.arange(60, dtype="<f4").tobytes(), np.ones(5, "<i8").tobytes()
    header = {
        "__metadata__": {"format": "pt"},
        "x": {"dtype": "F32", "shape": [60], "data_offsets": [0, len(x)]},
        "b": {"dtype": "I64", "shape": [5], "data_offsets": [len(x), len(x) + len(b)]},
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + x + b


def legacy() -> bytes:
    """A file of PyTorch's older format: two storages after a pickle. It has no sums."""

    def word(text: str) -> bytes:
        return b"X" + struct.pack("<I", len(text)) + text.encode()

    def tensor(key: str, kind: str, count: int) -> bytes:
        storage = b"(" + word("storage") + b"ctorch\n" + kind.encode() + b"\n" + word(key)
        storage += word("cpu") + b"K" + bytes([count]) + b"NtQ"
        sizes = b"K\x00K" + bytes([count]) + b"\x85K\x01\x85\x89}t"
        return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + sizes + b"R"

    data = LEGACY_HEAD + b"\x80\x02}" + word("little_endian") + b"\x88s."
    data += b"\x80\x02}(" + word("x") + tensor("0", "FloatStorage", 60)
    data += word("b") + tensor("1", "LongStorage", 5) + b"u."
    data += b"\x80\x02](" + word("0") + word("1") + b"e."
    data += struct.pack("<q", 60) + np.arange(60, dtype="<f4").tobytes()
    return data + struct.pack("<q", 5) + np.ones(5, "<i8").tobytes()


def unaligned() -> bytes:
    """A safetensors file of another program whose tensors lie at odd bytes, one of float8."""
    eight, x, b = bytes([56, 64, 68]), np.arange(60, dtype="<f4").tobytes(), np.ones(5, "<i8")
    ends = np.cumsum([3, len(x), b.nbytes]).tolist()
    header = {
        "e": {"dtype": "F8_E4M3", "shape": [3], "data_offsets": [0, 3]},
        "x": {"dtype": "F32", "shape": [60], "data_offsets": [3, ends[1]]},
        "b": {"dtype": "I64", "shape": [5], "data_offsets": [ends[1], ends[2]]},
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + eight + x + b.tobytes()


def is_unaligned(result: Any) -> bool:
    eight = isinstance(result, dict) and result.pop("e", None)
    return is_flat(result) and eight.dtype is pc.float8_e4m3fn and eight.tolist() == [1.0, 2.0, 3.0]


def tar() -> bytes:
    """A file of PyTorch 0.1: records of storages and tensors, and a pickle of their keys."""

    def row(key: int, second: bytes, kind: str) -> bytes:
        return b"\x80\x02(K" + bytes([key]) + second + f"ctorch\n{kind}\n".encode() + b"t."

    storages = b"\x80\x02K\x02." + row(1, b"U\x03cpu", "FloatStorage") + struct.pack("<q", 60)
    storages += np.arange(60, dtype="<f4").tobytes() + row(2, b"U\x03cpu", "LongStorage")
    storages += struct.pack("<q", 5) + np.ones(5, "<i8").tobytes() + b"\x80\x02]."
    tensors = b"\x80\x02K\x02." + row(3, b"K\x01", "FloatTensor") + struct.pack("<4q", 1, 60, 1, 0)
    tensors += row(4, b"K\x02", "LongTensor") + struct.pack("<4q", 1, 5, 1, 0)
    records = {
        "storages": storages,
        "tensors": tensors,
        "pickle": b"\x80\x02}(U\x01xK\x03QU\x01bK\x04Qu.",
    }
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:") as archive:
        for name, data in records.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


# (bytes, is the value right, has it sums that make every other value an error)
FILES: dict[str, tuple[Callable[[], bytes], Callable[[Any], bool], bool]] = {
    "plait": (lambda: saved("plait"), is_value, True),
    "torch": (lambda: saved("torch"), is_value, True),
    "safetensors": (of_others, is_flat, False),
    "unaligned": (unaligned, is_unaligned, False),
    "legacy": (legacy, is_flat, False),
    "tar": (tar, is_flat, False),
}


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Cut, flip, overwrite, move or double something."""
    kind = rng.randrange(9)
    result = bytearray(data)
    place = rng.randrange(len(data))
    # half of the damage goes to the beginning, where what matters is
    place = place if rng.random() < 0.5 else min(place, rng.randrange(400))
    length = rng.choice((1, 2, 4, 8, 16, 64))
    if kind == 0:
        return data[: rng.randrange(len(data))]
    if kind == 1:
        for _ in range(rng.choice((1, 1, 2, 5))):
            result[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        result[place : place + length] = rng.randbytes(length)
    elif kind == 3:
        result[place : place + length] = bytes(length)
    elif kind == 4:
        for i in range(place, min(place + length, len(data))):
            if chr(result[i]).isalnum():
                result[i] = rng.choice(LETTERS)
    elif kind == 5:
        del result[place : place + length]
    elif kind == 6:
        result[place:place] = result[rng.randrange(len(data)) :][:length]
    elif kind == 7:
        other = rng.randrange(len(data))
        result[place : place + length] = data[other : other + length]
    else:
        number = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1))
        size = rng.choice((1, 2, 4, 8))
        result[place : place + size] = (number % 256**size).to_bytes(size, "little")
    return bytes(result)


def loaded(source: Any, **options: Any) -> Any:
    """What `load` gives, or the `CheckpointError` that it raises; nothing else is allowed."""
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        result: Any = pc.load(source, **options)
    except pc.CheckpointError as error:
        result = error
    seconds = time.monotonic() - begin
    assert seconds < PATIENCE, f"{seconds:.1f} s"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < MEMORY, f"{grown >> 20} MB"
    return result


@pytest.mark.parametrize("name", FILES)
def test_damage(rounds: Any, tmp_path: Path, name: str) -> None:
    make, is_right, has_sums = FILES[name]
    data, path = make(), tmp_path / "a"
    path.write_bytes(data)
    assert is_right(pc.load(path))
    for rng in rounds:
        for _ in range(20):
            broken = damaged(data, rng)
            path.write_bytes(broken)
            mapped = rng.random() < 0.2 and name not in ("legacy", "tar")
            options: dict[str, Any] = {"mmap": True, "verify": has_sums or None} if mapped else {}
            result = loaded(path if rng.random() < 0.5 or mapped else io.BytesIO(broken), **options)
            if has_sums:
                assert isinstance(result, pc.CheckpointError) or is_right(result)
            assert path.read_bytes() == broken
    assert os.listdir(tmp_path) == ["a"]


def load_folder(folder: Path) -> Any:
    """Fill a state from a checkpoint of plait_distributed; return its error, if it has one."""
    result = {name: pc.zeros_like(x) for name, x in flat().items()} | {"more": None}
    begin = time.monotonic()
    try:
        dcp.load(result, checkpoint_id=folder, no_dist=True)
    except dcp.CheckpointException as error:
        return error
    finally:
        assert time.monotonic() - begin < PATIENCE
    return result


def test_damaged_folders(rounds: Any, tmp_path: Path) -> None:
    """Index and part of a checkpoint of plait_distributed: the value or an error."""
    dcp.save({**flat(), "more": ["a", 5]}, checkpoint_id=tmp_path, no_dist=True)
    names = sorted(os.listdir(tmp_path))
    whole = {name: (tmp_path / name).read_bytes() for name in names}
    for rng in rounds:
        for _ in range(20):
            name = rng.choice(names)
            broken = damaged(whole[name], rng)
            (tmp_path / name).write_bytes(broken)
            result = load_folder(tmp_path)
            if isinstance(result, dict):
                assert result.pop("more") == ["a", 5] and is_flat(result)
            assert (tmp_path / name).read_bytes() == broken
            (tmp_path / name).write_bytes(whole[name])
    assert sorted(os.listdir(tmp_path)) == names


TOKENS = ["0", "-1", "1e9", "9" * 30, "null", "[]", "{}", '"x"', "true", "[[]]", '{"tensor":99}']
TOKENS += ['{"tensor":-1}', '{"array":"x"}', '{"bytes":5}', '{"dict":[[1]]}', '{"dict":[[[],1]]}']
TOKENS += ['{"scalar":["O","AAAA"]}', '{"pickle":0}', '{"ordered":{}}', "NaN", "[9007199254740993]"]
TOKENS += ['{"range":[0,9,0]}', '{"size":["a"]}', '{"sparse":[1,2,3,4]}', '{"dtype":"float99"}']


def forged(rng: random.Random, text: str) -> bytes:
    """Change words of a header of plait's, and give it the digest that it must have."""
    header = json.loads(text)
    metadata = header["__metadata__"]
    for _ in range(rng.randrange(1, 4)):
        if rng.random() < 0.7 and isinstance(metadata.get("plait"), str):
            metadata["plait"] = changed(rng, metadata["plait"])
        else:
            table = header[rng.choice(list(header))]
            if isinstance(table, dict) and table:
                table[rng.choice(list(table))] = rng.choice((0, -1, 2**62, "x", [], [2**40], None))
    for table in (metadata, header):
        for key in list(table):
            if rng.random() < 0.02:
                del table[key]
    if isinstance(header.get("__metadata__"), dict):
        metadata["plait.header"] = "0" * 32
    blank = json.dumps(header, separators=(",", ":"))
    digest = hashlib.blake2b(blank.encode(), digest_size=16).hexdigest()
    return blank.replace("0" * 32, digest, 1).encode()


def changed(rng: random.Random, text: str) -> str:
    cuts = [i for i, c in enumerate(text) if c in '[]{},:"']
    if not cuts:
        return rng.choice(TOKENS)
    begin = rng.choice(cuts)
    end = rng.choice([i for i in cuts if i >= begin][:6])
    other = rng.choice(cuts)
    word = rng.choice([rng.choice(TOKENS), text[other : other + rng.randrange(12)]])
    return text[:begin] + word + text[end:]


def test_forged_headers(rounds: Any) -> None:
    """The digest is right, so the checks behind it have to hold; any value may come out."""
    data = saved("plait")
    start = 8 + int.from_bytes(data[:8], "little")
    for rng in rounds:
        for _ in range(20):
            text = forged(rng, data[8:start].decode())
            loaded(io.BytesIO(len(text).to_bytes(8, "little") + text + data[start:]))


def test_forged_indexes(rounds: Any, tmp_path: Path) -> None:
    """Neither `load` nor the next `save` touches a file because an index says so."""
    index = tmp_path / "m.index.json"
    pc.save(value(), index, max_shard_size=100)
    text, parts = index.read_text(), sorted(set(os.listdir(tmp_path)) - {index.name})
    victims = [
        "train.py",
        "m-00001-of-00002.safetensors",
        "other-0123abcd-00001-of-00001.safetensors",
    ]
    for name in victims:
        (tmp_path / name).write_text("precious")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("link")
    (tmp_path / "folder").mkdir()
    names = [*victims, *parts, "pipe", "link", "folder", "..", ".", "", "a/b", "\0", "x" * 300]
    for count, rng in enumerate(rounds):
        broken = json.loads(text)
        for _ in range(rng.randrange(1, 4)):
            kind = rng.randrange(4)
            if kind == 0:
                broken["weight_map"][rng.choice(["x", "new"])] = rng.choice(names)
            elif kind == 1:
                broken["weight_map"] = rng.choice(
                    ([], {}, None, {"x": 1}, dict.fromkeys("ab", "x"))
                )
            elif kind == 2:
                broken.pop(rng.choice(list(broken)), None)
            else:
                broken["__metadata__"] = rng.choice(({"format": "plait"}, {}, {"format": "pt"}))
            if not isinstance(broken.get("weight_map"), dict):
                broken["weight_map"] = {}
        index.write_text(json.dumps(broken))
        if rng.random() < 0.5:
            index.write_bytes(damaged(text.encode(), rng))
            result = loaded(index)
            assert isinstance(result, pc.CheckpointError) or is_value(result)
        else:
            loaded(index)
        if count % 4 == 0:
            pc.save(value(), index, max_shard_size=100)
            assert is_value(pc.load(index))
            text, parts = (
                index.read_text(),
                sorted(set(json.loads(index.read_text())["weight_map"].values())),
            )
            names = [*victims, *parts, "pipe", "link", "folder", "..", ".", "", "\0"]
        assert all((tmp_path / name).read_text() == "precious" for name in victims)
        assert {"pipe", "link", "folder", *victims} <= set(os.listdir(tmp_path))


def test_forged_folders(rounds: Any, tmp_path: Path) -> None:
    """An index of plait_distributed with its digest: values or errors, and no file beside it."""
    from plait_core._checkpoints import _folders

    folder = tmp_path / "folder"
    dcp.save({**flat(), "more": ["a", 5]}, checkpoint_id=folder, no_dist=True)
    (part,) = folder.glob("*.safetensors")
    (tmp_path / part.name).write_bytes(part.read_bytes())  # what must not be read
    before = (folder / ".metadata").read_text()
    opened: list[str] = []

    class Part(_folders.Part):
        def __init__(self, path: str) -> None:
            opened.append(path)
            super().__init__(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_folders, "Part", Part)
        for rng in rounds:
            for _ in range(20):
                text = before
                if rng.random() < 0.3:
                    name = rng.choice(("../", str(tmp_path) + "/", "./", "x/../../")) + part.name
                    text = text.replace(part.name, name)
                (folder / ".metadata").write_bytes(forged(rng, text))
                load_folder(folder)
                assert {os.path.dirname(path) for path in opened} <= {str(folder)}
    assert sorted(os.listdir(tmp_path)) == sorted(["folder", part.name])


def test_the_error_can_be_sent(rounds: Any, tmp_path: Path) -> None:
    """A worker's error reaches its parent as what it was."""
    for rng in rounds:
        path = tmp_path / rng.choice(("none", "no/file", ".", "x" * 300))
        result = loaded(path)
        again = pickle.loads(pickle.dumps(result))
        assert type(again) is type(result) and str(again) == str(result)
        assert isinstance(again, OSError) and again.errno == result.errno
