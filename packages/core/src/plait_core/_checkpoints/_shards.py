"""Sharded checkpoints: parts, and an index that names them."""

from __future__ import annotations

import re

from plait_core._checkpoints._atomic import Writer, sync_folder
from plait_core._checkpoints._layout import checked_size, marked
from plait_core._checkpoints._leftovers import Save, write_part
from plait_core._checkpoints._own import VERSION, Checkpoint, Stored

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def parse_size(size: int | str) -> int:
    """Return the number of bytes in a size like "5GB"."""
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    match = re.fullmatch(r"([0-9]+) ?([KMG]I?B)?", size.upper()) if isinstance(size, str) else None
    if not match or not int(match[1]):
        raise ValueError(
            f'save: `max_shard_size` must be a number of bytes or like "5GB", got {size!r}'
        )
    return int(match[1]) * _UNITS[match[2] or ""]


def write_shards(checkpoint: Checkpoint, path: str, largest: int) -> None:
    """Write parts with new names, then the index; then remove the parts that no index names.

    The temporary file of the index is made and locked before the first part, and stays so until it
    becomes the index. Its token is in the names of the parts, so other saves see that they are in
    use.
    """
    parts = _parts(checkpoint.entries, largest)
    with Save(path) as save:
        names = [save.part(i + 1, len(parts)) for i in range(len(parts))]
        text = _index(checkpoint, names, parts)
        for part, entries in zip(names, parts, strict=True):
            write = lambda writer, few=entries: checkpoint.write(writer, few, whole=False)  # noqa: E731
            write_part(save.file.path, part, write)
        sync_folder(save.file.folder)
        Writer(save.file.write).write(text)
        save.commit()


def _parts(entries: list[Stored], largest: int) -> list[list[Stored]]:
    """Distribute entries over parts in order; a tensor larger than a part is alone in its part."""
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
    metadata = {"version": VERSION, "tensors": checkpoint.table, "tree": checkpoint.tree}
    content = {
        "metadata": {"total_size": sum(entry.data.size for entry in checkpoint.entries)},
        "weight_map": {
            entry.name: name
            for name, entries in zip(names, parts, strict=True)
            for entry in entries
        },
    }
    return checked_size(marked(content, metadata, pad=False))
