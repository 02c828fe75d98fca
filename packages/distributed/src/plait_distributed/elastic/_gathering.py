"""The rendezvous after a change of ranks: each rank finds the others of its job again."""

from __future__ import annotations

import socket
import time

from plait_distributed._errors import CollectiveTimeout
from plait_distributed._peers import Peer, Watch, end_process, process_state
from plait_distributed.elastic._coordinator import Coordinator, Terms
from plait_distributed.elastic._members import Decision, Member, receive, send
from plait_distributed.elastic._place import CONNECTING, Place, readable

_PAUSE = 0.02  # seconds between attempts to reach a coordinator
_CHECK_INTERVAL = 0.1  # seconds between checks of the coordinator's process
_MIN_ALONE = 3.0  # least seconds that a coordinator waits with too few ranks
_JOB_ADDRESS_ONLY = 5.0  # seconds in which only the job's address is tried
_GRACE = 10.0  # seconds after the timeout in which a coordinator can report missing ranks


class MeetingFailed(CollectiveTimeout):
    """Running ranks did not arrive in time, or too few ranks are left to continue."""


def gather(
    place: Place, me: Member, terms: Terms, door: Coordinator | None
) -> tuple[Decision, Coordinator | None]:
    """Meet the other ranks of a job; return the members of the next group, and the door.

    The door is a coordinator at which missing ranks wait until they can join. One process has it,
    the others get None.

    Args:
        place: the address of the job.
        me: the description of this rank.
        terms: the number of ranks, and how long to wait for them.
        door: the door that the last call returned.

    Raises:
        MeetingFailed: running members did not arrive, or too few did.
    """
    watch, reason = Watch(), ""
    began = time.monotonic()
    deadline = began + terms.timeout + _GRACE
    places, at = _places(place, me), 0
    # a rank that tries all other hosts does not reach a coordinator for this time
    alone = max(_MIN_ALONE, CONNECTING * (len(places) - 1) + 1.0)

    coordinator = _meet_again(door, alone)
    try:
        while time.monotonic() < deadline:
            here = places[at]
            if coordinator is not None and coordinator.has_decided():  # without this process
                coordinator = _meet_again(coordinator, alone)
            end = here.reach()
            if end is None and here.is_here:
                coordinator = _coordinate(here.listen(), here, terms, alone) or coordinator
                end = here.reach()
            decision = None
            if end is not None:
                with end:
                    decision = _ask(here, end, me, watch, deadline)
            if decision is not None and not decision.is_elsewhere:
                if decision.error:
                    raise MeetingFailed(f"elastic: {decision.error}")
                return decision, _door(coordinator, here)
            # All try the hosts in one order and stay at the first that answers, so that they meet.
            if decision is not None:
                reason, at = decision.error, 0
            elif end is None and (reason or time.monotonic() - began > _JOB_ADDRESS_ONLY):
                at = (at + 1) % len(places)
            time.sleep(_PAUSE)
        raise MeetingFailed(f"elastic: {reason or _not_reached(place, me, terms)}")
    except BaseException:
        if coordinator is not None:
            coordinator.close()
        raise


def _coordinate(
    listening: list[socket.socket], here: Place, terms: Terms, alone: float
) -> Coordinator | None:
    """Become the coordinator, if this process has the address."""
    if not listening:
        return None
    coordinator = Coordinator(listening, here, terms, alone)
    coordinator.start()
    return coordinator


def _meet_again(door: Coordinator | None, alone: float) -> Coordinator | None:
    """Open the door's coordinator for another meeting; return it, or None."""
    if door is None or not door.is_door():
        return None
    door.meet_again(alone)
    return door


def _places(place: Place, me: Member) -> list[Place]:
    """Return the addresses at which ranks meet: that of the job, then those on other hosts."""
    hosts = dict.fromkeys(host for _, _, host in me.group if host)
    hosts.pop(place.host(), None)
    return [place, *map(place.on, hosts)]


def _door(coordinator: Coordinator | None, place: Place) -> Coordinator | None:
    """Return the coordinator of this process, if it is the one that decided, and stays."""
    if coordinator is None:
        return None
    if not place.is_here:
        coordinator.close()
    return coordinator if coordinator.is_door() else None


def _not_reached(place: Place, me: Member, terms: Terms) -> str:
    """Return the text of the error: no coordinator decided; the lost ranks."""
    if place.is_here:
        return f"waited {terms.timeout:g} s for the other ranks of the job"
    lost = [f"rank {i} {Peer.of(p)}" for i, (_, p, _) in enumerate(me.group) if p in me.lost]
    return (
        f"the coordinator of the job, at {place}, was not reached for {terms.timeout:g} s, so this "
        f"process has lost {', '.join(lost) or 'the others'}; the ranks that reach it go on. Start "
        "this one again when the network is back, or all from a checkpoint if that host is lost"
    )


def _ask(
    place: Place, end: socket.socket, me: Member, watch: Watch, deadline: float
) -> Decision | None:
    """Return the coordinator's decision; None if it ends or is stopped for too long."""
    process = place.process_behind(end)
    if not _wait(end, process, watch, deadline):
        return None
    channel = place.prove(end)
    if channel is None:
        return None
    try:
        send(channel, me)
        if _wait(end, process, watch, deadline):
            return Decision.of(receive(channel))
    except (OSError, EOFError, ValueError, TypeError, KeyError):
        pass
    return None


def _wait(end: socket.socket, coordinator: int, watch: Watch, deadline: float) -> bool:
    """Wait for data; end a coordinator that is stopped for too long."""
    while time.monotonic() < deadline:
        if readable([end], _CHECK_INTERVAL):
            return True
        if coordinator:
            state, started = process_state(coordinator)
            if watch.look_at_state(coordinator, state) == "lost":
                end_process(coordinator, started)
    return False
