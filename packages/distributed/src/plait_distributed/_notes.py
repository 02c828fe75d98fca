"""Notes that a launcher and its ranks leave for each other, as files in a folder of the job.

A launcher that is killed cannot remove its folder; the next one of the same user does. A file in it
is locked for as long as the launcher lives, so that the folder of one that works is left alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping

_PREFIX = "plait-job-"
_LOCK = "launcher"


class Notes:
    """The notes of a launcher and its ranks; without a launcher there are none.

    Args:
        environment: the variables of a rank; None: of this process.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environment is None else environment
        self._folder = environ.get("PLAIT_JOB_NOTES", "")
        self._process = f"{environ.get('RANK')}-{environ.get('TORCHELASTIC_RESTART_COUNT')}"

    def _note(self, name: str) -> None:
        if self._folder:
            with contextlib.suppress(OSError):  # the launcher has ended
                pathlib.Path(self._folder, name).touch()

    def _has(self, name: str) -> bool:
        return bool(self._folder) and pathlib.Path(self._folder, name).exists()

    def note_loss(self) -> None:
        """Note that another rank was lost for this one, or ended the group."""
        self._note(f"lost-{self._process}")

    def has_noted_loss(self) -> bool:
        """Return whether this rank may fail because of another one: of a loss, or an abort."""
        return self._has(f"lost-{self._process}")

    def note_end(self) -> None:
        """Note that a rank has come to the end of its program."""
        self._note("ended")

    def has_ended(self) -> bool:
        """Return whether a rank has come to the end of its program: it does not wait for others."""
        return self._has("ended")


def note_cause(error: BaseException) -> None:
    """Note if another rank is the cause of an error that the program gets."""
    if getattr(error, "is_of_another_rank", False):
        Notes().note_loss()


@contextlib.contextmanager
def note_folder() -> Iterator[str]:
    """Make a folder, which is removed at the end, as are those of launchers that have ended."""
    _remove_abandoned()
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    try:
        new = os.path.join(folder, f"{_LOCK}.new")
        with open(new, "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.rename(new, os.path.join(folder, _LOCK))  # it is never there without its lock
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned() -> None:
    with os.scandir(tempfile.gettempdir()) as entries:
        results = [entry.path for entry in entries if entry.name.startswith(_PREFIX)]
    for folder in results:
        with contextlib.suppress(OSError):  # another launcher removes it, or it is another user's
            status = os.lstat(folder)
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                continue
            with open(os.path.join(folder, _LOCK), "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
