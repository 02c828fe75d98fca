"""A folder of a checkpoint always has the old checkpoint or the new one, after any fault."""

from __future__ import annotations

import concurrent.futures
import errno
import fcntl
import functools
import json
import multiprocessing
import os
import queue
import random
import re
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
import plait_distributed.checkpoint as dcp
from plait_distributed.checkpoint import CheckpointException, _boxes
from plait_distributed.checkpoint._background import wait_for_saves, write_later
from plait_distributed.device_mesh import init_device_mesh
from plait_distributed.tensor import Replicate, Shard, distribute_tensor

sys.path.insert(0, str(Path(__file__).parent))
import interrupted_ranks

CALLS = ("open", "write", "fsync", "replace", "unlink", "close", "stat", "lstat", "fstat", "fchmod")


def state(version: int) -> dict[str, Any]:
    return {"version": version, **{f"x{i}": pc.full((50,), float(version)) for i in range(3)}}


def save(version: int, folder: Path, **options: Any) -> None:
    dcp.save(state(version), checkpoint_id=folder, no_dist=True, **options)


def version_of(folder: Path) -> int:
    result = state(-7)
    dcp.load(result, checkpoint_id=folder, no_dist=True)
    version = int(result["version"])
    for i in range(3):
        assert result[f"x{i}"].tolist() == [float(version)] * 50
    return version


def files_of(folder: Path) -> list[str]:
    index = dcp.FileSystemReader(folder).read_metadata()
    return sorted([".metadata", *index["files"]])


class Stopped:
    """Raises at the n-th call of the operating system, or does something: before it is made, or
    after.
    """

    def __init__(
        self, at: int, error: Callable[[], BaseException], after: bool, act: Any = None
    ) -> None:
        self.at, self.error, self.after, self.count = at, error, after, 0
        self._act = act

    def stop(self) -> None:
        """Raise the error, or act."""
        if self._act is None:
            raise self.error()
        self._act()

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        for name in CALLS:
            patch.setattr(os, name, self.stopped(getattr(os, name)))
        patch.setattr(fcntl, "flock", self.stopped(fcntl.flock))

    def stopped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            stop = self.count == self.at
            if stop and not self.after:
                self.stop()
            result = call(*args, **kwargs)
            if stop and self.after:
                self.stop()
            return result

        return counted


def failed() -> OSError:
    return OSError(errno.EIO, "Input/output error")


def save_later(version: int, folder: Path) -> None:
    dcp.async_save(state(version), checkpoint_id=folder, no_dist=True).result()


@pytest.mark.parametrize(
    ("error", "after", "work"),
    [
        (KeyboardInterrupt, True, save),
        (KeyboardInterrupt, False, save_later),
        (failed, True, save_later),
        (failed, False, save),
    ],
)
def test_stopped_at_every_call(tmp_path: Path, error: Any, after: bool, work: Any) -> None:
    save(0, tmp_path)
    at, version = 0, 0
    while True:
        at += 1
        stop = Stopped(at, error, after)
        with pytest.MonkeyPatch.context() as patch:
            stop.patch(patch)
            try:
                work(at, tmp_path)
                text = ""
            except KeyboardInterrupt as caught:
                text = f"interrupted {caught}"
            except CheckpointException as caught:
                text = str(caught)
        if stop.count < at:
            break
        result = version_of(tmp_path)
        assert result in (version, at), (at, text)
        if "unchanged" in text:
            assert result == version, (at, text)
        if "in its place" in text or not text:
            assert result == at, (at, text)
        version = result
    assert at >= 16 and version_of(tmp_path) == at
    save(-1, tmp_path)
    assert sorted(os.listdir(tmp_path)) == files_of(tmp_path)


def shared(rank: int, version: int) -> dict[str, Any]:
    mesh = init_device_mesh("cpu", (2,))
    x = distribute_tensor(pc.full((6,), float(version)), mesh, [Shard(0)])
    return {"x": x, "version": version, f"own {rank}": pc.full((3,), float(version))}


