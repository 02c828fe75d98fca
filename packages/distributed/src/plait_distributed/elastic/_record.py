"""The last decision that a rank received, stored for the process that replaces it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib


class Record:
    """A file in the folder that the launcher of this host gives to its ranks, if it does.

    A group is noted before it is opened. So a rank that is started again knows the hosts of the
    others, and of which ranks there must be more than half for it to go on.

    Args:
        job: the job's name.
        place: the launcher's RANK.
    """

    def __init__(self, job: str, place: int) -> None:
        folder = os.environ.get("PLAIT_ELASTIC_FOLDER", "")
        self._file = pathlib.Path(folder, f"{job}-{place}") if folder else None

    def read(self) -> tuple[int, list[tuple[int, str, str]]]:
        """Return the number and the members of the last group; -1 and none if nothing is noted."""
        if self._file is None or not self._file.exists():
            return -1, []
        generation, group = json.loads(self._file.read_text())
        return generation, [tuple(each) for each in group]

    def write(self, generation: int, group: list[tuple[int, str, str]]) -> None:
        """Note a group, in place of the one before."""
        if self._file is None:
            return
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps([generation, group]))
        new.replace(self._file)

    def remove(self) -> None:
        """Note nothing any more."""
        if self._file is not None:
            with contextlib.suppress(FileNotFoundError):
                self._file.unlink()
