"""Malformed messages of a process that knows the job's secret end no thread of a coordinator."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from plait_distributed import _hosts
from plait_distributed._elastic_hosts import ElasticCoordinator
from plait_distributed._fields import read_fields
from plait_distributed._peers import describe_self
from plait_distributed.elastic._members import Member

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import strangers

OTHERS = (None, True, 1, -1, 1.5, float("inf"), "", "x", [], [1], [[1]], [["x", 1]], {}, {"x": 1})
READY = dataclasses.asdict(_hosts.Introduction("host", "launcher", 0, 1))
OUTCOME = dataclasses.asdict(_hosts.Outcome(1, "it failed", True, False))
ATTEMPT = dataclasses.asdict(_hosts.Attempt(0, 0, (1,), 1, "job"))
MEMBER = dataclasses.asdict(
    Member(
        0,
        describe_self(),
        ("127.0.0.1", 1),
        0,
        [(0, describe_self(), "")],
        False,
        [describe_self()],
        [(0, 0)],
        [(0, 0, 0, 1)],
        False,
    )
)
KINDS = (
    (_hosts.Introduction, READY),
    (_hosts.Outcome, OUTCOME),
    (_hosts.Attempt, ATTEMPT),
    (Member, MEMBER),
)


def malformed(kind: type[Any], message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield messages of which one field is missing, unknown or of another type."""
    yield {**message, "unknown": 1}
    for field in dataclasses.fields(kind):
        if field.default is field.default_factory is dataclasses.MISSING:
            yield {name: value for name, value in message.items() if name != field.name}
        for value in OTHERS:
            changed = {**message, field.name: value}
            with contextlib.suppress(ValueError):
                read_fields(kind, changed)
                continue
            yield changed


@pytest.mark.parametrize(("kind", "message"), KINDS)
def test_fields_are_checked(kind: Any, message: dict[str, Any]) -> None:
    sent = json.loads(json.dumps(message))
    assert json.dumps(dataclasses.asdict(read_fields(kind, sent))) == json.dumps(sent)
    wrong = list(malformed(kind, message))
    assert len(wrong) > 8 * len(message) + 1
    for each in (*wrong, *OTHERS):
        with pytest.raises(ValueError, match=kind.__name__):
            read_fields(kind, each)


@pytest.fixture(name="port")
def port_at_which_nobody_listens() -> int:
    return strangers.free_port()


def connect(port: int) -> _hosts.Hosts:
    return _hosts.Hosts((strangers.HOST, port), strangers.SECRET, 0, 1, strangers.LONG)


def is_refused(port: int, **message: Any) -> None:
    """Send a message; the other end closes the connection."""
    hosts = connect(port)
    hosts._link.send(**message)
    assert hosts._next("lost")["kind"] == "lost"
    hosts.close()


@pytest.mark.parametrize("kind", [_hosts.Coordinator, ElasticCoordinator])
def test_a_launcher_that_sends_malformed_messages(port: int, kind: Any) -> None:
    terms = _hosts.Terms(1, 1, 10_000, 300.0)
    coordinator = kind((strangers.HOST, port), strangers.SECRET, terms, "job")
    coordinator.start()
    for message in malformed(_hosts.Introduction, READY):
        is_refused(port, kind="ready", **message)
    if kind is ElasticCoordinator:
        outside = [{**ATTEMPT, "node": node} for node in (-1, 1, 100)]
        for message in (*malformed(_hosts.Attempt, ATTEMPT), *outside):
            is_refused(port, kind="back", attempt=message, **READY)
    nested: Any = 0
    for _ in range(500):
        nested = [nested]
    for wrong in (*OTHERS, nested):
        is_refused(port, kind="outcome", outcome=wrong)
    hosts = connect(port)
    hosts._link._channel.send(b"[" * 60_000)
    assert hosts._next("lost")["kind"] == "lost"
    hosts.close()
    hosts = connect(port)
    assert hosts.begin().sizes == (1,)
    assert hosts.finish(_hosts.Outcome(0)) == (0, "")
    hosts.close()
    coordinator.join(strangers.LONG)
    assert not coordinator.is_alive()
    # its address is free as soon as it has ended
    kind((strangers.HOST, port), strangers.SECRET, terms, "job")._stop_listening()


def test_outcomes_of_a_host_that_runs(port: int) -> None:
    terms = _hosts.Terms(1, 1, 10_000, 300.0)
    coordinator = _hosts.Coordinator((strangers.HOST, port), strangers.SECRET, terms, "job")
    coordinator.start()
    for message in list(malformed(_hosts.Outcome, OUTCOME))[::6]:
        hosts = connect(port)
        hosts.begin()
        hosts._link.send(kind="outcome", outcome=message)
        assert hosts._next("lost")["kind"] == "lost"
        hosts.close()
    hosts = connect(port)
    hosts.begin()
    assert hosts.finish(_hosts.Outcome(0)) == (0, "")
    hosts.close()
    coordinator.join(strangers.LONG)


def test_a_rank_that_sends_malformed_messages(port: int) -> None:
    coordinator = strangers.serve("elastic", port, 0)
    place = strangers._elastic_place(port)
    place.is_here = False
    wrong = [{**MEMBER, "process": "no process"}, {**MEMBER, "group": [[0, "no process", ""]]}]
    for message in (*malformed(Member, MEMBER), *wrong, *OTHERS):
        end = place.reach()
        assert end is not None
        channel = place.prove(end)
        assert channel is not None
        channel.send(json.dumps(message).encode())
        with pytest.raises((EOFError, OSError)):
            channel.receive()
        channel.close()
    strangers.ask("elastic", port)
    coordinator.join(strangers.LONG)
    assert not coordinator.is_alive()
    again = strangers._elastic_place(port).listen()  # its addresses are free as soon as it ended
    assert len(again) == 2
    for listening in again:
        listening.close()
