"""How a rank finds the other ranks of its job again."""

from __future__ import annotations

import os
import select
import socket
import struct
import time

from plait_distributed._errors import CollectiveTimeout
from plait_distributed._peers import Watch, end_process, process_state
from plait_distributed.elastic._coordinator import Coordinator, Terms
from plait_distributed.elastic._members import Decision, Member, receive, send

__all__ = ["MeetingFailed", "gather", "is_someone_waiting"]

_PAUSE = 0.02  # seconds between attempts to reach a coordinator
_LOOK = 0.1  # seconds between looks at the coordinator's process
_LATER = 10.0  # seconds that a coordinator has to tell that the others did not come
_CREDENTIALS = struct.Struct("3i")


class MeetingFailed(CollectiveTimeout):
    """Ranks that run did not come, or too few are left: there is nobody to go on with."""


def _address(job: str) -> str:
    """Return the job's address, which is in no folder, with the user's number in it."""
    return f"\0plait-elastic/{os.getuid()}/{job}"


def _connect(job: str) -> socket.socket | None:
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        end.connect(_address(job))
    except OSError:
        end.close()
        return None
    return end


def is_someone_waiting(job: str) -> bool:
    """Return whether a rank waits for the members of this job."""
    end = _connect(job)
    if end is None:
        return False
    end.close()
    return True


def _coordinate(job: str, terms: Terms) -> None:
    """Become the coordinator, unless another rank is."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(_address(job))
        listening.listen(1024)
    except OSError:
        listening.close()
        return
    Coordinator(listening, terms, socket.gethostname(), os.getuid()).start()


def gather(job: str, me: Member, terms: Terms) -> Decision:
    """Meet the other ranks of a job, and return who is in the next group.

    Args:
        job: a name that the job's processes share, and no others.
        me: what this rank says of itself.
        terms: how many are to come, and how long to wait for them.

    Raises:
        MeetingFailed: members that run did not come, or too few came.
    """
    watch = Watch()
    deadline = time.monotonic() + terms.timeout + _LATER
    while time.monotonic() < deadline:
        end = _connect(job)
        if end is None:
            _coordinate(job, terms)
            end = _connect(job)
        if end is not None:
            with end:
                decision = _ask(end, me, watch, deadline)
            if decision is not None:
                if decision.error:
                    raise MeetingFailed(f"elastic: {decision.error}")
                return decision
        time.sleep(_PAUSE)
    raise MeetingFailed(f"elastic: waited {terms.timeout:g} s for the other ranks of the job")


def _ask(end: socket.socket, me: Member, watch: Watch, deadline: float) -> Decision | None:
    """Return what the coordinator decides; None if it ended or is stopped for too long."""
    data = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    coordinator = _CREDENTIALS.unpack(data)[0]
    received = bytearray()
    try:
        send(end, me)
        while time.monotonic() < deadline:
            if not select.select([end], [], [], _LOOK)[0]:
                state, started = process_state(coordinator)
                if coordinator != os.getpid() and watch.look_at_state(coordinator, state) == "lost":
                    end_process(coordinator, started)
                continue
            data = end.recv(1 << 16)
            if not data:
                return None
            received += data
            message = receive(received)
            if message is not None:
                return Decision.of(message)
    except OSError:
        pass
    return None
