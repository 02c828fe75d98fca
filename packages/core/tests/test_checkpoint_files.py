"""The old checkpoint or the new one, or an error: kills, full disks, and every kind of damage.

PLAIT_CHECKPOINT_KILLS and PLAIT_CHECKPOINT_FLIPS set the numbers of tries.
"""

from __future__ import annotations

import errno
import io
import json
import os
import pickle
import random
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_core import _core
from plait_core._checkpoints import _atomic, _digest, _layout, _leftovers

KILLS = os.environ.get("PLAIT_CHECKPOINT_KILLS", "12")
FLIPS = int(os.environ.get("PLAIT_CHECKPOINT_FLIPS", "3000"))

# One process forks the children that save and are killed, so that plait is imported once.
KILLED = """
import os, random, signal, sys, time, warnings
import plait_core as pc

warnings.simplefilter("ignore")
path, count, shards = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "shards"
options = {"max_shard_size": 1_000_000} if shards else {}
chance = random.Random(0)


def save(version):
    value = {f"x{i}": pc.full((500_000,), version, dtype=pc.float32) for i in range(4)}
    pc.save({"version": version, **value}, path, **options)


start = time.perf_counter()
save(0)
longest = 1.3 * (time.perf_counter() - start) + 0.002
version, outcomes = 0, set()
for attempt in range(1, count + 1):
    child = os.fork()
    if child == 0:
        save(attempt)
        os._exit(0)
    time.sleep(chance.uniform(0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = pc.load(path)
    assert found["version"] in (version, attempt), (found["version"], version, attempt)
    outcomes.add(found["version"] == attempt)
    version = found["version"]
    assert all((found[f"x{i}"] == version).all() for i in range(4))
save(-1)
assert pc.load(path)["version"] == -1
left = sorted(os.listdir(os.path.dirname(path)))
assert not [name for name in left if name.endswith(".partial") and not shards], left
print(len(outcomes), len(left))
"""


@pytest.mark.parametrize("kind", ["file", "shards"])
@pytest.mark.long
def test_killed_at_any_time(tmp_path: Path, kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "a"), KILLS, kind],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


FULL = """
import os, resource, sys
import plait_core as pc

path = sys.argv[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    pc.save({"x": pc.ones(1_000_000)}, path)
except pc.CheckpointError as error:
    assert isinstance(error.__cause__, OSError) and "unchanged" in str(error), error
else:
    raise AssertionError("saved")
assert pc.load(path)["x"].tolist() == [1.0]
assert os.listdir(os.path.dirname(path)) == ["a"]
"""


