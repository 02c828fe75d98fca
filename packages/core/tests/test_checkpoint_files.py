"""The old checkpoint or the new one, or an error: kills, full disks, and every kind of damage.

The numbers of tries grow with the environment: PLAIT_CHECKPOINT_KILLS, PLAIT_CHECKPOINT_FLIPS.
"""

from __future__ import annotations

import errno
import io
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_core import _core
from plait_core._checkpoints import _atomic, _digest, _layout

KILLS = os.environ.get("PLAIT_CHECKPOINT_KILLS", "12")
FLIPS = int(os.environ.get("PLAIT_CHECKPOINT_FLIPS", "3000"))
FORMATS = ("plait", "torch")

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
for form in ("plait", "torch"):
    try:
        pc.save({"x": pc.ones(1_000_000)}, path, format=form)
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


@pytest.mark.parametrize("form", FORMATS)
def test_short_writes_are_continued(form: str) -> None:
    slow = Slow(37)
    pc.save({"x": pc.arange(100.0)}, slow, format=form)
    assert pc.load(io.BytesIO(bytes(slow.data)))["x"].tolist() == list(range(100))
    with pytest.raises(pc.CheckpointError, match="could not be written"):
        pc.save({}, Slow(0), format=form)


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


def small(form: str) -> tuple[bytes, dict[str, Any]]:
    value = {"w": pc.arange(12.0), "deep": [{"b": pc.ones(5, dtype=pc.int64)}], "n": (1, "x", 0.5)}
    file = io.BytesIO()
    pc.save(value, file, format=form)
    return file.getvalue(), value


def is_small(value: Any) -> bool:
    return (
        list(value) == ["w", "deep", "n"]
        and value["n"] == (1, "x", 0.5)
        and value["w"].tolist() == list(range(12))
        and value["deep"][0]["b"].tolist() == [1] * 5
    )


@pytest.mark.parametrize("form", FORMATS)
def test_cut_off_at_every_byte(form: str, tmp_path: Path) -> None:
    data, _ = small(form)
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
        pc.load(io.BytesIO(data + b"\0" * 65 if form == "plait" else data[1:]))


def test_a_flipped_bit_names_the_tensor() -> None:
    data, _ = small("plait")
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    places = {k: v["data_offsets"] for k, v in header.items() if k != "__metadata__"}
    chance = random.Random(0)
    for attempt in range(FLIPS):
        bit = chance.randrange(8 * len(data)) if attempt >= 8 * start else attempt
        broken = bytearray(data)
        broken[bit // 8] ^= 1 << bit % 8
        with pytest.raises(pc.CheckpointError) as caught:
            pc.load(io.BytesIO(bytes(broken)))
        if bit // 8 >= start:
            place = bit // 8 - start
            name = next(k for k, (begin, end) in places.items() if begin <= place < end)
            assert f"tensor {name!r} of" in str(caught.value)


def test_unchecked_when_asked_for(tmp_path: Path) -> None:
    data, _ = small("plait")
    path = tmp_path / "a"
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(pc.CheckpointError, match="damaged"):
        pc.load(path)
    with pytest.raises(pc.CheckpointError, match="damaged"):
        pc.load(path, mmap=True, verify=True)
    assert set(pc.load(path, verify=False)) == set(pc.load(path, mmap=True)) == {"w", "deep", "n"}


def loads_or_complains(data: bytes, **options: Any) -> Any:
    """The only exception that damage may give is the typed one."""
    try:
        return pc.load(io.BytesIO(data), **options)
    except pc.CheckpointError:
        return None


def test_flipped_bits_in_a_zip() -> None:
    data, _ = small("torch")
    chance = random.Random(1)
    for _ in range(FLIPS):
        broken = bytearray(data)
        bit = chance.randrange(8 * len(data))
        broken[bit // 8] ^= 1 << bit % 8
        loads_or_complains(bytes(broken))
        checked = loads_or_complains(bytes(broken), verify=True)
        assert checked is None or is_small(checked), bit


TOKENS = ["0", "-1", "1e9", "9" * 30, "null", "[]", "{}", '"x"', "true", "[[]]", '{"tensor":99}']
TOKENS += ['{"tensor":-1}', '{"array":"x"}', '{"bytes":5}', '{"dict":[[1]]}', '{"dict":[[[],1]]}']
TOKENS += ['{"scalar":["O","AAAA"]}', '{"pickle":0}', '{"ordered":{}}', '{"size":["a"]}', "NaN"]
TOKENS += ['{"sparse":[1,2,3,4]}', '{"nonsense":1}', '{"dtype":"float99"}', '{"int":"x"}']


def test_mutated_headers() -> None:
    """With a digest that is right again, so that the checks behind it have to hold."""
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
        found = loads_or_complains(len(header).to_bytes(8, "little") + header + body)
        loaded += found is not None
    assert loaded < FLIPS


def mutated(text: str, chance: random.Random) -> bytes:
    """Replace a number, a text or some characters, in the header or in what plait wrote in it."""
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
    found = list(re.finditer(r'-?\d+|"[^"]*"|\[[^\[\]]*\]|\{[^{}]*\}', text))
    at = chance.choice(found)
    if kind == 0:
        return text[: at.start()] + chance.choice(TOKENS) + text[at.end() :]
    if kind == 1:
        other = chance.choice(found)
        return text[: at.start()] + other.group() + text[at.end() :]
    place = chance.randrange(len(text))
    return text[:place] + chr(chance.randrange(32, 127)) + text[place + 1 :]


def test_random_bytes_after_known_beginnings() -> None:
    chance = random.Random(3)
    starts = [
        b"PK\x03\x04",
        b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.",
        b"\x10" + bytes(7) + b"{",
    ]
    for _ in range(FLIPS // 3):
        for start in starts:
            assert loads_or_complains(start + chance.randbytes(chance.randrange(200))) is None


# ---- the digest


@pytest.mark.parametrize("size", [1, 8, 4072, 4073, 8144, 100_001, _digest.BLOCK, 1_500_003])
def test_the_digest_sees_every_change(size: int) -> None:
    chance = random.Random(size)
    data = np.frombuffer(chance.randbytes(size), np.uint8).copy()
    right = _digest.digest_of(data)
    for _ in range(40):
        broken = data.copy()
        place = chance.randrange(size)
        burst = chance.choice((1, 1, 64, 4096))
        broken[place : place + burst] ^= np.uint8(chance.randrange(1, 256))
        assert _digest.digest_of(broken) != right
    for page in (512, 4096):
        if size > 4 * page:
            broken = data.copy()
            broken[:page], broken[page : 2 * page] = data[page : 2 * page], data[:page]
            assert _digest.digest_of(broken) != right
    assert _digest.digest_of(np.zeros(size, np.uint8)) != _digest.digest_of(np.ones(size, np.uint8))


def test_the_digest_is_what_the_note_says() -> None:
    """The format: the sums by hand, from Python's ints."""
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


def test_reading_and_digesting_give_what_the_file_holds(tmp_path: Path) -> None:
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
