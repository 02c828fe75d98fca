"""Ranks of an elastic job that meet: late, again, on several hosts, with strangers at the door."""

from __future__ import annotations

import json
import os
import pathlib
import secrets
import signal
import socket
import sys
import time
from typing import Any

import pytest

import plait_distributed as dist
from plait_distributed import elastic
from plait_distributed._peers import Watch
from plait_distributed.elastic import _coordinator
from plait_distributed.elastic._members import Member

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import strangers
from elastic_jobs import (
    CONTEXT,
    LONG,
    SAMPLES,
    Job,
    die,
    dies_at,
    make_state,
    step,
    summary,
    training,
)


@pytest.fixture(name="hosts")
def two_hosts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Ranks 0 and 1 are on the master's host; rank 2 is not, and reaches it over TCP."""
    port = strangers.free_port()
    monkeypatch.setenv("PLAIT_ELASTIC_PORT", str(port))
    monkeypatch.setenv("PLAIT_JOB_SECRET", secrets.token_hex(8))
    return {"init_method": f"tcp://127.0.0.1:{port - 1}", "elsewhere": (2,)}


@pytest.mark.parametrize("several", [False, True], ids=["one host", "several"])
def test_a_late_rank_is_let_in_at_a_commit(several: bool, request: Any) -> None:
    hosts = request.getfixturevalue("hosts") if several else {}
    flag = CONTEXT.Value("i", 0)

    def work(place: int) -> Any:
        state, data = make_state()
        state.together = 0

        @elastic.run
        def train(state: Any) -> Any:
            while state.together < 3:
                for batch in state.batches:
                    if place == 2 and flag.value == 0:
                        flag.value = 1
                        die()
                    step(state, data, batch)
                    if flag.value and dist.get_world_size() == 3:
                        state.together += 1
                    state.commit()
                    time.sleep(0.01)
            return summary(state)

        return train(state)

    job = Job(3, work, **hosts)
    job.processes[2].join()
    time.sleep(0.1)
    job.start(2)
    result = job.answers()
    assert result[0] == result[1] == result[2]
    counts = result[0][1]
    assert max(counts) - min(counts) <= 1  # also in the epoch in which it came


def test_strangers_do_not_stop_the_training() -> None:
    """They wait where a rank that comes back would; ranks go on without a meeting for them."""

    def work(place: int) -> Any:
        session, strangers = elastic._session.current_session("test"), []

        @elastic.run
        def train(state: Any) -> int:
            while state.step < 12:
                if place == 2 and state.step == 2:
                    die()
                dist.barrier()
                if place == 0 and session.generation > 0:
                    strangers.append(socket.socket(socket.AF_UNIX))
                    strangers[-1].connect(session._place._name)
                state.step += 1
                state.commit()
            return session.generation

        return train(elastic.State(step=0))

    assert Job(3, work).answers() == [1, 1, None]


def test_a_child_of_a_lost_rank_does_not_keep_its_door() -> None:
    child = CONTEXT.Value("i", 0)

    def work(place: int) -> Any:
        session = elastic._session.current_session("test")

        @elastic.run
        def train(state: Any) -> int:
            while state.step < 12:
                dist.barrier()
                if place == 2:
                    die()
                if session._door is not None and session.generation == 1:
                    result = os.fork()
                    if not result:
                        time.sleep(1000)
                    child.value = result
                    die()
                state.step += 1
                state.commit()
            return session.generation

        return train(elastic.State(step=0))

    job = Job(3, work)
    try:
        for process in job.processes.values():  # the child has their pipes, too
            process.join()
        (left,) = [place for place, process in job.processes.items() if process.exitcode == 0]
        assert job._ends[left].recv() == 2
        os.kill(child.value, 0)  # it has lived as long
    finally:
        if child.value:
            os.kill(child.value, signal.SIGKILL)


def test_ranks_of_several_hosts_meet_again(hosts: dict[str, Any]) -> None:
    flag = CONTEXT.Value("i", 0)

    def fault(place: int, state: Any) -> None:
        if place == 2 and state.commits == 5 and flag.value == 0:
            flag.value = 1
            die()

    job = Job(3, training(fault, kind="optimizer"), patience=LONG, **hosts)
    job.processes[2].join()
    job.start(2)
    result = job.answers()
    assert result[0] == result[1] == result[2]
    assert result[0][1] == [3] * SAMPLES and result[0][4] == 3


def test_a_group_that_cannot_be_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("PLAIT_ELASTIC_FOLDER", str(tmp_path))
    opened = []

    def fails(*arguments: Any) -> Any:
        opened.append(arguments[2])
        raise dist.DistBackendError("the library of the provider is not there")

    elastic.init_process_group(
        init_method=f"shm:{secrets.token_hex(8)}", rank=0, world_size=1, timeout=240
    )
    monkeypatch.setattr("plait_distributed._world.enter", fails)
    with pytest.raises(dist.DistBackendError, match="the library of the provider is not there"):
        elastic.run(lambda state: None)(elastic.State())
    assert len(set(opened)) == 3 and not dist.is_initialized()
    # others may have opened it: the process that is started in this place must know of it
    generation, group = json.loads(next(tmp_path.iterdir()).read_text())
    assert generation == 2 and [place for place, _, _ in group] == [0]


