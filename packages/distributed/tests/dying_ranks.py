"""A rank that ends, or is stopped, at every phase in which ranks meet; what the others are told."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import plait_abi
import plait_core as pc
import plait_distributed as dist
import plait_distributed.checkpoint as dcp
from plait_core._checkpoints import _folders

VICTIM = 1
SIZE = 4  # the last one is late where a phase is to last
LATE = 3
LONG = 120.0  # seconds, for machines that are busy; a test that passes waits for none of them
Strike = Callable[[], None]
# what ranks do: this one's rank, what ends it, and a group of the first three
Phase = Callable[[int, Strike, Any], Any]


def strike_at(owner: Any, name: str, strike: Strike, *, after: bool = False) -> None:
    """End this process at the next call of a function, before or after it runs."""
    before = getattr(owner, name)

    def replacement(*args: Any, **options: Any) -> Any:
        if not after:
            strike()
        result = before(*args, **options)
        strike()
        return result

    setattr(owner, name, replacement)


def end_a_barrier(rank: int, size: int, folder: pathlib.Path) -> None:
    """Leave a barrier when every rank has ended it.

    A rank that has ended it may have messages that others still wait for: killed at once, it
    takes them with it.
    """
    dist.barrier()
    (folder / f"ended the barrier {rank}").touch()
    deadline = time.monotonic() + LONG
    while len(list(folder.glob("ended the barrier *"))) < size:
        assert time.monotonic() < deadline, "a rank does not end the barrier"
        time.sleep(0.002)


def _before_new_group(rank: int, strike: Strike, group: Any) -> None:
    if rank == VICTIM:
        strike()
    dist.new_group([0, 1, 2])


def _agreed(rank: int, strike: Strike, group: Any) -> None:
    """All have agreed on the group, and one does not open it."""
    if rank == VICTIM:
        strike_at(plait_abi.Communicator, "open", strike)
    dist.new_group([0, 1, 2])


def _agreed_as_rank_0(rank: int, strike: Strike, group: Any) -> None:
    """In the new group the victim is rank 0, at which the others meet."""
    if rank == VICTIM:
        strike_at(plait_abi.Communicator, "open", strike)
    dist.new_group([1, 2])
    if rank == 0:
        dist.barrier(group)


def _opens_alone(rank: int, strike: Strike, group: Any) -> None:
    if rank == VICTIM:
        strike_at(plait_abi.Communicator, "open", strike)
    dist.new_group([0, 1, 2], use_local_synchronization=True)


def _opening(rank: int, strike: Strike, group: Any) -> None:
    """It has come, and all wait for one that is late."""
    if rank == VICTIM:
        threading.Timer(0.3, strike).start()
    dist.new_group(list(range(SIZE)), use_local_synchronization=True)


def _opened(rank: int, strike: Strike, group: Any) -> None:
    if rank == VICTIM:
        strike_at(plait_abi.Communicator, "open", strike, after=True)
    dist.barrier(dist.new_group([0, 1, 2], use_local_synchronization=True))


def _split(rank: int, strike: Strike, group: Any) -> None:
    if rank == VICTIM:
        strike()
    try:
        group._raw.split(0, rank)
    except plait_abi.PlaitError as error:
        raise group._explained(group.begin_call("split", "", ()), error) from None


def _closing(rank: int, strike: Strike, group: Any) -> None:
    if rank == VICTIM:
        strike_at(type(group), "close", strike)
    else:
        dist.barrier(group)
    dist.destroy_process_group(group)


def _telling_calls(rank: int, strike: Strike, group: Any) -> None:
    """Ranks tell each other what they called, and one does not come."""
    if rank == VICTIM:
        strike_at(plait_abi.Communicator, "open", strike)
    call = dist.all_reduce if rank else dist.broadcast
    try:
        call(pc.ones(3), group=group)
    except dist.MismatchError:  # known before the rank was lost
        dist.barrier(group)


def _saving(rank: int, strike: Strike, group: Any) -> None:
    if rank == VICTIM:
        strike_at(_folders, "write_file", strike)
    with _folder() as folder:
        dcp.save({f"x{rank}": pc.ones(3)}, checkpoint_id=folder, process_group=group)


def _first_async_save(rank: int, strike: Strike, group: Any) -> None:
    """The group of the thread that writes is made."""
    if rank == VICTIM:
        strike_at(plait_abi.Communicator, "open", strike)
    _save_later(rank, group)


def _async_save(rank: int, strike: Strike, group: Any) -> None:
    if rank == VICTIM:
        strike_at(_folders, "write_file", strike)
    _save_later(rank, group)


def _save_later(rank: int, group: Any) -> None:
    with _folder() as folder:
        state = {f"x{rank}": pc.ones(3)}
        dcp.async_save(state, checkpoint_id=folder, process_group=group).result()


@contextlib.contextmanager
def _folder() -> Any:
    yield pathlib.Path(os.environ["PLAIT_TEST_FOLDER"]) / "checkpoint"


# of all ranks
TOGETHER: dict[str, Phase] = {
    "before new_group": _before_new_group,
    "agreed, before it opens": _agreed,
    "agreed, as rank 0 of the group": _agreed_as_rank_0,
}
# of the first three; the last one lives, and does not come
PHASES: dict[str, Phase] = {
    **TOGETHER,
    "before it opens, among members": _opens_alone,
    "while it opens": _opening,
    "behind new_group": _opened,
    "split": _split,
    "closing": _closing,
    "telling calls": _telling_calls,
    "saving": _saving,
    "first async_save": _first_async_save,
    "async_save": _async_save,
}


def go_through(rank: int, phase: str, how: str, folder: pathlib.Path) -> tuple[str, Any, str]:
    """Go through a phase in which the victim ends; return the error's type, ranks and text."""

    def strike() -> None:
        os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        time.sleep(600)

    os.environ["PLAIT_TEST_FOLDER"] = str(folder)
    group = dist.new_group([0, 1, 2])
    if rank == VICTIM:
        (folder / "victim").write_text(str(os.getpid()))
    results: tuple[str, Any, str] = "no error", (), ""
    try:
        dist.barrier()  # the victim may end before the others have all of it
        if rank != LATE or phase in TOGETHER:
            PHASES[phase](rank, strike, group)
    except Exception as error:
        results = type(error).__name__, getattr(error, "ranks", ()), str(error)
    if rank != VICTIM:
        _leave_together(rank, folder)
    return results


def _leave_together(rank: int, folder: pathlib.Path) -> None:
    """Wait until the others that live have their errors; then kill the victim if it is stopped."""
    (folder / f"done {rank}").touch()
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline and len(list(folder.glob("done *"))) < SIZE - 1:
        time.sleep(0.01)
    if rank == LATE:
        with contextlib.suppress(OSError):
            os.kill(int((folder / "victim").read_text()), signal.SIGKILL)
