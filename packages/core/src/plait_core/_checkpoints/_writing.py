"""The implementation of `save`."""

from __future__ import annotations

import os
from typing import Any

from plait_core._checkpoints._atomic import Writer, path_of, write_stream
from plait_core._checkpoints._leftovers import replace
from plait_core._checkpoints._own import to_checkpoint
from plait_core._checkpoints._shards import parse_size, write_shards
from plait_core._checkpoints._torch_files import torch_files

_TORCH_NAMES = (".pt", ".pth")


def _format_of(format: str | None, f: Any, is_path: bool, in_shards: bool) -> str:
    if format is None:
        by_name = is_path and os.fsdecode(os.fspath(f)).lower().endswith(_TORCH_NAMES)
        return "torch" if by_name and not in_shards else "plait"
    if format not in ("plait", "torch"):
        raise ValueError(f'save: `format` must be "plait", "torch" or None, got {format!r}')
    return format


def save(
    obj: Any, f: Any, format: str | None, weights_only: bool, max_shard_size: int | str | None
) -> None:
    """Write `obj` to a path or an open file."""
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise TypeError(f"save: `f` must be a path or an open file, got {type(f).__name__}")
    format = _format_of(format, f, is_path, max_shard_size is not None)
    if format == "torch" and max_shard_size is not None:
        raise ValueError('save: `max_shard_size` needs format="plait"')
    if max_shard_size is not None:
        if not is_path:
            raise TypeError("save: `max_shard_size` requires a path")
        write_shards(
            to_checkpoint(obj, weights_only), path_of(f, "save"), parse_size(max_shard_size)
        )
        return
    if format == "torch":
        write = torch_files('save: format="torch"').Archive(obj, weights_only).write
    else:
        checkpoint = to_checkpoint(obj, weights_only)

        def write(writer: Any) -> None:
            checkpoint.write(writer, checkpoint.entries)

    if is_path:
        replace(path_of(f, "save"), lambda file: write(Writer(file.write)))
    else:
        write_stream(f, write)
