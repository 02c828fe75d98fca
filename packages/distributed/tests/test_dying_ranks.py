"""Ranks that are killed or stopped while ranks meet, and while they save: the others name them.

No rank may wait for the timeout of its group: that is another error.
"""

from __future__ import annotations

import os
import pathlib
import secrets
import signal
import sys
import time
from typing import Any

import pytest

import plait_abi
import plait_core as pc
import plait_distributed as dist
import plait_multiprocessing as mp

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import dying_ranks

TIMEOUT = dying_ranks.LONG
CASES = [
    *((phase, "kill") for phase in dying_ranks.PHASES),
    *((phase, "stop") for phase in dying_ranks.PHASES if "opens" in phase or phase == "split"),
]  # tests/attack stops ranks in all of them


@pytest.mark.parametrize(("phase", "how"), CASES)
def test_a_killed_rank_is_named_in_every_phase(
    outcomes: Any, phase: str, how: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "stop" and "PLAIT_TEST_BACKEND" in os.environ:
        pytest.skip("over UCX a stopped rank is lost after 3.5 s")
    monkeypatch.setenv("PLAIT_STOPPED_TIMEOUT", "0.2")
    result = outcomes(
        dying_ranks.SIZE,
        lambda rank: dying_ranks.go_through(rank, phase, how, tmp_path),
        timeout=TIMEOUT,
    )
    assert result[dying_ranks.VICTIM] is None
    for rank in (0, 2):
        kind, ranks, text = result[rank]
        assert (kind, ranks) == ("RankLost", (dying_ranks.VICTIM,)), (rank, text)


def _wait_for_files(folder: pathlib.Path, pattern: str) -> None:
    """Wait for the files of both other ranks."""
    while len(list(folder.glob(pattern))) < 2:
        time.sleep(0.01)


@pytest.mark.parametrize("way", ["kill", "leave"])
def test_a_killed_rank_is_a_field_of_the_error(
    outcomes: Any, way: str, tmp_path: pathlib.Path
) -> None:
    """Check each call in which a rank may wait, and each call after the loss."""
    x = pc.ones(3)

    def all_calls(group: Any) -> list[Any]:
        return [
            lambda: group.start("all_reduce", [x], [x]),
            lambda: group.start("broadcast", [], [x], peer=1),
            lambda: group.start("recv", [], [x], peer=1),
            lambda: group.start("send", [x], [], peer=1),
            lambda: group.start("barrier", asynchronous=True).wait(),
            lambda: group.split(0),
        ]

    def work(rank: int) -> Any:
        group = dist.get_default_group()
        pids = [peer.pid for peer in group.peers]
        dist.barrier()
        raw = group._raw
        if rank == 1:
            for other in (0, 2):  # they have ended the barrier
                raw.start("recv", [], [x], peer=other, tag=1)
            _wait_for_files(tmp_path, "sent*")  # neither waits for its answer
            if way == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raw.close()
            _wait_for_files(tmp_path, "done*")  # it has left, and lives
            return None
        raw.start("send", [x], [], peer=1, tag=1)
        (tmp_path / f"sent{rank}").touch()
        results = []
        for call in all_calls(raw):
            try:
                call()
                results.append("no error")
            except plait_abi.PlaitError as error:
                results.append([(lost, pid == pids[1]) for lost, _, pid in error.lost])
        (tmp_path / f"done{rank}").touch()
        return results

    first, _, last = outcomes(3, work, timeout=TIMEOUT)
    assert first == last == [[(1, True)]] * 6


def test_a_text_like_that_of_a_loss_is_no_loss(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        if rank == 0:
            dist.get_default_group().abort("rank 1 (pid 7) died, says the program")
        dist.barrier()

    for error in outcomes(2, work):
        assert type(error) is dist.DistBackendError and "says the program" in str(error)


def _wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + TIMEOUT
    while pathlib.Path(f"/proc/{pid}").exists() and _state(pid) != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.parametrize("way", ["abort", "interrupt"])
@pytest.mark.parametrize("waits", ["before", "after", "after the end"])
def test_a_rank_that_ends_the_group_and_itself(
    outcomes: Any, way: str, waits: str, tmp_path: pathlib.Path
) -> None:
    """The others get the reason, before the group ends and after the rank has ended."""

    def work(rank: int) -> Any:
        group = dist.get_default_group()
        pid = group.peers[0].pid
        if rank == 0:
            while len(list(tmp_path.iterdir())) < 2:  # they are in the group
                time.sleep(0.002)
            getattr(group, way)("the step")
            (tmp_path / "ended").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        (tmp_path / f"here{rank}").touch()
        if waits == "after":
            while not (tmp_path / "ended").exists():
                time.sleep(0.002)
        elif waits == "after the end":
            _wait_for_end(pid)
        try:
            dist.barrier()
        except dist.DistBackendError as error:
            return type(error).__name__, error.failure, getattr(error, "ranks", ()), str(error)

    _, *result = outcomes(3, work, timeout=TIMEOUT)
    for kind, failure, ranks, text in result:
        if way == "abort":
            assert (kind, failure, ranks) == ("DistBackendError", "aborted", ()), text
            assert "aborted the group: the step" in text
        else:
            assert (kind, failure, ranks) == ("RankLost", "lost", (0,)), text
            assert "was interrupted during the step" in text


@pytest.mark.parametrize(
    ("failure", "dies", "expected"),
    [
        ("", True, dist.RankLost),
        ("timed_out", True, dist.DistBackendError),
        ("aborted", True, dist.DistBackendError),
        ("", False, dist.DistBackendError),
    ],
)
def test_errors_of_a_provider_that_states_no_facts(
    outcomes: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
    failure: str,
    dies: bool,
    expected: type,
) -> None:
    """If the provider gives no reason for a failure, a rank that has ended is the reason."""
    text = "rank 1 aborted; the group is broken; the same call on all ranks is required"

    class Provider:
        def start(self, *_: Any, **options: Any) -> Any:
            error = plait_abi.PlaitError(text)
            if failure:
                error.failure = failure
            raise error

    def work(rank: int) -> Any:
        group = dist.get_default_group()
        dying_ranks.end_a_barrier(rank, 2, tmp_path)
        if dies and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if dies:
            _wait_for_end(group.peers[1].pid)
        monkeypatch.setattr(group, "_raw", Provider())
        try:
            dist.barrier()
        finally:
            monkeypatch.undo()

    error, _ = outcomes(2, work, timeout=TIMEOUT)
    assert type(error) is expected and text in str(error)


def _outcome_of(call: Any) -> tuple[str, str, Any, str]:
    try:
        call()
    except dist.DistBackendError as error:
        return type(error).__name__, error.failure, getattr(error, "ranks", ()), str(error)
    return "no error", "", (), ""


def _wait_for_file(path: pathlib.Path) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.002)


def _leaves_behind_the_loss(rank: int, folder: pathlib.Path) -> Any:
    """2 dies; 1 hears of it in another group, leaves all and lives; then the others look."""
    group = dist.new_group([1, 2, 3])
    dying_ranks.end_a_barrier(rank, 4, folder)
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 1:
        found = _outcome_of(lambda: dist.barrier(group=group))
        dist.destroy_process_group()
        (folder / "left").touch()
        _wait_for_file(folder / "looked0")
        return found
    _wait_for_file(folder / "left")
    found = _outcome_of(lambda: dist.barrier(group=group if rank == 3 else None))
    (folder / f"looked{rank}").touch()
    return found


def _leaves_without_a_look(rank: int, folder: pathlib.Path) -> Any:
    """2 dies; 1 leaves and was in no collective since."""
    pids = [peer.pid for peer in dist.get_default_group().peers]
    dying_ranks.end_a_barrier(rank, 4, folder)
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    _wait_for_end(pids[2])
    if rank == 1:
        time.sleep(0.5)  # over UCX it hears of the end
        dist.destroy_process_group()
        (folder / "left").touch()
        return "RankLost", "lost", (2,), "rank 2 (pid"
    _wait_for_file(folder / "left")
    return _outcome_of(dist.barrier)


def _ends_while_a_group_opens(rank: int, folder: pathlib.Path) -> Any:
    """2 dies while the group opens; 1, its first rank, hears of it and ends."""
    dying_ranks.end_a_barrier(rank, 4, folder)
    if rank == 2:
        dying_ranks.strike_at(
            plait_abi.Communicator, "open", lambda: os.kill(os.getpid(), signal.SIGKILL)
        )
    if rank == 0:
        return "RankLost", "lost", (2,), "rank 2 (pid"
    return _outcome_of(lambda: dist.new_group([1, 2, 3], use_local_synchronization=True))


@pytest.mark.parametrize(
    "phase", [_leaves_behind_the_loss, _leaves_without_a_look, _ends_while_a_group_opens]
)
def test_the_first_killed_rank_is_named(outcomes: Any, phase: Any, tmp_path: pathlib.Path) -> None:
    if phase is _ends_while_a_group_opens and "PLAIT_TEST_BACKEND" in os.environ:
        pytest.skip("over UCX rank 3 may hear that 1 left before it finds that 2 died")
    found = outcomes(4, lambda rank: phase(rank, tmp_path), timeout=TIMEOUT)
    for rank in (0, 1, 3):
        kind, failure, ranks, text = found[rank]
        assert (kind, failure, ranks) == ("RankLost", "lost", (2,)), (rank, found[rank])
        assert "rank 2 (pid" in text and "rank 1 (pid" not in text and "rank 3" not in text


def _abort(rank: int, folder: pathlib.Path) -> Any:
    (folder / f"here{rank}").touch()
    if rank == 0:
        for other in range(4):  # they have ended the barrier
            _wait_for_file(folder / f"here{other}")
        dist.get_default_group().abort("the step")
        (folder / "ended").touch()
    elif rank == 1:
        _wait_for_file(folder / "ended")
    return dist.barrier


def _wait_in_vain(rank: int, folder: pathlib.Path) -> Any:
    group = dist.new_group([0, 1, 2, 3])
    dist.barrier()
    if rank == 1:
        with pytest.raises(dist.CollectiveTimeout):
            dist.monitored_barrier(group, timeout=0.5)
    return lambda: dist.barrier(group=group)


@pytest.mark.parametrize(
    ("phase", "failure", "says"),
    [(_abort, "aborted", "rank 0 (pid"), (_wait_in_vain, "timed_out", "rank 1 (pid")],
)
def test_a_killed_rank_is_not_the_reason_of_an_earlier_end(
    outcomes: Any, phase: Any, failure: str, says: str, tmp_path: pathlib.Path
) -> None:
    """Rank 1 ends because the group was ended, or behind its own timeout."""

    def work(rank: int) -> Any:
        pid = dist.get_default_group().peers[1].pid
        dying_ranks.end_a_barrier(rank, 4, tmp_path)
        call = phase(rank, tmp_path)
        if rank == 1:
            _outcome_of(call)
            os.kill(os.getpid(), signal.SIGKILL)
        _wait_for_end(pid)
        time.sleep(0.3)  # over UCX others hear of the end
        return _outcome_of(call)

    for kind, why, ranks, text in [
        each for i, each in enumerate(outcomes(4, work, timeout=TIMEOUT)) if i != 1
    ]:
        assert (kind, why, ranks) == ("DistBackendError", failure, ()), text
        assert says in text and "died" not in text


def test_the_text_of_an_abort_does_not_grow(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        groups = [dist.new_group([first, first + 1]) for first in range(3)]
        for other in range(1, 4):  # rank 0 leaves when the others have joined the groups
            if rank == 0:
                dist.recv(pc.zeros(1), other)
            elif rank == other:
                dist.send(pc.zeros(1), 0)
        if rank == 0:
            groups[0].abort("the step")
            return ""
        _, failure, _, text = _outcome_of(lambda: dist.barrier(group=groups[rank - 1]))
        assert failure == "aborted"
        if rank < 3:
            groups[rank].abort(text)
        return text

    texts = outcomes(4, work, timeout=TIMEOUT)
    for rank in (1, 2, 3):
        assert texts[rank].count("aborted the group: the step") == 1, texts
        assert texts[rank].count("aborted") == 1 and f"rank {rank - 1} (pid" in texts[rank]


def test_ranks_in_the_programs_own_text_stay(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        group = dist.new_group([1, 2])
        if rank == 0:
            return ""
        if rank == 1:
            group.abort("rank 1 has no data")
        return _outcome_of(lambda: dist.barrier(group=group))[3]

    for text in outcomes(3, work)[1:]:
        assert "rank 1 (pid" in text and text.endswith("aborted the group: rank 1 has no data")


def _come(answers: Any, where: str, rank: int, met: Any) -> None:
    backend = os.environ.get("PLAIT_TEST_BACKEND", "gloo")
    if backend == "ucx":
        _tell_when_met(met)
    try:
        dist.init_process_group(backend, where, TIMEOUT, 4, rank)
    except Exception as error:
        answers.send((type(error).__name__, getattr(error, "ranks", ()), str(error)))


def _tell_when_met(met: Any) -> None:
    """Set an event when rank 0 has the messages of two others; they have proved the secret."""
    from plait_ucx._meeting import _Host

    receive = _Host._receive

    def receive_and_count(host: Any, channel: Any) -> None:
        receive(host, channel)
        if len(host._addresses) == 3:
            met.set()

    _Host._receive = receive_and_count  # type: ignore[method-assign]


def _shared_memory(pid: int) -> set[str]:
    """Return the inodes of the memory that a process shares with others."""
    rows = [line.split() for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()]
    return {row[4] for row in rows if row[1] == "rw-s"}


def _state(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def _wait_until_met(pids: list[int], met: Any) -> None:
    """Wait until three ranks have joined; in shared memory they have a block of it, and sleep."""
    if os.environ.get("PLAIT_TEST_BACKEND") == "ucx":
        assert met.wait(TIMEOUT), "the ranks do not meet"
        return
    shared = _shared_memory(os.getpid())  # inherited
    deadline = time.monotonic() + TIMEOUT
    while not set.intersection(*map(_shared_memory, pids)) - shared:
        assert time.monotonic() < deadline, "the ranks do not meet"
        time.sleep(0.02)
    for pid in pids:  # a joined process identifies itself before it sleeps
        while _state(pid) != "S":
            assert time.monotonic() < deadline, f"{pid} does not wait"
            time.sleep(0.002)


@pytest.mark.parametrize("victim", [0, 1])
def test_the_other_ranks_name_a_killed_rank(victim: int) -> None:
    """The fourth rank does not join, so that the others still wait."""
    context = mp.get_context("fork")
    where = f"shm:tests {secrets.token_hex(8)}"
    met = context.Event()
    processes, ends = [], []
    for rank in range(3):
        receiver, sender = context.Pipe(False)
        processes.append(context.Process(target=_come, args=(sender, where, rank, met)))
        processes[-1].start()
        sender.close()
        ends.append(receiver)
    _wait_until_met([process.pid for process in processes], met)
    os.kill(processes[victim].pid, signal.SIGKILL)
    for rank in range(3):
        if rank != victim:
            assert ends[rank].poll(TIMEOUT), "a rank hangs"
            kind, ranks, text = ends[rank].recv()
            assert (kind, ranks) == ("RankLost", (victim,)), text
    for process in processes:
        process.join()
