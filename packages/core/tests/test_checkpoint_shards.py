"""Saves in several files: when they are stopped, the old checkpoint or the new one is complete."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc

CALLS = ("open", "write", "fsync", "replace", "unlink", "close", "stat", "lstat", "fstat", "fchmod")


def value(version: int) -> dict[str, Any]:
    return {"version": version, **{f"x{i}": pc.full((50,), float(version)) for i in range(3)}}


def save(version: int, index: Path, **options: Any) -> None:
    pc.save(value(version), index, max_shard_size=200, **options)


def version_of(index: Path) -> int:
    result = pc.load(index)
    version = result["version"]
    assert all(result[f"x{i}"].tolist() == [float(version)] * 50 for i in range(3))
    return int(version)


def own_files(index: Path) -> list[str]:
    """The names that a checkpoint at `index` consists of."""
    return sorted([index.name, *set(json.loads(index.read_text())["weight_map"].values())])


class Stopped:
    """Raises at the n-th call of the operating system: before it is made, or after."""

    def __init__(self, at: int, error: Callable[[], BaseException], after: bool) -> None:
        self.at, self.error, self.after, self.count = at, error, after, 0

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        for name in CALLS:
            patch.setattr(os, name, self.stopped(getattr(os, name)))
        patch.setattr(fcntl, "flock", self.stopped(fcntl.flock))

    def stopped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def made(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            stop = self.count == self.at
            if stop and not self.after:
                raise self.error()
            result = call(*args, **kwargs)
            if stop:
                raise self.error()
            return result

        return made


def failed() -> OSError:
    return OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("shards", [True, False], ids=["shards", "file"])
@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, failed])
def test_stopped_at_every_call(tmp_path: Path, error: Any, after: bool, shards: bool) -> None:
    index = tmp_path / "m.index.json"
    options = {"max_shard_size": 200} if shards else {}
    pc.save(value(0), index, **options)
    at, version = 0, 0
    while True:
        at += 1
        stop = Stopped(at, error, after)
        with pytest.MonkeyPatch.context() as patch:
            stop.patch(patch)
            try:
                pc.save(value(at), index, **options)
                text = ""
            except KeyboardInterrupt:
                text = "interrupted"
            except pc.CheckpointError as caught:
                text = str(caught)
        if stop.count < at:
            break
        result = version_of(index)
        assert result in (version, at), (at, text)
        if "unchanged" in text:
            assert result == version, (at, text)
        if "is written" in text or not text:
            assert result == at, (at, text)
        version = result
    assert at >= 16 and version_of(index) == at  # how many there are differs by Python
    pc.save(value(-1), index, **options)
    assert sorted(os.listdir(tmp_path)) == (own_files(index) if shards else [index.name])


def test_a_second_interrupt_in_the_cleaning(tmp_path: Path) -> None:
    index = tmp_path / "m.index.json"
    save(0, index)

    def replaced_and_interrupted(old: str, new: str, real: Any = os.replace) -> None:
        real(old, new)
        if new.endswith("m.index.json"):
            raise KeyboardInterrupt

    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", replaced_and_interrupted)
        patch.setattr(os, "unlink", interrupted)
        with pytest.raises(KeyboardInterrupt):
            save(1, index)
    assert version_of(index) == 1
    save(2, index)
    assert version_of(index) == 2 and sorted(os.listdir(tmp_path)) == own_files(index)


def test_a_folder_that_cannot_be_synchronised(tmp_path: Path) -> None:
    """Nothing is lost, and the error describes the state of the files."""
    index = tmp_path / "m.index.json"
    save(0, index)
    real, folders = os.fsync, 0

    def fsync(file: int) -> None:
        nonlocal folders
        if stat.S_ISDIR(os.fstat(file).st_mode):
            folders += 1
            if folders == 2:  # the first one is before the index takes its place
                raise failed()
        real(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(pc.CheckpointError, match=r"m\.index\.json is written.*power failure"):
            save(1, index)
    assert version_of(index) == 1 and sorted(os.listdir(tmp_path)) == own_files(index)


# ---- what is removed


def test_a_forged_index_removes_nothing(tmp_path: Path) -> None:
    index = tmp_path / "m.index.json"
    save(0, index)
    text = json.loads(index.read_text())
    victims = ["train.py", "m-00001-of-00002.safetensors", "m-x.safetensors", "other-" + "a" * 8]
    victims += ["n-01234567-00001-of-00001.safetensors", "m-0123456-00001-of-00001.safetensors"]
    for name in victims:
        (tmp_path / name).write_text("precious")
    for metadata in (text["__metadata__"], {"format": "plait"}, {"format": "pt"}, None):
        for names in (victims, ["../train.py"], ["."], [""], ["m.index.json"]):
            forged = {"__metadata__": metadata, "weight_map": dict(enumerate(names))}
            index.write_text(json.dumps(forged))
            save(1, index)
            assert version_of(index) == 1
            assert sorted(os.listdir(tmp_path)) == sorted([*own_files(index), *victims])


@pytest.mark.parametrize("name", ["best.index.json", "best", "m-best.json"])
def test_a_copy_of_an_index_keeps_its_parts(tmp_path: Path, name: str) -> None:
    index, copy = tmp_path / "m.index.json", tmp_path / name
    save(1, index)
    shutil.copy(index, copy)
    save(2, index)
    save(3, index)
    assert (version_of(copy), version_of(index)) == (1, 3)
    assert sorted(os.listdir(tmp_path)) == sorted({*own_files(index), *own_files(copy)})
    copy.unlink()
    save(4, index)
    assert sorted(os.listdir(tmp_path)) == own_files(index)


def test_indexes_with_one_stem_in_a_folder(tmp_path: Path) -> None:
    one, two = tmp_path / "m.index.json", tmp_path / "m.safetensors.index.json"
    for version in range(3):
        save(version, one)
        save(version + 10, two)
    assert (version_of(one), version_of(two)) == (2, 12)
    assert len(os.listdir(tmp_path)) == 8


@pytest.mark.parametrize("at", [0, 100, 2**20 - 30, 2**20 - 5, 2**20 + 1, 5 * 2**20])
@pytest.mark.parametrize("later", [False, True])
def test_an_index_that_was_written_anew_keeps_its_parts(
    at: int, later: bool, tmp_path: Path
) -> None:
    """Another program may order it differently; a name may cross the end of a read block."""
    index, copy = tmp_path / "m.index.json", tmp_path / "copy.json"
    save(1, index)
    weight_map = json.loads(index.read_text())["weight_map"]
    blank = {"a": " " * at}
    parts = {"weight_map": weight_map}
    copy.write_text(json.dumps(parts | blank if later else blank | parts, indent=2))
    references = set(weight_map.values())
    save(2, index)
    save(3, index)
    assert set(os.listdir(tmp_path)) == {*own_files(index), *references, "copy.json"}


def test_large_files_beside_are_read_once_and_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, log, block = tmp_path / "m.index.json", tmp_path / "log.json", 1 << 20
    with log.open("wb") as file:
        file.write(b'{"losses": [')
        file.truncate(50 * block)
    now, preadv, sizes = time.time_ns, os.preadv, []

    def counted(file: int, buffers: Any, offset: int) -> int:
        count = preadv(file, buffers, offset)
        sizes.append(count)
        return count

    monkeypatch.setattr(time, "time_ns", lambda: now() + 10**10)
    monkeypatch.setattr(os, "preadv", counted)
    save(0, index)
    tracemalloc.start()
    try:
        save(1, index)
        assert tracemalloc.get_traced_memory()[1] < 10 * block
    finally:
        tracemalloc.stop()
    assert 50 * block <= sum(sizes) < 52 * block and max(sizes) < 2 * block
    sizes.clear()
    save(2, index)
    assert sum(sizes) < block  # it has not changed
    with log.open("r+b") as file:
        file.write(json.dumps({"weight_map": {"x": own_files(index)[0]}}).encode())
    before = own_files(index)
    save(3, index)
    assert set(os.listdir(tmp_path)) == {*before, *own_files(index), "log.json"}


def test_a_file_that_takes_the_place_of_an_index(tmp_path: Path) -> None:
    """Its parts go, and those that a killed save left; those of other indexes stay."""
    index, other = tmp_path / "m.index.json", tmp_path / "m.safetensors.index.json"
    save(1, index)
    save(2, other)
    (tmp_path / "m-01234567-00001-of-00002.safetensors").write_bytes(b"x")
    pc.save(value(3), index)
    assert version_of(index) == 3 and version_of(other) == 2
    assert sorted(os.listdir(tmp_path)) == sorted([index.name, *own_files(other)])


def test_a_file_beside_sharded_checkpoints_keeps_parts_in_use(tmp_path: Path) -> None:
    """Their names may have the same beginning."""
    index, copy = tmp_path / "m.index.json", tmp_path / "best"
    save(1, index)
    shutil.copy(index, copy)
    save(2, index)
    before = set(os.listdir(tmp_path))
    pc.save(value(3), tmp_path / "m.safetensors")
    assert set(os.listdir(tmp_path)) == before | {"m.safetensors"}
    assert (version_of(copy), version_of(index)) == (1, 2)


def test_an_index_that_cannot_be_read_keeps_all(tmp_path: Path) -> None:
    index = tmp_path / "m.index.json"
    save(0, index)
    (tmp_path / "copy.json").symlink_to("copy.json")  # a loop
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    before = set(own_files(index))
    real = os.open

    def refusing(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith("copy.json"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", refusing)
        save(1, index)
    assert version_of(index) == 1 and before < set(os.listdir(tmp_path))
    save(2, index)
    assert len(os.listdir(tmp_path)) == 4 + 3


def test_without_locks_nothing_that_may_be_in_use_goes(tmp_path: Path) -> None:
    index = tmp_path / "m.index.json"
    save(0, index)
    token = "89abcdef"
    part = tmp_path / f"m-{token}-00001-of-00001.safetensors"
    part.write_bytes(b"x")
    (tmp_path / f".m.index.json.{token}.partial").write_bytes(b"")

    def refused(*args: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fcntl, "flock", refused)
        save(1, index)
    assert version_of(index) == 1 and part.exists()
    save(2, index)
    assert version_of(index) == 2 and sorted(os.listdir(tmp_path)) == own_files(index)


KILLED = """
import os, random, signal, sys, time
import plait_core as pc

