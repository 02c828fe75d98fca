"""What `save` does."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from plait_core._checkpoints._atomic import Replacement, Writer, path_of, sync_folder, write_stream
from plait_core._checkpoints._leftovers import remove_leftovers
from plait_core._checkpoints._own import taken_apart
from plait_core._checkpoints._shards import bytes_in, write_shards
from plait_core._checkpoints._torch_write import TorchZip

__all__ = ["save"]


def save(
    obj: Any, f: Any, format: str, weights_only: bool, max_shard_size: int | str | None
) -> None:
    """Write `obj` to a path or an open file."""
    if format not in ("plait", "torch"):
        raise ValueError(f'save: `format` must be "plait" or "torch", got {format!r}')
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise TypeError(f"save: `f` must be a path or an open file, got {type(f).__name__}")
    if format == "torch" and (not weights_only or max_shard_size is not None):
        raise ValueError('save: `weights_only` and `max_shard_size` need format="plait"')
    if max_shard_size is not None:
        if not is_path:
            raise TypeError("save: `max_shard_size` requires a path")
        write_shards(taken_apart(obj, weights_only), path_of(f, "save"), bytes_in(max_shard_size))
        return
    if format == "torch":
        write = TorchZip(obj).write
    else:
        checkpoint = taken_apart(obj, weights_only)

        def write(writer: Any) -> None:
            checkpoint.write(writer, checkpoint.entries)

    if is_path:
        _write_file(path_of(f, "save"), write)
    else:
        write_stream(f, write)


def _write_file(path: str, write: Callable[[Writer], object]) -> None:
    """Replace the file at `path` by what `write` writes, durably, or leave it as it was.

    What was there may be an index: its parts go with it.
    """
    file = Replacement(path)
    remove_leftovers(file.folder, file.name)
    try:
        with file:
            write(Writer(file.write))
            file.take_name()
            sync_folder(file.folder)
    finally:
        remove_leftovers(file.folder, file.name)
