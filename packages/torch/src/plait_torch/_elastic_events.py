"""`torch.distributed.elastic.events`: events of a run, which a logger writes."""

from __future__ import annotations

import enum
import json
import logging
import os
import socket
import traceback
from dataclasses import asdict, dataclass, field, fields
from typing import Any

__all__ = [
    "Event",
    "EventMetadataValue",
    "EventSource",
    "NodeState",
    "RdzvEvent",
    "construct_and_record_rdzv_event",
    "get_logging_handler",
    "record",
    "record_rdzv_event",
]

EventMetadataValue = str | int | float | bool | None


class EventSource(str, enum.Enum):
    """Where an event happened."""

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(str, enum.Enum):
    """How far a host is."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class _Record:
    """A dataclass whose text is JSON."""

    def __str__(self) -> str:
        return self.serialize()

    def serialize(self) -> str:
        """Return the fields as JSON."""
        return json.dumps(asdict(self))  # type: ignore[call-overload]

    @classmethod
    def deserialize(cls, data: Any) -> Any:
        """Return what `serialize` wrote; an object of the class itself as it is."""
        if isinstance(data, cls):
            return data
        values = json.loads(data)
        kinds: dict[str, Any] = {"source": EventSource, "node_state": NodeState}
        named: dict[str, Any] = {
            name: kinds[name](values[name]) for name in kinds if name in values
        }
        names = {each.name for each in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in {**values, **named}.items() if name in names})


@dataclass
class Event(_Record):
    """An event of the launcher or of a process.

    Example:
        >>> from plait_torch._elastic_events import Event, EventSource
        >>> text = Event("started", EventSource.WORKER, metadata={"rank": 1}).serialize()
        >>> Event.deserialize(text).metadata
        {'rank': 1}
    """

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = field(default_factory=dict)

    __str__ = _Record.__str__


@dataclass
class RdzvEvent(_Record):
    """An event of the meeting of hosts."""

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""

    __str__ = _Record.__str__


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """Return a handler that writes to standard error ("console"), or none ("null").

    Raises:
        KeyError: for another destination.

    Example:
        >>> from plait_torch._elastic_events import get_logging_handler
        >>> type(get_logging_handler()).__name__
        'NullHandler'
    """
    kinds: dict[str, type[logging.Handler]] = {
        "console": logging.StreamHandler,
        "dynamic_rendezvous": logging.NullHandler,
        "null": logging.NullHandler,
    }
    return kinds[destination]()


def _logger(destination: str) -> logging.Logger:
    logger = logging.getLogger(f"torchelastic-events-{destination}")
    if not logger.handlers:
        logger.setLevel(os.environ.get("LOGLEVEL", "INFO"))
        logger.propagate = False
        logger.addHandler(get_logging_handler(destination))
    return logger


def record(event: Event, destination: str = "null") -> None:
    """Write an event to a destination of `get_logging_handler`.

    Example:
        >>> from plait_torch._elastic_events import Event, EventSource, record
        >>> record(Event("started", EventSource.AGENT))
    """
    _logger(destination).info(event.serialize())


def record_rdzv_event(event: RdzvEvent) -> None:
    """Write an event of the meeting of hosts."""
    _logger("dynamic_rendezvous").info(event.serialize())


def construct_and_record_rdzv_event(
    run_id: str,
    message: str,
    node_state: NodeState,
    name: str = "",
    hostname: str = "",
    pid: int | None = None,
    master_endpoint: str = "",
    local_id: int | None = None,
    rank: int | None = None,
) -> None:
    """Write an event of the meeting of hosts, by default of this host and process.

    Example:
        >>> from plait_torch import _elastic_events as events
        >>> events.construct_and_record_rdzv_event("run", "joined", events.NodeState.INIT)
    """
    failed = node_state is NodeState.FAILED
    event = RdzvEvent(
        name=name,
        run_id=run_id,
        message=message,
        hostname=hostname or socket.getfqdn(),
        pid=os.getpid() if pid is None else pid,
        node_state=node_state,
        master_endpoint=master_endpoint,
        rank=rank,
        local_id=local_id,
        error_trace=traceback.format_exc() if failed else "",
    )
    record_rdzv_event(event)
