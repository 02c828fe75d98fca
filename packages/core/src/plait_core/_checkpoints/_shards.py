"""Checkpoints in several files: parts, and an index that names them."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat

from plait_core._checkpoints._atomic import (
    TOKEN,
    Replacement,
    Writer,
    is_free,
    names_in,
    sweep,
    sync_folder,
)
from plait_core._checkpoints._layout import LARGEST_HEADER, checked_size, marked
from plait_core._checkpoints._own import VERSION, Checkpoint, Stored

__all__ = ["bytes_in", "write_shards"]

_SUFFIX = ".safetensors"
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
    """Write parts with new names, then the index; then remove the parts that no index names.

    The temporary file of the index is there, and locked, from before the first part until the
    index takes its place: its token is in the names of the parts, which says that they are in use.
    """
    parts = _parts(checkpoint.entries, largest)
    index = Replacement(path)
    _sweep(index)
    try:
        with index:
            stem = f"{_stem(index.name)}-{index.token}"
            names = [f"{stem}-{i + 1:05d}-of-{len(parts):05d}{_SUFFIX}" for i in range(len(parts))]
            text = _index(checkpoint, names, parts)
            for part, entries in zip(names, parts, strict=True):
                with Replacement(os.path.join(index.folder, part), index.path) as file:
                    checkpoint.write(Writer(file.write), entries, whole=False)
                    file.take_name()
            sync_folder(index.folder)
            Writer(index.write).write(text)
            index.take_name()
            sync_folder(index.folder)
    finally:  # of the old index, or those of this one if it has not taken its place
        _sweep(index)


def _stem(name: str) -> str:
    return name.removesuffix(".json").removesuffix(".index").removesuffix(".safetensors")


def _sweep(index: Replacement) -> None:
    """Remove what saves to this index left: unlocked temporary files, and parts out of use.

    A part is in use while the temporary file with its token is locked, and while an index names
    it; any file of the folder that begins as an index does and mentions the token counts as one,
    so that copies of an index keep their parts. What an index says is never a reason to remove.

    The order makes saves at the same time safe: the parts are listed, then the locks are tried,
    then the indexes are read. The temporary file of a part that is listed was made before the
    part; so at the second step it is locked, or it has become the index that is read at the third
    (or a newer one has taken that one's place), or its process has ended.
    """
    stem, form = re.escape(_stem(index.name)), rf"-({TOKEN})-[0-9]{{5}}-of-[0-9]{{5}}{_SUFFIX}"
    names = names_in(index.folder)
    sweep(index.folder, names, rf"{re.escape(index.name)}|{stem}{form}")
    matches = [re.fullmatch(stem + form, name) for name in names]
    parts = {match[0]: match[1] for match in matches if match}
    with contextlib.suppress(OSError):  # what cannot be read may name any part
        tokens = set(parts.values())
        tokens -= _locked_tokens(index.folder) if tokens else set()
        for name in [index.name, *(os.listdir(index.folder) if tokens else [])]:
            if tokens and name not in parts:
                known = name == index.name or name.endswith(".json")
                tokens -= _mentioned(os.path.join(index.folder, name), tokens, known)
        for name, token in parts.items():
            if token in tokens:
                os.unlink(os.path.join(index.folder, name))


def _locked_tokens(folder: str) -> set[str]:
    """The tokens of temporary files that are in use."""
    matches = [re.search(rf"\.({TOKEN})\.partial$", name) for name in os.listdir(folder)]
    found = [(match[1], os.path.join(folder, match.string)) for match in matches if match]
    return {token for token, path in found if not is_free(path)}


def _mentioned(path: str, tokens: set[str], known: bool) -> set[str]:
    """Those of the tokens that occur in a file, if it may be an index; `known`: by its name."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENXIO, errno.ELOOP):
            return set()  # no file
        if error.errno in (errno.EACCES, errno.EPERM) and not known:
            return set()
        raise
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_HEADER:
            return set()
        if os.pread(file, 1, 0) != b"{":
            return set()
        with open(file, "rb", closefd=False) as stream:
            text = stream.read()
        return {token for token in tokens if f"-{token}-".encode() in text}
    finally:
        os.close(file)


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
    return checked_size(marked(content, said, pad=False))
