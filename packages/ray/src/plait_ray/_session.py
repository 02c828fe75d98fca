"""The functions that a training function calls in each process of a job."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import plait_distributed as dist
from plait_abi.components import require
from plait_ray import _checkpoints


class Resized(BaseException):
    """Ends a training function at a checkpoint; the job continues with another number of ranks.

    It is no Exception, so that programs that handle those do not handle it.
    """


@dataclasses.dataclass
class Session:
    """This process's part in a job."""

    folder: str | None
    start: str | None  # the checkpoint to go on from
    elastic: bool
    reports: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    stop: bool = False  # at the next checkpoint


_open: list[Session] = []


def open_session(session: Session) -> None:
    """Make a session this process's."""
    _open[:] = [session]


def _session(caller: str) -> Session:
    if not _open:
        raise RuntimeError(f"{caller}: this process is not a worker of a plait_ray.Trainer")
    return _open[0]


def report(metrics: Mapping[str, Any], state: Any = None) -> None:
    """Tell the driver how training goes, and keep a state from which it can continue.

    All ranks call it alike. The metrics of rank 0 are kept; with a state, rank 0 saves its own
    while the others wait, so that a job that fails afterwards continues from there.

    Args:
        metrics: numbers by name; tensors of one element are turned into numbers.
        state: what `last_state` returns after a restart: tensors, containers and plain values.

    Raises:
        RuntimeError: outside of a training function, or a state without the trainer's `checkpoint`.

    Example:
        >>> import plait_ray
        >>> plait_ray.report({"loss": 0.5})
        Traceback (most recent call last):
        RuntimeError: report: this process is not a worker of a plait_ray.Trainer
    """
    session = _session("report")
    if state is not None and session.folder is None:
        raise RuntimeError("report: `state` needs a Trainer with `checkpoint`, a folder")
    if dist.get_rank() == 0:
        if state is not None and session.folder is not None:
            _checkpoints.save(session.folder, state)
        session.reports.append({name: _plain(value) for name, value in metrics.items()})
    if state is not None and _agreed_to_stop(session):
        raise Resized


def _agreed_to_stop(own: Session) -> bool:
    """Wait until rank 0 has saved; return whether the job is to begin anew from there."""
    new = require("core")
    votes = new.tensor([int(own.elastic and own.stop)])
    dist.broadcast(votes, 0)
    return bool(votes.item())


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and value.numel() == 1 else value


def last_state() -> Any:
    """Return the state of the last checkpoint; None if training begins.

    Example:
        >>> import plait_ray
        >>> plait_ray.last_state()
        Traceback (most recent call last):
        RuntimeError: last_state: this process is not a worker of a plait_ray.Trainer
    """
    start = _session("last_state").start
    return None if start is None else _checkpoints.load(start)
