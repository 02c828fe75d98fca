"""The launcher's sign that a rank of a job has come to the end of its program.

It is a socket's name in no folder, made from the job's secret; it ends with the launcher. A rank
that the launcher starts again at just that time sees it, and does not wait for the others.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Mapping

__all__ = ["EndMark"]


class EndMark:
    """The sign of one job.

    Args:
        environment: of a process that the launcher started.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        given = os.environ if environment is None else environment
        job = f"{given.get('TORCHELASTIC_RUN_ID', '')} {given.get('PLAIT_JOB_SECRET', '')}"
        digest = hashlib.blake2b(job.encode(), digest_size=16).hexdigest()
        self._name = f"\0plait-ended/{os.getuid()}/{digest}"
        self._socket: socket.socket | None = None

    def set(self) -> None:
        """Set the sign, until `clear`."""
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                self._socket.bind(self._name)
            except OSError:  # a launcher of another host of the job, on this machine
                self.clear()

    def is_set(self) -> bool:
        """Return whether the launcher has set it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            return probe.connect_ex(self._name) == 0

    def clear(self) -> None:
        """Take the sign away."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
