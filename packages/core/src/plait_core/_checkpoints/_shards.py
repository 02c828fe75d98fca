"""Checkpoints in several files: parts, and an index that names them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from typing import Any

from plait_core._checkpoints._atomic import Writer, write_file
from plait_core._checkpoints._layout import marked
from plait_core._checkpoints._own import VERSION, Checkpoint, Stored

__all__ = ["bytes_in", "write_shards"]

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def bytes_in(size: int | str) -> int:
    """Return the number of bytes in a size like "5GB"."""
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    found = re.fullmatch(r"([0-9]+) ?([KMG]I?B)?", size.upper()) if isinstance(size, str) else None
    if not found or not int(found[1]):
        raise ValueError(
            f'save: `max_shard_size` must be a number of bytes or like "5GB", got {size!r}'
        )
    return int(found[1]) * _UNITS[found[2] or ""]


def write_shards(checkpoint: Checkpoint, path: str, largest: int) -> None:
    """Write parts with new names, then the index, then remove the parts of the old index."""
    folder, name = os.path.split(os.path.realpath(path))
    parts = _parts(checkpoint.entries, largest)
    old = _parts_of_index(path)
    stem = name.removesuffix(".json").removesuffix(".index").removesuffix(".safetensors")
    token = secrets.token_hex(4)
    names = [
        f"{stem}-{token}-{number:05d}-of-{len(parts):05d}.safetensors"
        for number in range(1, len(parts) + 1)
    ]
    try:
        for part, entries in zip(names, parts, strict=True):
            write_file(os.path.join(folder, part), _writing(checkpoint, entries))
        text = _index(checkpoint, names, parts)
        write_file(path, lambda writer: writer.write(text))
    except BaseException:
        _remove(folder, names)
        raise
    _remove(folder, [part for part in old if part not in names])


def _writing(checkpoint: Checkpoint, entries: list[Stored]) -> Any:
    def write(writer: Writer) -> None:
        checkpoint.write(writer, entries, whole=False)

    return write


def _parts(entries: list[Stored], largest: int) -> list[list[Stored]]:
    """Fill parts in order; a tensor larger than a part has one of its own."""
    parts: list[list[Stored]] = []
    filled = 0
    for entry in entries:
        if not parts or filled + entry.data.size > largest:
            parts.append([])
            filled = 0
        parts[-1].append(entry)
        filled += entry.data.size
    return parts


def _index(checkpoint: Checkpoint, names: list[str], parts: list[list[Stored]]) -> bytes:
    said = {"version": VERSION, "tensors": checkpoint.table, "tree": checkpoint.tree}
    content = {
        "metadata": {"total_size": sum(entry.data.size for entry in checkpoint.entries)},
        "weight_map": {
            entry.name: name
            for name, entries in zip(names, parts, strict=True)
            for entry in entries
        },
    }
    metadata = {"plait": json.dumps(said, separators=(",", ":"), allow_nan=False)}
    return marked(content, metadata, pad=False)


def _parts_of_index(path: str) -> list[str]:
    """The files that an index of ours at `path` names; none if there is none that is whole."""
    try:
        with open(path, "rb") as file:
            if file.read(1) != b"{":
                return []
            file.seek(0)
            index = json.loads(file.read())
        if index["__metadata__"]["format"] != "plait":
            return []
        return [
            name for name in set(index["weight_map"].values()) if os.path.basename(name) == name
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _remove(folder: str, names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, name))
