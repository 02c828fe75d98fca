"""The one error of checkpoints."""

from __future__ import annotations

from plait_abi import PlaitError

__all__ = ["CheckpointError"]


class CheckpointError(PlaitError):
    """A checkpoint could not be written, or is damaged, or holds what `load` refuses to build.

    What was on disk before a failed save is still there; `__cause__` holds the error of the
    operating system, if there was one.

    Example:
        >>> import io, plait_core as pc
        >>> try:
        ...     pc.load(io.BytesIO(b"no checkpoint"))
        ... except pc.CheckpointError as error:
        ...     print(str(error).partition(";")[0])
        load: a checkpoint is required (safetensors, or a file of torch.save)
    """
