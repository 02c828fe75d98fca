"""A checkpoint as files of a folder.

Each rank writes one file, with a name that no other save uses; then the lowest rank puts the index,
``.metadata``, in its place, which names them. So the folder holds the old checkpoint or the new
one, at any time. plait_core writes and reads the files, as those of its own checkpoints.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from plait_distributed.checkpoint._boxes import text_of
from plait_distributed.checkpoint._plans import Piece


def folders() -> Any:
    """Return the module that writes and reads the files."""
    import plait_core._checkpoints._folders as result

    return result


class FileSystemWriter:
    """Writes a checkpoint into a folder.

    Args:
        path: the folder, which is made. A checkpoint that is there is replaced when the new one is
            complete.
        single_file_per_rank, sync_files: unused: a rank writes one file, and synchronises it.
        thread_count, per_thread_copy_ahead, cache_staged_state_dict: unused.
        overwrite: False: a checkpoint that is there is an error.

    Example:
        >>> import tempfile, plait_core as pc
        >>> from plait_distributed.checkpoint import FileSystemWriter, save
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = save({"w": pc.ones(2)}, storage_writer=FileSystemWriter(folder), no_dist=True)
    """

    def __init__(
        self,
        path: Any,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
    ) -> None:
        self.path = os.fspath(path)
        self.overwrite = overwrite

    def begin(self) -> Any:
        """Begin a save, on the lowest rank, which makes the folder."""
        return folders().FolderSave(os.fsdecode(self.path), self.overwrite)


def index_of(names: Sequence[str], plans: list[list[Piece]]) -> dict[str, Any]:
    """Return what the index says of the pieces that the ranks write to files of these names."""
    tensors: dict[str, Any] = {}
    values: dict[str, str] = {}
    for name, plan in zip(names, plans, strict=True):
        for piece in plan:
            if piece.shape is None:
                values[piece.key] = name
                continue
            entry = tensors.setdefault(
                piece.key, {"shape": list(piece.shape), "dtype": piece.dtype, "parts": []}
            )
            entry["parts"].append([list(piece.first), list(piece.sizes), name, piece.name])
    return {
        "version": folders().VERSION,
        "ranks": len(plans),
        "files": [name for name, plan in zip(names, plans, strict=True) if plan],
        "tensors": tensors,
        "values": values,
    }


class FileSystemReader:
    """Reads a checkpoint of a folder, which plait or PyTorch wrote.

    Args:
        path: the folder.

    Example:
        >>> import tempfile, plait_core as pc
        >>> from plait_distributed.checkpoint import FileSystemReader, load, save
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = save({"w": pc.ones(2)}, checkpoint_id=folder, no_dist=True)
        ...     state = {"w": pc.zeros(2)}
        ...     load(state, storage_reader=FileSystemReader(folder), no_dist=True)
        >>> state["w"]
        tensor([1., 1.])
    """

    def __init__(self, path: Any) -> None:
        self.path = os.fspath(path)

    def read_metadata(self) -> dict[str, Any]:
        """Return the index: shapes, dtypes and files of all tensors, and the files of values."""
        return self.read_index()[1]

    def read_index(self) -> tuple[bytes, dict[str, Any]]:
        """Return the text of the index, and what it says, which is checked."""
        text, index = folders().read_index(os.fsdecode(self.path))
        for table in ("tensors", "values"):
            if not isinstance(index.get(table), dict):
                raise ValueError(f"{self.path}: the index is damaged: it has no table of {table}")
        for key, name in index["values"].items():
            _check_name(self.path, key, name)
        for key, saved in index["tensors"].items():
            _check_tensor(self.path, key, saved)
        return text, index

    def size(self, name: str) -> int:
        """Return the number of bytes of a file that the index names."""
        _check_name(self.path, "a part", name)
        return os.stat(os.path.join(os.fsdecode(self.path), name)).st_size

    def open(self, name: str, index: dict[str, Any]) -> Any:
        """Return a file that the index names; its elements are checked when they are read."""
        return folders().open_part(os.fsdecode(self.path), name, index)


def _check_name(path: Any, key: str, name: Any) -> None:
    """Raise unless `name` is the name of a file in the folder of the index."""
    plain = isinstance(name, str) and "\0" not in name and os.path.basename(name) == name
    if not plain or name in ("", os.curdir, os.pardir):
        raise ValueError(
            f"{path}: the index names {name!r} for {key}, which is not a file of the folder"
        )


def _are_sizes(value: Any, count: int | None = None) -> bool:
    return (
        isinstance(value, list)
        and all(type(n) is int and 0 <= n < 2**63 for n in value)
        and (count is None or len(value) == count)
    )


def _check_tensor(path: Any, key: str, saved: Any) -> None:
    wrong = f"{path}: the index is damaged at {key}: "
    if not isinstance(saved, dict) or not _are_sizes(saved.get("shape")):
        raise ValueError(wrong + "it has no shape")
    shape, parts = saved["shape"], saved.get("parts")
    if not isinstance(saved.get("dtype"), str) or not isinstance(parts, list):
        raise ValueError(wrong + "dtype and parts are required")
    for part in parts:
        if not isinstance(part, list) or len(part) != 4 or not isinstance(part[3], str):
            raise ValueError(wrong + f"{part!r} is no part")
        first, sizes, name, _ = part
        if not _are_sizes(first, len(shape)) or not _are_sizes(sizes, len(shape)):
            raise ValueError(wrong + f"{part!r} is not a part of shape {tuple(shape)}")
        if any(a + n > m for a, n, m in zip(first, sizes, shape, strict=True)):
            raise ValueError(
                wrong + f"{text_of(first, sizes)} is not within the shape {tuple(shape)}"
            )
        _check_name(path, key, name)