index, count = sys.argv[1], int(sys.argv[2])
value = {f"x{i}": pc.ones(20_000) for i in range(6)}
pc.save(value, index, max_shard_size=80_000)
begin = time.perf_counter()
pc.save(value, index, max_shard_size=80_000)
longest = 1.2 * (time.perf_counter() - begin)
chance, most = random.Random(0), 0
for _ in range(count):
    child = os.fork()
    if child == 0:
        pc.save(value, index, max_shard_size=80_000)
        os._exit(0)
    time.sleep(chance.uniform(0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    most = max(most, len(os.listdir(os.path.dirname(index))))
print(most)
"""


@pytest.mark.long
def test_what_killed_saves_leave_is_removed(tmp_path: Path) -> None:
    """Each killed save removes the remains of the one before, so that the disk does not fill up."""
    index = tmp_path / "m.index.json"
    command = [sys.executable, "-c", KILLED, str(index), "200"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 3 * 7 + 2  # two checkpoints, one being written, two partial files
    save(5, index)
    assert version_of(index) == 5 and sorted(os.listdir(tmp_path)) == own_files(index)


# ---- readers


def test_a_save_between_index_and_parts(tmp_path: Path) -> None:
    index = tmp_path / "m.index.json"
    save(0, index)
    real, version = os.open, 0

    def opened(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        nonlocal version
        if "-of-" in str(path) and not flags & os.O_WRONLY and version < 3 and not saving:
            saving.append(1)
            version += 1
            save(version, index)
            saving.clear()
        return real(path, flags, *args, **kwargs)

    saving: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", opened)
        assert version_of(index) == 3


def test_a_part_that_is_missing(tmp_path: Path) -> None:
    index = tmp_path / "m.index.json"
    save(0, index)
    part = next(tmp_path.glob("*-00002-of-*"))
    part.unlink()
    with pytest.raises(FileNotFoundError, match=rf"is incomplete: {part.name}, which it names"):
        pc.load(index)
    with pytest.raises(pc.CheckpointError, match="incomplete"):
        pc.load(index, mmap=True)


def test_more_parts_than_files_may_be_open(tmp_path: Path) -> None:
    index = tmp_path / "m.index.json"
    code = (
        "import resource, sys, plait_core as pc\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
        "value = {str(i): pc.full((10,), float(i)) for i in range(400)}\n"
        "pc.save(value, sys.argv[1], max_shard_size=40)\n"
        "back = pc.load(sys.argv[1])\n"
        "assert all(back[str(i)].tolist() == [float(i)] * 10 for i in range(400))\n"
        "try:\n"
        "    pc.load(sys.argv[1], mmap=True)\n"
        "except OSError as error:  # a mapping keeps its file open before Python 3.13\n"
        "    assert sys.version_info < (3, 13) and 'Too many open files' in str(error)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(index)], check=True, timeout=120)
    assert len(os.listdir(tmp_path)) == 401


def test_a_save_while_parts_are_read_one_by_one(tmp_path: Path, monkeypatch: Any) -> None:
    """Parts that are opened again may be gone by then: the new checkpoint is read."""
    from plait_core._checkpoints import _weights

    monkeypatch.setattr(_weights._Parts, "_MOST_OPEN", 1)
    index = tmp_path / "m.index.json"
    save(0, index)
    real, done = _weights._restored, []

    def restored(*args: Any) -> Any:
        if not done:
            done.append(1)
            save(1, index)
        return real(*args)

    monkeypatch.setattr(_weights, "_restored", restored)
    assert version_of(index) == 1


def test_a_link_to_an_index(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    index, link = tmp_path / "there" / "m.index.json", tmp_path / "link.json"
    save(0, index)
    link.symlink_to(index)
    assert version_of(link) == 0
    save(1, link)
    assert link.is_symlink() and version_of(link) == version_of(index) == 1
    assert sorted(os.listdir(index.parent)) == own_files(index)


# ---- devices, pipes and sockets


@pytest.fixture
def no_waiting() -> Any:
    """Stop a call that waits."""

    def late(*args: Any) -> None:
        raise AssertionError("waits")

    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


@pytest.mark.usefixtures("no_waiting")
def test_pipes_devices_and_sockets(tmp_path: Path) -> None:
    pipe, index = tmp_path / "pipe", tmp_path / "m.json"
    os.mkfifo(pipe)
    for name in ("pipe", "null"):
        index.write_text(json.dumps({"weight_map": {"x": name}}))
        if name == "null":
            (tmp_path / name).symlink_to("/dev/null")
        with pytest.raises(pc.CheckpointError, match=r"a file is required.*(pipe|device)"):
            pc.load(index)
        with pytest.raises(pc.CheckpointError, match=r"a file is required.*(pipe|device)"):
            pc.load(tmp_path / name)
        with pytest.raises(pc.CheckpointError, match=r"(pipe|device).*does not replace"):
            pc.save({}, tmp_path / name)
        with pytest.raises(pc.CheckpointError, match=r"(pipe|device).*does not replace"):
            pc.save({}, tmp_path / name, max_shard_size=5)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert sorted(os.listdir(tmp_path)) == ["m.json", "null", "pipe"]


def test_an_open_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    save(3, tmp_path / "unused")
    pc.save(value(4), tmp_path / "a")
    command = ["cat", str(tmp_path / "a")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as cat:
        assert pc.load(cat.stdout)["version"] == 4


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_close_that_fails_leaves_no_part_open(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(3, tmp_path / "m")
    assert len(own_files(tmp_path / "m")) > 3
    close, closed = os.close, 0

    def failing(file: int) -> None:
        nonlocal closed
        name = os.readlink(f"/proc/self/fd/{file}")
        close(file)  # it is gone on Linux whatever is returned
        closed += name.startswith(str(tmp_path)) and "-of-" in name
        if closed == at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "close", failing)
    with pytest.raises(OSError, match="Input/output"):
        pc.load(tmp_path / "m")
    monkeypatch.undo()
    opened = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
    assert not [name for name in opened if name.startswith(str(tmp_path))]
    assert version_of(tmp_path / "m") == 3