def test_a_restarted_process_has_the_stored_addresses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("PLAIT_ELASTIC_FOLDER", str(tmp_path))
    message = CONTEXT.Array("i", 2)

    def work(place: int) -> Any:
        me = elastic._session.current_session("test")._me
        again = bool(me.group)
        if again:
            message[0], message[1] = me.generation, len(me.group)
        assert me.is_new

        def fault(place: int, state: Any) -> None:
            if place == 1 and not again:
                die()

        return training(fault)(place)

    job = Job(2, work, patience=LONG)
    job.processes[1].join()
    job.start(1)
    first, second = job.answers()
    assert first == second and first[4] == 2
    assert list(message) == [0, 2]
    assert list(tmp_path.iterdir()) == []  # nobody needs it behind the end


def test_several_hosts_need_an_address_and_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_ELASTIC_PORT", "1")
    monkeypatch.delenv("PLAIT_JOB_SECRET", raising=False)
    options = {"rank": 0, "world_size": 1}
    with pytest.raises(NotImplementedError, match="set MASTER_ADDR and MASTER_PORT"):
        elastic.init_process_group(init_method="shm:x", **options)
    with pytest.raises(ValueError, match="set PLAIT_JOB_SECRET"):
        elastic.init_process_group(init_method="tcp://localhost:2", **options)


def test_too_few_ranks_end_with_an_error() -> None:
    def fault(place: int, state: Any) -> None:
        elastic._session.current_session("test").terms.timeout = 1.0  # behind the first meeting
        dies_at((1,), 3)(place, state)

    first, lost = Job(2, training(fault), min_size=2).answers()
    assert lost is None
    assert isinstance(first, dist.CollectiveTimeout) and "for 2 ranks, 1 came" in str(first)


def test_the_group_waits_for_a_running_rank() -> None:
    def fault(place: int, state: Any) -> None:
        if place == 2 and state.commits == 3:
            die()
        if place == 1 and state.commits == 3:
            time.sleep(1.5)  # the other one meets it, with a smaller patience

    first, second, _ = Job(3, training(fault)).answers()
    assert first == second and first[4] == 2


def test_the_part_with_most_of_the_ranks_goes_on() -> None:
    def says(hosts: str, present: str) -> str:
        group = [(i, f"{i} 1 {host}", host) for i, host in enumerate(hosts)]
        members = [
            Member(i, f"{9 + i} 1 {host}", None, 3, group, is_new=False)
            for i, host in enumerate(present)
        ]
        return _coordinator._outvoted(members, present[0])

    for hosts in ("aabb", "abc", "abbc", "aaab", "abcd"):
        for part in ("a", "b", "ab", "bc", "bcd", "abcd"):
            rest = "".join(sorted(set(hosts) - set(part)))
            both = [says(hosts, each) for each in (part, rest) if set(each) & set(hosts)]
            assert both.count("") == 1, (hosts, part)
    assert says("aabb", "a") == says("abbb", "b") == says("a", "a") == ""
    text = says("aabb", "b")
    assert "lost rank 0 (host a, pid 0), rank 1 (host a, pid 1), and no rank of those hosts" in text
    assert "2 of the last group's 4 ranks" in text
    # ranks that were started again
    group = [(i, f"{i} 1 {host}", host) for i, host in enumerate("abcd")]
    old = Member(0, "0 1 a", None, 3, group, is_new=False)
    new = [Member(i, f"9 1 {i}") for i in (1, 2)]
    assert "lost rank 1" in _coordinator._outvoted([old], "a")
    assert _coordinator._outvoted([old, *new], "a") == ""
    # who could not open a group that others may be in, and who was started again behind it
    later = [(i, f"{i} 1 {host}", host) for i, host in enumerate("bcd", 1)]
    message = Member(3, "3 1 d", None, 4, later, is_new=False)
    again = Member(3, "9 1 d", None, 4, later)
    for third in (message, again):
        assert "lost rank 0 (host b, pid 1), rank 1" in _coordinator._outvoted([old, third], "a")
    # ranks that run, but do not come
    assert _coordinator._outvoted([old, *new], "a", {3}) == ""
    assert "lost rank 0" in _coordinator._outvoted([old, *new], "a", {0, 3})


def test_time_without_checks_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_STOPPED_TIMEOUT", "2.5")
    times = iter([0.0, 60.0, 61.0, 62.0])
    monkeypatch.setattr("plait_distributed._peers.time.monotonic", lambda: next(times))
    watch = Watch()
    assert [watch.look_at_state(1, letter) for letter in "TTTT"] == ["stopped"] * 3 + ["lost"]
    assert watch.look_at_state(1, "R") == "runs"