def test_a_full_disk(tmp_path: Path) -> None:
    pc.save({"x": pc.ones(1)}, tmp_path / "a")
    subprocess.run([sys.executable, "-c", FULL, str(tmp_path / "a")], check=True)


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_write_that_fails(tmp_path: Path, monkeypatch: Any, after: int) -> None:
    path = tmp_path / "a"
    pc.save({"x": pc.ones(1)}, path)
    before, count, write = path.read_bytes(), 0, os.write

    def failing(file: int, data: Any) -> int:
        nonlocal count
        count += 1
        if count > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:100])

    monkeypatch.setattr(_atomic.os, "write", failing)
    with pytest.raises(pc.CheckpointError, match="No space left") as caught:
        pc.save({"x": pc.arange(1000.0)}, path)
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(pc.CheckpointError, match="No space left"):
        pc.save({"x": pc.arange(1000.0)}, path, max_shard_size=10)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_other_calls_that_fail(tmp_path: Path, monkeypatch: Any, name: str) -> None:
    path = tmp_path / "a"
    pc.save({"x": pc.ones(1)}, path)

    def failing(*args: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(_atomic.os, name, failing)
        with pytest.raises(pc.CheckpointError, match="Input/output error"):
            pc.save({"x": pc.zeros(5)}, path)
    assert pc.load(path)["x"].tolist() == [1.0] and os.listdir(tmp_path) == ["a"]


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    def interrupted(*args: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(_atomic.os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pc.save({}, tmp_path / "a")
    assert not os.listdir(tmp_path)


class Slow(io.RawIOBase):
    """A raw file that writes a few bytes at a time."""

    def __init__(self, most: int) -> None:
        self.data, self.most = bytearray(), most

    def write(self, data: Any) -> int:
        self.data += data[: self.most]
        return min(len(data), self.most)


def test_short_writes_are_continued(style: str) -> None:
    slow = Slow(37)
    pc.save({"x": pc.arange(100.0)}, slow, format=style)
    assert pc.load(io.BytesIO(bytes(slow.data)))["x"].tolist() == list(range(100))
    with pytest.raises(pc.CheckpointError, match="could not be written"):
        pc.save({}, Slow(0), format=style)


def test_folder_and_file_are_synchronised(tmp_path: Path, monkeypatch: Any) -> None:
    calls: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def noted(*args: Any, name: str = name, real: Any = real) -> Any:
            kind = "folder" if name == "fsync" and os.path.isdir(f"/proc/self/fd/{args[0]}") else ""
            calls.append(name + kind)
            return real(*args)

        monkeypatch.setattr(_atomic.os, name, noted)
    pc.save({}, tmp_path / "a")
    assert calls == ["fsync", "replace", "fsyncfolder"]


def test_leftovers_go_and_files_in_use_stay(tmp_path: Path) -> None:
    dead = tmp_path / ".a.01234567.partial"
    dead.write_bytes(b"x")
    with _atomic.Replacement(str(tmp_path / "a")) as other:
        pc.save({}, tmp_path / "a")
        assert not dead.exists() and os.path.exists(other._temporary)
        other.take_name()
    assert os.listdir(tmp_path) == ["a"]


def test_a_part_that_another_save_removes_keeps_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for token in ("01234567", "89abcdef"):
        (tmp_path / f"a-{token}-00000-of-00001.safetensors").write_bytes(b"x")
    removed: list[str] = []
    real = os.unlink

    def unlink(path: str) -> None:
        if not removed:
            real(path)  # the other save is faster
        removed.append(path)
        real(path)

    monkeypatch.setattr(_leftovers.os, "unlink", unlink)
    _leftovers.remove_leftovers(str(tmp_path), "a.json", "a")
    assert len(removed) == 2 and not os.listdir(tmp_path)


def test_mode_and_link_are_kept(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    pc.save({"n": 1}, path)
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
    path.chmod(0o640)
    link.symlink_to("a")
    pc.save({"n": 2}, link)
    assert link.is_symlink() and pc.load(path) == {"n": 2}
    assert path.stat().st_mode & 0o777 == 0o640


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# ---- damage


def small(style: str = "plait") -> tuple[bytes, dict[str, Any]]:
    value = {"w": pc.arange(12.0), "deep": [{"b": pc.ones(5, dtype=pc.int64)}], "n": (1, "x", 0.5)}
    file = io.BytesIO()
    pc.save(value, file, format=style)
    return file.getvalue(), value


def is_small(value: Any) -> bool:
    return (
        list(value) == ["w", "deep", "n"]
        and value["n"] == (1, "x", 0.5)
        and value["w"].tolist() == list(range(12))
        and value["deep"][0]["b"].tolist() == [1] * 5
    )


def test_cut_off_at_every_byte(tmp_path: Path, style: str) -> None:
    data, _ = small(style)
    path = tmp_path / "a"
    for length in range(len(data)):
        with pytest.raises(pc.CheckpointError):
            pc.load(io.BytesIO(data[:length]))
    for length in range(0, len(data), 97):
        path.write_bytes(data[:length])
        for mapped in (False, True):
            with pytest.raises(pc.CheckpointError):
                pc.load(path, mmap=mapped)
    with pytest.raises(pc.CheckpointError):
        pc.load(io.BytesIO(data + b"\0" * 65 if style == "plait" else data[1:]))


def test_a_flipped_bit_names_the_tensor() -> None:
    data, _ = small()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    spans = {k: v["data_offsets"] for k, v in header.items() if k != "__metadata__"}
    chance = random.Random(0)
    for attempt in range(FLIPS):
        bit = chance.randrange(8 * len(data)) if attempt >= 8 * start else attempt
        broken = bytearray(data)
        broken[bit // 8] ^= 1 << bit % 8
        with pytest.raises(pc.CheckpointError) as caught:
            pc.load(io.BytesIO(bytes(broken)))
        if bit // 8 >= start:
            offset = bit // 8 - start
            name = next(k for k, (begin, end) in spans.items() if begin <= offset < end)
            assert f"tensor {name!r} of" in str(caught.value)


def test_checks_can_be_turned_off(tmp_path: Path) -> None:
    data, _ = small()
    path = tmp_path / "a"
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(pc.CheckpointError, match="damaged"):
        pc.load(path)
    with pytest.raises(pc.CheckpointError, match="damaged"):
        pc.load(path, mmap=True, verify=True)
    assert set(pc.load(path, verify=False)) == set(pc.load(path, mmap=True)) == {"w", "deep", "n"}


def loads_or_complains(data: bytes, **options: Any) -> Any:
    """Return whether a file loads; the only exception allowed is the typed one."""
    try:
        return pc.load(io.BytesIO(data), **options)
    except pc.CheckpointError:
        return None


def test_bursts_in_the_header() -> None:
    """Damage that leaves the JSON valid must not make plait's file another program's."""
    data, _ = small()
    start = 8 + int.from_bytes(data[:8], "little")
    letters = b"abcdefghijklmnopqrstuvwxyz0123456789._ "
    chance = random.Random(0)
    for length in (1, 2, 5, 12, 13, 31, 64):
        for begin in range(start):
            broken = bytearray(data)
            for offset in range(begin, min(begin + length, start)):
                if chr(broken[offset]).isalnum():
                    broken[offset] = chance.choice(letters)
            if broken != data:
                with pytest.raises(pc.CheckpointError):
                    pc.load(io.BytesIO(bytes(broken)))


def test_many_bytes_of_the_header() -> None:
    data, _ = small()
    start = 8 + int.from_bytes(data[:8], "little")
    letters = [offset for offset in range(8, start) if chr(data[offset]).isalpha()]
    chance = random.Random(0)
    for attempt in range(FLIPS):
        broken = bytearray(data)
        some = letters if attempt % 2 else range(start)
        for offset in chance.choices(some, k=chance.randrange(1, 200)):
            broken[offset] = chance.choice(b"abcxyz _") if attempt % 2 else chance.randrange(256)
        if broken != data:
            with pytest.raises(pc.CheckpointError):
                pc.load(io.BytesIO(bytes(broken)))


def test_an_index_whose_marks_are_damaged(tmp_path: Path) -> None:
    index = tmp_path / "m.index.json"
    pc.save({"x": pc.ones(9), "n": 3}, index, max_shard_size=8)
    data = index.read_bytes()
    for begin in range(len(data) - 64):
        broken = bytearray(data)
        for offset in range(begin, begin + 64):
            if chr(broken[offset]).isalpha():
                broken[offset] = ord("z")
        index.write_bytes(broken)
        if broken != data:
            with pytest.raises(pc.CheckpointError):
                pc.load(index)


def test_files_of_the_version_before_load() -> None:
    """Files in plait's older format, without the mark at the end of the metadata."""
    data, _ = small()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    del header["__metadata__"]["plait.end"]
    header["__metadata__"]["plait.header"] = "0" * 32
    blank = json.dumps(header, separators=(",", ":"))
    text = blank.replace("0" * 32, _layout._digest(blank.encode()), 1).encode()
    assert is_small(pc.load(io.BytesIO(len(text).to_bytes(8, "little") + text + data[start:])))


def foreign(metadata: dict[str, str]) -> bytes:
    header = {
        "__metadata__": metadata,
        "x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]},
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + np.arange(3, dtype="<f4").tobytes()


@pytest.mark.parametrize(
    "metadata",
    [{"plait_version": "0.1"}, {"plaited": "x"}, {"note": "see plait.end"}, {"plait.x": "plait"}],
)
def test_metadata_of_others_that_speaks_of_plait(metadata: dict[str, str]) -> None:
    assert pc.load(io.BytesIO(foreign(metadata)))["x"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "metadata",
    [{"format": "plait"}, {"plait": "{}"}, {"plait.end": ""}, {"plait.header": "0" * 32}],
)
def test_marks_without_a_digest(metadata: dict[str, str], tmp_path: Path) -> None:
    """The file is damaged, or another program's; ``verify=False`` loads it."""
    path = tmp_path / "a"
    path.write_bytes(foreign(metadata))
    for verify in (None, True):
        with pytest.raises(pc.CheckpointError, match=r"its digest does not match.*another program"):
            pc.load(path, verify=verify)
    assert pc.load(path, verify=False)["x"].tolist() == [0.0, 1.0, 2.0]
    (tmp_path / "i.json").write_text(
        json.dumps({"__metadata__": metadata, "weight_map": {"x": "a"}})
    )
    with pytest.raises(pc.CheckpointError, match="its digest does not match"):
        pc.load(tmp_path / "i.json")
    assert pc.load(tmp_path / "i.json", verify=False)["x"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("end", ["new/", "new/.", "new/.."])
def test_names_of_folders(end: str, tmp_path: Path) -> None:
    for options in ({}, {"max_shard_size": 8}):
        with pytest.raises(IsADirectoryError, match=r"save: a file is required.*names a folder"):
            pc.save({"x": pc.ones(3)}, f"{tmp_path}/{end}", **options)
    assert not os.listdir(tmp_path)


def test_paths_with_a_null_character(tmp_path: Path) -> None:
    for options in ({}, {"max_shard_size": 8}):
        with pytest.raises(ValueError, match=r"save: a path must not hold a null.*a\\x00b"):
            pc.save({"x": pc.ones(3)}, tmp_path / "a\0b", **options)
    with pytest.raises(ValueError, match=r"load: a path must not hold a null.*a\\x00b"):
        pc.load(tmp_path / "a\0b")


def test_what_has_no_sums_says_so() -> None:
    header = b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    other = len(header).to_bytes(8, "little") + header + b"a"
    assert pc.load(io.BytesIO(other))["x"].tolist() == [97]
    with pytest.raises(pc.CheckpointError, match="has no digests, which verify=True asks for"):
        pc.load(io.BytesIO(other), verify=True)


def test_the_crc_is_the_one_of_zip_files(tmp_path: Path) -> None:
    chance = random.Random(0)
    path = tmp_path / "bytes"
    sizes = [*range(400), 4095, 4096, 12_287, 12_288, 12_289, 99_999, 3 * _digest.BLOCK + 17]
    for size in sizes:
        data = chance.randbytes(size)
        right = zlib.crc32(data)
        ways = _core._crc32_in_every_way(data)
        assert ways and set(ways) == {right} and _digest.crc_of(data) == right
    path.write_bytes(b"xyz" + data)
    target = np.zeros(len(data), np.uint8)
    with path.open("rb") as file:
        assert _core._read_into(file.fileno(), 3, target, "crc") == (len(data), right)
        assert target.tobytes() == data
        longer = np.zeros(len(data) + 1, np.uint8)
        assert _core._read_into(file.fileno(), 3, longer, "crc") == (len(data), None)
        with pytest.raises(ValueError, match="`kind` must be"):
            _core._read_into(file.fileno(), 0, target, "md5")


@pytest.mark.parametrize("kind", ["digest", "crc"])
def test_sums_of_many_pieces(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bytes"
    data = random.Random(0).randbytes(70 * _digest.BLOCK + 5)
    path.write_bytes(data)
    target = np.zeros(len(data), np.uint8)
    right = _digest.sum_of(np.frombuffer(data, np.uint8), kind)
    with path.open("rb") as file:
        assert _core._read_into(file.fileno(), 0, target, kind) == (len(data), right)
    assert target.tobytes() == data


# ---- errors of the operating system


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
    pc.save({"x": pc.ones(100_000_000, dtype=pc.uint8)}, large)
    pc.save({"x": pc.ones(1)}, tiny)
    subprocess.run([sys.executable, "-c", MEMORY, str(large), str(tiny)], check=True)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EACCES, PermissionError),
        (errno.EROFS, OSError),
        (errno.ENOSPC, OSError),
        (errno.EMFILE, OSError),
        (errno.ENAMETOOLONG, OSError),
    ],
)
def test_a_temporary_file_that_cannot_be_made(
    tmp_path: Path, monkeypatch: Any, number: int, kind: type[OSError]
) -> None:
    def refusing(*args: Any, **kwargs: Any) -> Any:
        raise OSError(number, os.strerror(number), str(args[0]))

    monkeypatch.setattr(_atomic.io, "FileIO", refusing)
    for options in ({}, {"max_shard_size": 9}):
        with pytest.raises(pc.CheckpointError) as caught:
            pc.save({"x": pc.ones(9)}, tmp_path / "name", **options)
        error, text = caught.value, str(caught.value)
        assert isinstance(error, kind) and error.errno == number
        assert isinstance(error.__cause__, OSError)
        assert str(tmp_path) in text and "name" in text and os.strerror(number) in text
    assert not os.listdir(tmp_path)


def test_wrong_paths_name_path_and_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cases: list[tuple[str, type[OSError]]] = [
        ("no/a", FileNotFoundError),
        ("file/a", NotADirectoryError),
        ("x" * 255, OSError),
        (".", IsADirectoryError),
    ]
    for name, kind in cases:
        for options in ({}, {"max_shard_size": 9}):
            with pytest.raises(kind) as caught:
                pc.save({}, tmp_path / name, **options)
            assert isinstance(caught.value, pc.CheckpointError)
            assert str(tmp_path) in str(caught.value), name
        if len(name) < 255:
            with pytest.raises(kind) as caught:
                pc.load(tmp_path / name)
            assert isinstance(caught.value, pc.CheckpointError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value) and str(again) == str(caught.value)
    assert again.errno == errno.EISDIR
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: Any) -> None:
    pc.save({"x": pc.ones(1)}, tmp_path / "a")

    def failing(*args: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(_core, "_read_into", failing)
    with pytest.raises(pc.CheckpointError, match=r"could not be read.*Input/output") as caught:
        pc.load(tmp_path / "a")
    assert isinstance(caught.value, OSError)


TOKENS = ["0", "-1", "1e9", "9" * 30, "null", "[]", "{}", '"x"', "true", "[[]]", '{"tensor":99}']
TOKENS += ['{"tensor":-1}', '{"array":"x"}', '{"bytes":5}', '{"dict":[[1]]}', '{"dict":[[[],1]]}']
TOKENS += ['{"scalar":["O","AAAA"]}', '{"pickle":0}', '{"ordered":{}}', '{"size":["a"]}', "NaN"]
TOKENS += ['{"sparse":[1,2,3,4]}', '{"nonsense":1}', '{"dtype":"float99"}', '{"int":"x"}']


def test_mutated_headers() -> None:
    """The digest is computed anew, so that the checks after it must find the damage."""
    value = {
        "x": [pc.arange(6.0), pc.arange(6.0).reshape(2, 3).t()],
        "a": np.arange(3),
        "s": pc.eye(2).to_sparse(),
        "b": (b"ab", np.float32(1), 2**70, {1}, pc.float32),
        "m": pc.zeros(2, device="meta"),
    }
    value["x"].append(value["x"][0][2:])
    file = io.BytesIO()
    pc.save(value, file)
    data = file.getvalue()
    start = 8 + int.from_bytes(data[:8], "little")
    text, body = data[8:start].rstrip().decode(), data[start:]
    chance = random.Random(2)
    loaded = 0
    for _ in range(FLIPS):
        header = mutated(text, chance)
        result = loads_or_complains(len(header).to_bytes(8, "little") + header + body)
        loaded += result is not None
    assert loaded < FLIPS


def mutated(text: str, chance: random.Random) -> bytes:
    """Replace a number, a text or some characters, in the header or in plait's part of it."""
    header = json.loads(text)
    inner = header["__metadata__"]["plait"]
    if chance.random() < 0.6:
        header["__metadata__"]["plait"] = changed(inner, chance)
        result = json.dumps(header, separators=(",", ":"))
    else:
        result = changed(text, chance)
    blank = re.sub('"plait.header":"[^"]*"', f'"plait.header":"{"0" * 32}"', result, count=1)
    return blank.replace("0" * 32, _layout._digest(blank.encode()), 1).encode()


def changed(text: str, chance: random.Random) -> str:
    kind = chance.randrange(3)
    match = list(re.finditer(r'-?\d+|"[^"]*"|\[[^\[\]]*\]|\{[^{}]*\}', text))
    at = chance.choice(match)
    if kind == 0:
        return text[: at.start()] + chance.choice(TOKENS) + text[at.end() :]
    if kind == 1:
        other = chance.choice(match)
        return text[: at.start()] + other.group() + text[at.end() :]
    offset = chance.randrange(len(text))
    return text[:offset] + chr(chance.randrange(32, 127)) + text[offset + 1 :]


def test_random_bytes_after_a_known_beginning() -> None:
    chance = random.Random(3)
    for _ in range(FLIPS // 3):
        data = b"\x10" + bytes(7) + b"{" + chance.randbytes(chance.randrange(200))
        assert loads_or_complains(data) is None


# ---- the digest


@pytest.mark.parametrize("size", [1, 8, 4072, 4073, 8144, 100_001, _digest.BLOCK, 1_500_003])
def test_the_digest_sees_every_change(size: int) -> None:
    chance = random.Random(size)
    data = np.frombuffer(chance.randbytes(size), np.uint8).copy()
    right = _digest.digest_of(data)
    for _ in range(40):
        broken = data.copy()
        offset = chance.randrange(size)
        burst = chance.choice((1, 1, 64, 4096))
        broken[offset : offset + burst] ^= np.uint8(chance.randrange(1, 256))
        assert _digest.digest_of(broken) != right
    for page in (512, 4096):
        if size > 4 * page:
            broken = data.copy()
            broken[:page], broken[page : 2 * page] = data[page : 2 * page], data[:page]
            assert _digest.digest_of(broken) != right
    assert _digest.digest_of(np.zeros(size, np.uint8)) != _digest.digest_of(np.ones(size, np.uint8))


def test_the_digest_agrees_with_the_note() -> None:
    """Compute the sums of the format with Python's ints."""
    factor, wrap = 0x9E3779B97F4A7C15, 2**64

    def mixed(h: int, x: int) -> int:
        h = (h ^ x) * factor % wrap
        return h ^ h >> 32

    for data in (random.Random(0).randbytes(_digest.BLOCK + 5000), b"abc", b""):
        sums = [0] * 509
        for begin in range(0, len(data), _digest.BLOCK):
            block = data[begin : begin + _digest.BLOCK]
            block += bytes(-len(block) % 8)
            words = [int.from_bytes(block[i : i + 8], "little") for i in range(0, len(block), 8)]
            columns = [sum(words[c::509]) for c in range(509)]
            sums = [(h * factor + s) % wrap for h, s in zip(sums, columns, strict=True)]
        lanes = [len(data), 0, 0, 0]
        for c, each in enumerate(sums):
            lanes[c % 4] = mixed(lanes[c % 4], each)
        h = lanes[0]
        for lane in lanes[1:]:
            h = mixed(h, lane)
        assert _digest.digest_of(np.frombuffer(data, np.uint8)) == f"{h:016x}"


def test_reading_and_digesting_agree_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    for size in (0, 1, 4072, 100_001, 3 * _digest.BLOCK + 17):
        data = random.Random(size).randbytes(size + 5)
        path.write_bytes(data)
        with path.open("rb") as file:
            target = np.zeros(size, np.uint8)
            count, text = _core._read_into(file.fileno(), 5, target, "digest")
            assert (count, target.tobytes()) == (size, data[5:])
            assert text == _digest.digest_of(target)
            assert _core._read_into(file.fileno(), 5, target, "") == (size, None)
            longer = np.zeros(size + 9, np.uint8)
            assert _core._read_into(file.fileno(), 5, longer, "digest") == (size, None)
    with pytest.raises(OSError, match="Bad file descriptor"):
        _core._read_into(-1, 0, np.zeros(1, np.uint8), "")
    with pytest.raises((TypeError, BufferError)):
        _core._read_into(0, 0, b"constant", "")


def test_a_header_cannot_ask_for_more_than_the_file_has() -> None:
    """Shapes that the bytes do not fill would make a few bytes a few terabytes."""
    file = io.BytesIO()
    pc.save({"x": pc.arange(6.0).reshape(2, 3).t(), "a": np.zeros((0, 2), "M8[s]")}, file)
    data = file.getvalue()
    start = 8 + int.from_bytes(data[:8], "little")
    text, body = data[8:start].rstrip().decode(), data[start:]
    for old, new in (
        ('\\"order\\":[1,3]', '\\"stride\\":[0,0],\\"shape\\":[1099511627776,3],\\"order\\":[1,1]'),
        ('\\"shape\\":[0,2]', '\\"shape\\":[1099511627776,2]'),
    ):
        assert old in text
        header = json.loads(text.replace(old, new))
        header["__metadata__"]["plait.header"] = "0" * 32
        wrong = json.dumps(header, separators=(",", ":"))
        right = wrong.replace("0" * 32, _layout._digest(wrong.encode()), 1).encode()
        with pytest.raises(pc.CheckpointError, match="damaged"):
            pc.load(io.BytesIO(len(right).to_bytes(8, "little") + right + body))