def shared_version(folder: Path) -> int:
    """Return the version of what two ranks saved, all of whose parts have it."""
    results = {"x": pc.zeros(6), "version": 0, "own 0": pc.zeros(3), "own 1": pc.zeros(3)}
    dcp.load(results, checkpoint_id=folder, no_dist=True)
    version = int(results["version"])
    assert {*results["x"].tolist(), *results["own 0"].tolist(), *results["own 1"].tolist()} == {
        version
    }
    return version


@pytest.mark.parametrize("in_rank", [0, 1])
def test_one_of_two_ranks_is_stopped_at_every_call(
    outcomes: Any, tmp_path: Path, in_rank: int
) -> None:
    """The ranks of a round save five times, and one of them gets an error or an interrupt."""
    step, at = 5, 0
    while True:

        def work(rank: int, first: int = at) -> tuple[int, list[str]]:
            count, wrong = 0, []
            for at in range(first, first + step):
                dist.barrier()
                before = shared_version(tmp_path) if at else 0
                dist.barrier()
                stop = Stopped(at + 1, failed, after=bool(at % 2))
                text = ""
                with pytest.MonkeyPatch.context() as patch:
                    if rank == in_rank and at:
                        stop.patch(patch)
                    try:
                        dcp.save(shared(rank, at + 1), checkpoint_id=tmp_path)
                    except CheckpointException as caught:
                        text = str(caught)
                dist.barrier()
                result = shared_version(tmp_path)
                fits = result in (before, at + 1)
                fits = fits and not ("unchanged" in text and result != before)
                fits = fits and not (("in its place" in text or not text) and result != at + 1)
                if not fits:
                    wrong.append(f"call {at + 1}: {before}, then {result}: {text}")
                count = stop.count if rank == in_rank else 10**6
            return count, wrong

        result = outcomes(2, work)
        assert [wrong for _, wrong in result] == [[], []]
        at += step
        if min(count for count, _ in result) < at:
            break
    save(-1, tmp_path)
    assert sorted(os.listdir(tmp_path)) == files_of(tmp_path)


@pytest.mark.parametrize("in_rank", [0, 1])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_interrupt_in_a_collective_of_a_save(
    outcomes: Any, ranks: Any, tmp_path: Path, in_rank: int, number: int
) -> None:
    """Behind a collective, when the other rank may have gone on: no file is taken back."""

    def work(rank: int) -> None:
        if rank == in_rank:
            group = dist.ProcessGroup
            gather, count = group.gather_texts, [0]

            def interrupted(self: Any, *args: Any) -> Any:
                result = gather(self, *args)
                count[0] += 1
                if count[0] == number:
                    raise KeyboardInterrupt
                return result

            group.gather_texts = interrupted  # type: ignore[method-assign]
        dcp.save(shared(rank, 2), checkpoint_id=tmp_path)

    ranks(2, lambda rank: dcp.save(shared(rank, 1), checkpoint_id=tmp_path))
    result = outcomes(2, work)
    assert isinstance(result[in_rank], KeyboardInterrupt)
    assert shared_version(tmp_path) in (1, 2)
    ranks(2, lambda rank: dcp.save(shared(rank, 3), checkpoint_id=tmp_path))
    assert shared_version(tmp_path) == 3
    assert sorted(os.listdir(tmp_path)) == files_of(tmp_path)


class Refusing(pc.Tensor):
    """A tensor that cannot be saved."""

    def detach(self) -> Any:
        raise ValueError("refused")


def test_a_tensor_of_one_rank_that_raises(ranks: Any, tmp_path: Path) -> None:
    def work(rank: int) -> None:
        x = pc.ones(2)
        state = {f"x{rank}": Refusing(x) if rank else x}
        with pytest.raises(CheckpointException, match="rank 1: ValueError: refused"):
            dcp.save(state, checkpoint_id=tmp_path)
        dist.barrier()

    ranks(2, work)


