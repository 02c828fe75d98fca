"""The actor of one rank."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

import plait_distributed as dist
from plait_abi.components import require
from plait_ray._session import Resized, Session, open_session


class Rank:
    """The actor's class: `run` runs the training function while another thread answers."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._session: Session | None = None

    def __repr__(self) -> str:
        return f"rank {self._rank}"  # Ray writes it in front of each line that the actor prints

    def place(self) -> tuple[str, int, int]:
        """Return the host, the process's number and a free port."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind(("", 0))
            return socket.gethostname(), os.getpid(), probe.getsockname()[1]

    def prepare(self, environment: Mapping[str, str], session: Session, threads: int) -> None:
        """Take the job's environment."""
        os.environ.update(environment)
        self._session = session
        open_session(session)
        require("core").set_num_threads(threads)

    def run(self, train: Any, args: Any, kwargs: Any, backend: str | None, timeout: float) -> Any:
        """Join the process group, and return what the function returns."""
        dist.init_process_group(backend, timeout=timeout)
        try:
            answer = train(*args, **kwargs)
        except Resized as resized:
            answer = resized
        if dist.is_initialized():
            dist.barrier()  # so that no rank is missed by those that are not done
            dist.destroy_process_group()
        return answer

    def reports(self, known: int) -> list[dict[str, Any]]:
        """Return the reports after the first `known`."""
        return [] if self._session is None else self._session.reports[known:]

    def stop_at_checkpoint(self) -> None:
        """End the function at its next checkpoint."""
        if self._session is not None:
            self._session.stop = True
