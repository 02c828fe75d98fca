"""The one error of checkpoints, and the classes of it that are errors of the operating system."""

from __future__ import annotations

from typing import Any

from plait_abi import PlaitError


class CheckpointError(PlaitError):
    """A checkpoint cannot be written, is damaged, or holds something that `load` refuses to build.

    A failed save leaves the old file as it was. An error of the operating system becomes a
    `CheckpointError` that is also an `OSError` of the same class (`FileNotFoundError`, ...), with
    its ``errno`` and with the original error as `__cause__`; the text names the path and the
    reason.

    Example:
        >>> import io, plait_core as pc
        >>> try:
        ...     pc.load(io.BytesIO(b"no checkpoint"))
        ... except pc.CheckpointError as error:
        ...     print(str(error).partition(";")[0])
        load: a checkpoint is required (safetensors, or a file of torch.save)
        >>> try:
        ...     pc.load("/nowhere/a.safetensors")
        ... except FileNotFoundError as error:
        ...     print(isinstance(error, pc.CheckpointError))
        True
    """


class CheckpointOSError(CheckpointError, OSError):
    """A checkpoint's error that is also an OSError."""

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> Any:
        return _new_error, (type(self), self.args[0], self.errno, self.strerror, self.filename)


class CheckpointNotFoundError(CheckpointOSError, FileNotFoundError):
    pass


class CheckpointPermissionError(CheckpointOSError, PermissionError):
    pass


class CheckpointIsADirectoryError(CheckpointOSError, IsADirectoryError):
    pass


class CheckpointNotADirectoryError(CheckpointOSError, NotADirectoryError):
    pass


_KINDS: dict[type[OSError], type[CheckpointOSError]] = {
    FileNotFoundError: CheckpointNotFoundError,
    PermissionError: CheckpointPermissionError,
    IsADirectoryError: CheckpointIsADirectoryError,
    NotADirectoryError: CheckpointNotADirectoryError,
}


def _new_error(
    kind: type[CheckpointOSError], text: str, number: Any, reason: Any, filename: Any
) -> CheckpointOSError:
    error = kind(text)
    error.errno, error.strerror, error.filename = number, reason, filename
    return error


def system_error(text: str, error: OSError) -> CheckpointError:
    """Return the `CheckpointError` that says `text` and is of the class of `error` too."""
    kinds = (ours for theirs, ours in _KINDS.items() if isinstance(error, theirs))
    return _new_error(
        next(kinds, CheckpointOSError), text, error.errno, error.strerror, error.filename
    )