@pytest.mark.parametrize("in_rank", [0, 1])
@pytest.mark.parametrize("kind", interrupted_ranks.KINDS)
def test_an_interrupt_at_any_line(
    outcomes: Any, ranks: Any, tmp_path: Path, in_rank: int, kind: str
) -> None:
    """The rank goes on behind the interrupt, and the other one does not wait for it."""

    def work(rank: int) -> int:
        state = shared(rank, 2)
        lines = interrupted_ranks.run(kind, state, tmp_path, rank == in_rank, 0)
        for number in range(25):
            at = 1 + lines * number // 25
            interrupted_ranks.run(kind, state, tmp_path, rank == in_rank, at)
            if rank == 0:
                assert shared_version(tmp_path) in (1, 2)
        return lines

    ranks(2, lambda rank: dcp.save(shared(rank, 1), checkpoint_id=tmp_path))
    result = outcomes(2, work)
    assert result[0] == result[1] and result[0] > 50, result
    ranks(2, lambda rank: dcp.save(shared(rank, 3), checkpoint_id=tmp_path))
    assert shared_version(tmp_path) == 3
    assert sorted(os.listdir(tmp_path)) == files_of(tmp_path)


def test_a_killed_rank_at_every_rename_and_removal(
    outcomes: Any, ranks: Any, tmp_path: Path
) -> None:
    version = 1
    ranks(2, lambda rank: dcp.save(shared(rank, 1), checkpoint_id=tmp_path))
    for in_rank in (0, 1):
        for name in ("replace", "fsync", "unlink"):
            for at in range(1, 5):

                def work(
                    rank: int,
                    in_rank: int = in_rank,
                    name: str = name,
                    at: int = at,
                    new: int = version + 1,
                ) -> None:
                    if rank == in_rank:
                        real, left = getattr(os, name), [at]

                        def last(*args: Any, **kwargs: Any) -> Any:
                            left[0] -= 1
                            if not left[0]:
                                os.kill(os.getpid(), signal.SIGKILL)
                            return real(*args, **kwargs)

                        setattr(os, name, last)
                    dcp.save(shared(rank, new), checkpoint_id=tmp_path)

                outcomes(2, work)
                result = shared_version(tmp_path)
                assert result in (version, version + 1)
                version = result
    ranks(2, lambda rank: dcp.save(shared(rank, -1), checkpoint_id=tmp_path))
    assert shared_version(tmp_path) == -1
    assert sorted(os.listdir(tmp_path)) == files_of(tmp_path)


# ---- several saves, and loads beside them


