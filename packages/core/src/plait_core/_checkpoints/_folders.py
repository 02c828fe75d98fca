"""Checkpoints that several processes write into one folder: a part of each, and an index.

The processes belong to `plait_distributed`, which decides what is in a part and in the index. Here
is how they are written and read: as the parts and the index of a checkpoint in several files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from plait_core._checkpoints._atomic import Writer, path_of, sync_folder
from plait_core._checkpoints._errors import CheckpointError, system_error
from plait_core._checkpoints._layout import (
    LARGEST_HEADER,
    checked_size,
    marked,
    metadata_of,
    parse_json,
    verify_marked,
)
from plait_core._checkpoints._leftovers import Save, write_part
from plait_core._checkpoints._locations import Locations
from plait_core._checkpoints._own import Checkpoint, to_checkpoint
from plait_core._checkpoints._reading import reading
from plait_core._checkpoints._safe_globals import SafeGlobals
from plait_core._checkpoints._source import Part, Source, open_source
from plait_core._checkpoints._torch_files import torch_files
from plait_core._checkpoints._tree import decode
from plait_core._checkpoints._weights import Builder, File, Options, is_file_name, load_weights
from plait_core._core import Tensor

_INDEX = ".metadata"
_OF_TORCH = "_checkpoint_folders"  # the module for folders of PyTorch
VERSION = 2
_STEM = "rank"
_GONE = (errno.ENOENT, errno.ESTALE)
_PART_OF_VERSION_1 = re.compile(r"__\d+_0\.[0-9a-f]{16}\.safetensors")


class FolderSave:
    """A save into a folder, in the process that writes the index; `close` ends it.

    The token in the names of the parts is one that no other save has, and the parts are in use from
    the beginning to `close`. Parts are removed by saves that write an index, and by no others.
    """

    def __init__(self, folder: str, overwrite: bool) -> None:
        self._overwrite, self._is_open = overwrite, True
        path = os.path.join(path_of(folder, "save"), _INDEX)
        _make_folder(folder)
        self._check_new(path)
        self._save = Save(path, _STEM, follow=False)
        self.path = self._save.file.path
        self._old = _files_of_version_1(self.path)
        self._save.__enter__()

    def _check_new(self, path: str) -> None:
        if not self._overwrite and os.path.lexists(path):
            error = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            text = f"save: {os.path.dirname(path)} has a checkpoint, and `overwrite` is False"
            raise system_error(text, error)

    def names(self, count: int) -> list[str]:
        """Return the names of the parts of all ranks."""
        return [self._save.part(rank, count) for rank in range(count)]

    def commit(self, index: dict[str, Any], sizes: dict[str, int]) -> None:
        """Check that the parts are there, in their sizes, and put the index in its place."""
        for name, size in sizes.items():
            try:
                result = os.stat(os.path.join(os.path.dirname(self.path), name)).st_size
            except FileNotFoundError:
                result = -1
            if result != size:
                raise CheckpointError(
                    f"save: {name} was written by its rank and "
                    + ("is not" if result < 0 else f"has {result} bytes instead of {size}")
                    + f" in {os.path.dirname(self.path)} where the index is written: all ranks "
                    "must see the same folder; what was there is unchanged"
                )
        content = {"weight_map": {f"rank {i}": name for i, name in enumerate(sizes)}}
        Writer(self._save.file.write).write(checked_size(marked(content, index, pad=False)))
        try:
            self._save.commit(is_new=not self._overwrite)
        except FileExistsError:
            self._check_new(self.path)
            raise
        for name in self._old:
            with contextlib.suppress(OSError):  # it stays as an unused file
                os.unlink(os.path.join(os.path.dirname(self.path), name))

    @property
    def is_done(self) -> bool:
        """Whether the index was in its place at `close`."""
        return self._save.file.is_in_place

    def close(self, error: BaseException | None = None) -> None:
        """End the save: remove its files unless the index is in its place, and what it replaced."""
        if self._is_open:
            self._is_open = False
            self._save.__exit__(type(error) if error else None, error, None)


def _make_folder(folder: str) -> None:
    """Make a folder, and those that it is in, durably."""
    if not os.path.isdir(folder):
        parent = os.path.dirname(folder.rstrip(os.sep)) or os.curdir
        _make_folder(parent)
        with contextlib.suppress(FileExistsError):  # another process was first
            os.mkdir(folder)
        sync_folder(parent)


def encode(content: dict[str, Any], copy: bool) -> Checkpoint:
    """Return the content of a part as it is written; `copy`: in memory of its own."""
    result = to_checkpoint(content, True)
    if copy:
        entries = [entry._replace(data=entry.data.copy()) for entry in result.entries]
        result = result._replace(entries=entries)
    return result


def path_of_index(folder: str | os.PathLike[Any]) -> str:
    """Return the path of the index in a folder, without links."""
    return os.path.join(os.path.realpath(os.fsdecode(folder)), _INDEX)


def write_file(index: str, name: str, content: Checkpoint) -> int:
    """Write a part beside the index, durably; return its number of bytes."""
    size = write_part(index, name, lambda writer: content.write(writer, content.entries))
    try:
        sync_folder(os.path.dirname(index))
    except OSError as error:
        text = (
            f"the folder of {name} was not synchronised ({error}); what was at {index} is unchanged"
        )
        raise system_error(f"save: {text}", error) from error
    return size


def read_index(folder: str) -> tuple[bytes, dict[str, Any]]:
    """Return the text of the index in a folder, and what it says."""
    path = os.path.join(path_of(folder, "load"), _INDEX)
    source = open_source(path)
    try:
        if source.size > LARGEST_HEADER:
            raise CheckpointError(
                f"load: {path} must have at most {LARGEST_HEADER} bytes to be an index"
            )
        text = source.read(0, source.size)
        if text[:1] == b"\x80":
            folders = torch_files(f"load: {path} is an index of PyTorch", _OF_TORCH)
            return text, folders.read_index(text, path)
        if text[8:9] == b"{":
            return text, _checked_version(_index_of_version_1(source), path, 1)
    finally:
        source.close()
    index = parse_json(text, path)
    metadata = metadata_of(index, path)
    if not verify_marked(text, metadata, index, path, True):
        raise CheckpointError(f"load: {path} is not an index that plait wrote")
    return text, _checked_version(parse_json(metadata["plait"].encode(), path), path, VERSION)


def _checked_version(index: Any, path: str, version: int) -> dict[str, Any]:
    if not isinstance(index, dict) or index.get("version") != version:
        raise CheckpointError(
            f"load: {path} must be an index of the version {VERSION}, as this plait writes it, or 1"
        )
    return index


def _index_of_version_1(source: Source) -> Any:
    """Return what an index of version 1 says: it was a file of `save`.

    It is read from the open file: the path may have another index already.
    """
    options = Options(Locations("cpu"), True, False, True, SafeGlobals(()))
    with reading(source.name, options):
        return load_weights(source, options)


def _files_of_version_1(path: str) -> list[str]:
    """Return the parts that an index of version 1 names, which only its own saves removed."""
    try:
        with contextlib.closing(open_source(path)) as source:  # does not wait for a pipe
            if source.size < 9 or source.read(8, 1) != b"{":
                return []
            index = _index_of_version_1(source)
        if not isinstance(index, dict) or index.get("version") != 1:
            return []
        return [name for name in index["files"] if _PART_OF_VERSION_1.fullmatch(name)]
    except (OSError, CheckpointError, KeyError, TypeError):
        return []


class FolderPart:
    """A part, open for reading: it can be read to its end whatever other saves remove."""

    def __init__(self, folder: str, name: str) -> None:
        if not is_file_name(name):
            raise CheckpointError(f"load: the index of {folder} names {name!r}, which is no part")
        self._path = os.path.join(folder, name)
        self._options = Options(Locations(None), True, False, True, SafeGlobals(()))
        self._source = Part(self._path)
        try:
            with reading(self._path, self._options):
                self._file = File(self._source, self._options)
                tensors, self._values = _members(self._file.said["tree"])
                self._rows = self._file.said["tensors"]
                self._tensors = {name: int(tree["tensor"]) for name, tree in tensors.items()}
        except BaseException:
            self._source.close()
            raise

    def _builder(self, rows: list[dict[str, Any]]) -> Builder:
        return Builder(dict.fromkeys(self._file.entries, self._file), rows, self._options)

    def values(self, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """Yield values by their names."""
        with reading(self._path, self._options):
            builder = self._builder(self._rows)
            for name in names:
                yield name, decode(self._member(self._values, name), builder)

    def tensors(self, names: Iterable[str]) -> Iterator[tuple[str, Tensor]]:
        """Yield tensors by their names, in any order, in memory of the CPU.

        Tensors in one entry share its memory, which ends with them.
        """
        with reading(self._path, self._options):
            rows = [{key: row[key] for key in row if key != "device"} for row in self._rows]
            by_entry: dict[Any, list[str]] = {}
            for name in names:
                entry = rows[self._member(self._tensors, name)].get("entry")
                by_entry.setdefault(entry, []).append(name)
            for several in by_entry.values():
                builder = self._builder(rows)
                for name in several:
                    yield name, builder(self._tensors[name])

    def _member(self, members: dict[str, Any], name: str) -> Any:
        if name not in members:
            raise CheckpointError(f"load: {self._path} has no {name!r}, which the index names")
        return members[name]

    def close(self) -> None:
        """Close the file; it is opened again when it is read, and may be gone by then."""
        self._source.close()


def open_part(folder: str, name: str, index: dict[str, Any]) -> Any:
    """Return a part that an index names, open for reading."""
    if "places" not in index:
        return FolderPart(folder, name)
    torch = torch_files(f"load: {os.path.join(folder, name)} is a file of PyTorch", _OF_TORCH)
    return torch.TorchPart(folder, name, index["places"])


def write_torch_folder(folder: str, leaves: list[tuple[tuple[str | int, ...], Any]]) -> None:
    """Write a folder that PyTorch reads, of leaves and their paths."""
    torch = torch_files(f"save: {folder} becomes a folder of PyTorch", _OF_TORCH)
    _make_folder(path_of(folder, "save"))
    torch.write_folder(folder, leaves)


def is_gone(error: BaseException) -> bool:
    """Return whether a part was not there: another save may have replaced the checkpoint."""
    return isinstance(error, OSError) and error.errno in _GONE


def _members(tree: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the trees of the tensors and of the values of a part, by their names."""
    parts = _pairs(tree)
    return _pairs(parts["tensors"]), _pairs(parts["values"])


def _pairs(tree: Any) -> dict[str, Any]:
    return {str(key): value for key, value in tree["dict"]}
