"""How a rank finds the other ranks of its job again."""

from __future__ import annotations

import select
import socket
import time

from plait_distributed._authentication import Channel
from plait_distributed._errors import CollectiveTimeout
from plait_distributed._peers import Peer, Watch, end_process
from plait_distributed.elastic._coordinator import Coordinator, Terms
from plait_distributed.elastic._members import Decision, Member, receive, send
from plait_distributed.elastic._place import Place

__all__ = ["MeetingFailed", "gather"]

_PAUSE = 0.02  # seconds between attempts to reach a coordinator
_LOOK = 0.1  # seconds between looks at the coordinator's process
_LATER = 10.0  # seconds that a coordinator has to tell that the others did not come


class MeetingFailed(CollectiveTimeout):
    """Ranks that run did not come, or too few are left: there is nobody to go on with."""


def gather(place: Place, me: Member, terms: Terms) -> Decision:
    """Meet the other ranks of a job, and return who is in the next group.

    Args:
        place: where.
        me: what this rank says of itself.
        terms: how many are to come, and how long to wait for them.

    Raises:
        MeetingFailed: members that run did not come, or too few came.
    """
    watch = Watch()
    deadline = time.monotonic() + terms.timeout + _LATER
    while time.monotonic() < deadline:
        connection = place.connect()
        if connection is None:
            listening = place.listen()
            if listening is not None:
                Coordinator(listening, place, terms).start()
            connection = place.connect()
        if connection is not None:
            decision = _ask(*connection, me, watch, deadline)
            if decision is not None:
                if decision.error:
                    raise MeetingFailed(f"elastic: {decision.error}")
                return decision
        time.sleep(_PAUSE)
    raise MeetingFailed(f"elastic: waited {terms.timeout:g} s for the other ranks of the job")


def _ask(
    end: socket.socket, channel: Channel, me: Member, watch: Watch, deadline: float
) -> Decision | None:
    """Return what the coordinator decides; None if it ended or is stopped for too long."""
    try:
        coordinator = None
        send(channel, me)
        while time.monotonic() < deadline:
            if select.select([end], [], [], _LOOK)[0]:
                message = receive(channel)
                if "process" not in message:
                    return Decision.of(message)
                coordinator = Peer.of(message["process"])
            elif (
                coordinator is not None
                and coordinator.host == socket.gethostname()
                and watch.look(coordinator) == "lost"
            ):
                end_process(coordinator.pid, coordinator.started)
    except (OSError, EOFError, ValueError, TypeError, KeyError):
        pass
    finally:
        channel.close()
    return None