def test_saves_after_an_interrupted_async_save(tmp_path: Path) -> None:
    """Places are drawn by the seed of the test; ``interrupted_saves.py`` takes all for 0."""
    program = str(Path(__file__).parent / "interrupted_saves.py")
    command = [sys.executable, program, str(tmp_path), "200", str(random.randrange(1 << 30))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    assert re.search(r"^nothing after 200 of \d+ calls$", text, re.M), text


def test_a_future_of_a_save() -> None:
    """It is one of `concurrent.futures`, but it cannot be cancelled."""
    go_on = threading.Event()
    saved = write_later(lambda: go_on.wait() and 5, "a")
    failing = write_later(lambda: 1 // 0, "a")
    called: queue.Queue[int] = queue.Queue()
    saved.add_done_callback(lambda future: called.put(future.result()))
    assert not saved.cancel()
    assert not saved.done()
    with pytest.raises(concurrent.futures.TimeoutError, match="is not written after"):
        saved.result(0.01)
    go_on.set()
    assert saved.result() == called.get() == 5
    assert saved.done()
    wait_for_saves("a")
    assert failing.done()
    assert concurrent.futures.wait([saved, failing]).done == {saved, failing}
    assert isinstance(failing.exception(), ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        failing.result()


def test_an_async_save_and_a_save_end_in_the_order_of_calls(tmp_path: Path) -> None:
    for round_ in range(20):
        first = dcp.async_save(state(2 * round_), checkpoint_id=tmp_path, no_dist=True)
        save(2 * round_ + 1, tmp_path)
        first.result(20)
        assert version_of(tmp_path) == 2 * round_ + 1
    assert sorted(os.listdir(tmp_path)) == files_of(tmp_path)


def save_often(folder: Path, first: int) -> None:
    for version in range(first, first + 30):
        save(version, folder)


def test_saves_of_several_processes_into_one_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    save(0, tmp_path)
    processes = [context.Process(target=save_often, args=(tmp_path, 100 * i)) for i in range(1, 4)]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        version_of(tmp_path)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert version_of(tmp_path) in (129, 229, 329)
    assert sorted(os.listdir(tmp_path)) == files_of(tmp_path)


def test_threads_of_one_process(tmp_path: Path) -> None:
    save(0, tmp_path)
    failures: list[BaseException] = []

    def work(first: int) -> None:
        try:
            save_often(tmp_path, first)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in (1, 2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        version_of(tmp_path)
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(os.listdir(tmp_path)) == files_of(tmp_path)


def test_a_save_between_the_index_and_the_parts(ranks: Any, tmp_path: Path) -> None:
    """All ranks read by one index, so no rank has the old state beside another with the new one."""
    save(0, tmp_path)

    def work(rank: int) -> int:
        real, version = os.open, 0

        def opened(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
            nonlocal version
            if "-of-" in str(path) and not flags & os.O_WRONLY and version < 3 and not saving:
                saving.append(1)
                version += 1
                save(version, tmp_path)
                saving.clear()
            return real(path, flags, *args, **kwargs)

        saving: list[int] = []
        result = state(-7)
        with pytest.MonkeyPatch.context() as patch:
            if rank == 1:
                patch.setattr(os, "open", opened)
            dcp.load(result, checkpoint_id=tmp_path)
        assert result["x1"].tolist() == [float(result["version"])] * 50
        return int(result["version"])

    assert ranks(2, work) == [3, 3]


def test_overwrite_is_decided_when_the_index_takes_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    writer = dcp.FileSystemWriter(folder, overwrite=False)
    transaction = writer.begin()
    save(1, folder)
    with pytest.raises(pc.CheckpointError, match="`overwrite` is False") as caught:
        transaction.commit({"version": 2}, {})
    transaction.close(caught.value)
    assert version_of(folder) == 1
    with pytest.raises(CheckpointException, match="`overwrite` is False"):
        save(2, folder, storage_writer=writer)
    other = dcp.FileSystemWriter(tmp_path / "other", overwrite=False)
    dcp.save(state(3), storage_writer=other, no_dist=True)
    assert version_of(tmp_path / "other") == 3


def test_copies_of_an_index_keep_their_parts(tmp_path: Path) -> None:
    save(1, tmp_path)
    first = (tmp_path / ".metadata").read_bytes()
    (tmp_path / "best").write_bytes(first)
    save(2, tmp_path)
    save(3, tmp_path)
    (tmp_path / ".metadata").write_bytes(first)
    assert version_of(tmp_path) == 1


# ---- holes, and what an index may say


def test_a_state_without_all_parts_is_not_saved(ranks: Any, tmp_path: Path) -> None:
    def work(rank: int) -> str:
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(pc.arange(12).reshape(4, 3), mesh, [Shard(0)])
        with pytest.raises(ValueError, match=r"x has shape \(4, 3\)") as caught:
            dcp.save({"x": x}, checkpoint_id=tmp_path / str(rank), no_dist=True)
        replicated = distribute_tensor(pc.arange(4), mesh, [Replicate()])
        dcp.save({"x": replicated}, checkpoint_id=tmp_path / f"r{rank}", no_dist=True)
        results = {"x": pc.zeros(4)}
        dcp.load(results, checkpoint_id=tmp_path / f"r{rank}", no_dist=True)
        assert results["x"].tolist() == [0, 1, 2, 3]
        return str(caught.value)

    zero, one = ranks(2, work)
    assert "its elements [2:4, 0:3]" in zero and "its elements [0:2, 0:3]" in one
    assert not list((tmp_path / "0").iterdir())


def forge(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Write an index anew, with the digest that it must have."""
    from plait_core._checkpoints._layout import marked

    text = json.loads((folder / ".metadata").read_text())
    index = json.loads(text["__metadata__"]["plait"])
    change(index)
    content = {"weight_map": text["weight_map"]}
    (folder / ".metadata").write_bytes(marked(content, index, pad=False))


def test_an_index_with_holes(ranks: Any, tmp_path: Path) -> None:
    def write(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(pc.arange(12).reshape(4, 3), mesh, [Shard(0)])
        dcp.save({"x": x}, checkpoint_id=tmp_path)

    def read(rank: int) -> str:
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(pc.zeros(4, 3), mesh, [Shard(0)])
        with pytest.raises(CheckpointException) as caught:
            dcp.load({"x": x}, checkpoint_id=tmp_path)
        return str(caught.value)

    ranks(2, write)
    forge(tmp_path, lambda index: index["tensors"]["x"]["parts"].pop())
    lacks = r"does not have the elements \[2:4, 0:3\] of x, which has shape \(4, 3\)"
    for partial in (False, True):
        planner = dcp.DefaultLoadPlanner(allow_partial_load=partial)
        with pytest.raises(CheckpointException, match=lacks):
            dcp.load({"x": pc.zeros(4, 3)}, checkpoint_id=tmp_path, planner=planner)
    for text in ranks(2, read):
        assert "rank 1: ValueError" in text and "rank 0" not in text


def test_an_index_that_names_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    save(1, folder)
    save(2, tmp_path)  # beside it, a checkpoint that must not be read
    outside = sorted(tmp_path.glob("*.safetensors"))[0]
    for name in (str(outside), f"../{outside.name}", "..", ".", "", "a/b", 5, None, "x\0"):
        for table in ("tensors", "values"):
            save(1, folder)

            def change(index: dict[str, Any], table: str = table, name: Any = name) -> None:
                if table == "tensors":
                    index["tensors"]["x0"]["parts"][0][2] = name
                else:
                    index["values"]["version"] = name

            forge(folder, change)
            with pytest.raises(CheckpointException, match="not a file of the folder"):
                version_of(folder)
    assert version_of(tmp_path) == 2


PARTS: list[Any] = [[], None, [[0], [50]], [[0], [51], "f", "x0"], [[-1], [5], "f", "x0"]]
PARTS += [[[0, 0], [50, 1], "f", "x0"], [[0], [50], "f", "x1 "], [[0.0], [50], "f", "x0"]]
PARTS += [[[0], [2**70], "f", "x0"], [[True], [1], "f", "x0"], "part", {"first": 0}]


@pytest.mark.parametrize("part", PARTS)
def test_a_damaged_table_is_an_error(tmp_path: Path, part: Any) -> None:
    save(1, tmp_path)

    def change(index: dict[str, Any]) -> None:
        saved = index["tensors"]["x0"]
        name = saved["parts"][0][2]
        saved["parts"] = [[name if x == "f" else x for x in part] if type(part) is list else part]

    forge(tmp_path, change)
    with pytest.raises(CheckpointException, match=r"x0|x1 "):
        version_of(tmp_path)


def test_an_index_that_swaps_tensors_of_other_shapes(tmp_path: Path) -> None:
    dcp.save({"a": pc.ones(4), "b": pc.ones(5)}, checkpoint_id=tmp_path)
    forge(tmp_path, lambda index: index["tensors"]["a"]["parts"][0].__setitem__(3, "b"))
    with pytest.raises(CheckpointException, match=r"shape \(5,\) for the elements \[0:4\]"):
        dcp.load({"a": pc.zeros(4)}, checkpoint_id=tmp_path)


def test_holes_of_boxes() -> None:
    """Against an array in which each part is marked."""
    generator = pc.Generator().manual_seed(0)

    def draw(high: int) -> int:
        return int(pc.randint(0, high, (1,), generator=generator))

    for _ in range(300):
        shape = [1 + draw(5) for _ in range(draw(4))]
        seen, parts = pc.zeros(shape), []
        for _ in range(draw(7)):
            first = [draw(n) for n in shape]
            sizes = [1 + draw(n - a) for a, n in zip(first, shape, strict=True)]
            parts.append((tuple(first), tuple(sizes)))
            seen[tuple(slice(a, a + n) for a, n in zip(first, sizes, strict=True))] = 1
        hole = _boxes.first_hole(((0,) * len(shape), tuple(shape)), parts)
        assert (hole is None) == bool(seen.all())
        if hole is not None:
            there = tuple(slice(a, a + n) for a, n in zip(*hole, strict=True))
            assert not seen[there].any() and seen[there].numel()


def test_an_index_of_too_many_parts(tmp_path: Path) -> None:
    dcp.save({"w": pc.zeros(200, 200)}, checkpoint_id=tmp_path, no_dist=True)

    def scatter(index: dict[str, Any]) -> None:
        (part,) = index["tensors"]["w"]["parts"]
        places = [[i, j] for i in range(0, 200, 2) for j in range(0, 200, 2)]
        index["tensors"]["w"]["parts"] = [[place, [1, 1], *part[2:]] for place in places]

    forge(tmp_path, scatter)
    with pytest.raises(CheckpointException, match=r"the parts of w in .* in too many ways"):
        dcp.load({"w": pc.zeros(200, 200)}, checkpoint_id=tmp_path, no_dist=True)


def test_names_that_parts_could_have(ranks: Any, tmp_path: Path) -> None:
    def work(rank: int) -> list[Any]:
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(pc.arange(4), mesh, [Shard(0)])
        state = {"x": x, "x@0": pc.full((2,), 7), "x@2": pc.full((2,), 8), "x@": pc.tensor(9)}
        dcp.save(state, checkpoint_id=tmp_path)
        results = {"x": pc.zeros(4), "x@0": pc.zeros(2), "x@2": pc.zeros(2), "x@": pc.tensor(0)}
        dcp.load(results, checkpoint_id=tmp_path)
        return [each.tolist() for each in results.values()]

    assert ranks(2, work) == [[[0, 1, 2, 3], [7, 7], [8, 8], 9]] * 2


def test_a_whole_tensor_beside_a_part_of_it(ranks: Any, tmp_path: Path) -> None:
    """One rank has a part, the other one all of it: nothing is lost, whichever is the lower one."""

    def work(rank: int, whole: int) -> list[Any]:
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(pc.arange(4), mesh, [Shard(0)])
        dcp.save({"x": pc.arange(4) if rank == whole else x}, checkpoint_id=tmp_path)
        results = {"x": pc.zeros(4)}
        dcp.load(results, checkpoint_id=tmp_path)
        return list(results["x"].tolist())

    assert ranks(2, lambda rank: work(rank, 0)) == [[0, 1, 2, 3]] * 2
    assert ranks(2, lambda rank: work(rank, 1)) == [[0, 1, 2, 3]] * 2


def test_a_copy_of_values_is_saved_in_the_background(tmp_path: Path) -> None:
    import numpy as np

    array, ordered = np.arange(3), OrderedDict(b=[1], a=(2, pc.ones(1)))
    state = {"array": array, "ordered": {"in": (ordered,)}}
    saved = dcp.async_save(state, checkpoint_id=tmp_path)
    array[:] = 9
    ordered["b"].append(5)
    saved.result(20)
    results: dict[str, Any] = {"array": None, "ordered": {"in": None}}
    dcp.load(results, checkpoint_id=tmp_path)
    assert results["array"].tolist() == [0, 1, 2]
    (back,) = results["ordered"]["in"]
    assert type(back) is OrderedDict and back["b"] == [1] and back["a"][1].tolist() == [1]


def test_what_cannot_be_saved_is_an_error_of_the_call(tmp_path: Path) -> None:
    with pytest.raises(CheckpointException, match="cannot be saved as data"):
        dcp.async_save({"x": object()}, checkpoint_id=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_ranks_do_not_share(outcomes: Any, tmp_path: Path) -> None:
    def work(rank: int) -> None:
        folder = tmp_path / str(rank)
        folder.mkdir()
        dcp.save({f"x{rank}": pc.ones(2)}, checkpoint_id=folder)

    for result in outcomes(2, work):
        assert isinstance(result, CheckpointException)
        assert "all ranks must see the same folder" in str(result)
    assert not list((tmp_path / "0").iterdir())


def test_a_link_in_place_of_the_index_is_replaced(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".metadata").symlink_to(outside)
    save(1, folder)
    assert outside.read_text() == "precious" and version_of(folder) == 1
    assert sorted(os.listdir(tmp_path)) == ["folder", "outside"]


def test_a_pipe_in_place_of_the_index_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".metadata")
    with pytest.raises(CheckpointException, match="is a pipe"):
        save(1, tmp_path)


def test_a_part_that_another_host_writes_stays(tmp_path: Path) -> None:
    """Its temporary file is locked there, which another host may not see."""
    first = dcp.FileSystemWriter(tmp_path).begin()
    part = tmp_path / f".{first.names(2)[1]}.0123abcd.partial"
    part.write_bytes(b"some of it")
    save(1, tmp_path)
    assert part.exists()
    first.close()
    save(2, tmp_path)
    assert not part.exists() and version_of(tmp_path) == 2


def test_an_error_that_names_a_path_of_any_bytes(ranks: Any, tmp_path: Path) -> None:
    def work(rank: int) -> None:
        with pytest.raises(CheckpointException, match="nowhere"):
            dcp.load(state(0), checkpoint_id=os.fsencode(tmp_path) + b"/nowhere\xff")

    ranks(2, work)


def save_as_version_1(version: int, folder: Path, more: tuple[str, ...] = ()) -> None:
    """Save as plait did before: the index was a file of `save`, and named the parts."""
    part = "__0_0.0123456789abcdef.safetensors"
    entries = state(version)
    values = {"version": entries.pop("version")}
    content = {"tensors": {f"{name}@2": x for name, x in entries.items()}, "values": values}
    pc.save(content, folder / part)
    tensors = {
        name: {"shape": [50], "dtype": "float32", "parts": [[[0], [50], part, f"{name}@2"]]}
        for name in entries
    }
    index = {"version": 1, "ranks": 1, "files": [part, *more], "tensors": tensors}
    pc.save({**index, "values": dict.fromkeys(values, part)}, folder / ".metadata")


def test_checkpoints_of_version_1(tmp_path: Path) -> None:
    """The next save removes the parts, and nothing else that the index names."""
    own = tmp_path / "__mine.safetensors"
    own.write_text("precious")
    save_as_version_1(3, tmp_path, (own.name,))
    assert version_of(tmp_path) == 3
    save(4, tmp_path)
    assert version_of(tmp_path) == 4 and own.exists() and own.read_text() == "precious"
    own.unlink()
    assert sorted(os.listdir(tmp_path)) == files_of(tmp_path)


@pytest.mark.parametrize("first", [save, save_as_version_1])
@pytest.mark.parametrize("after", [False, True])
def test_a_save_at_every_call_of_a_load(tmp_path: Path, first: Any, after: bool) -> None:
    at = 0
    while True:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        first(1, folder)
        calls = Stopped(at, failed, after, functools.partial(save, 2, folder))
        with pytest.MonkeyPatch.context() as patch:
            calls.patch(patch)
            result = version_of(folder)
        if calls.count < at:
            break
        assert result in (1, 2) and version_of(folder) == 2
    assert at >= 8


def test_load_of_the_index_alone(tmp_path: Path) -> None:
    save(1, tmp_path)
    with pytest.raises(pc.CheckpointError, match=r"plait\.distributed\.checkpoint\.load"):
        pc.load(tmp_path / ".metadata")
