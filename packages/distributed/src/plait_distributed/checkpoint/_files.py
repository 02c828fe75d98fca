"""A checkpoint as files of a folder.

Each rank writes one file, with a name that no other save uses; then the lowest rank replaces the
index, ``.metadata``, which names them. So the folder holds the old checkpoint or the new one, at
any time; files that no index names are removed by the next save.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from typing import Any

from plait_distributed._arguments import core
from plait_distributed.checkpoint._plans import Piece

__all__ = ["FileSystemReader", "FileSystemWriter"]

_INDEX = ".metadata"
_SHARD = re.compile(r"__\d+_0\.[0-9a-f]{16}\.safetensors")
_VERSION = 1


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

    def prepare(self) -> str:
        """Make the folder; return a new name of a save."""
        os.makedirs(self.path, exist_ok=True)
        if not self.overwrite and os.path.exists(os.path.join(self.path, _INDEX)):
            raise FileExistsError(f"{self.path} has a checkpoint, and `overwrite` is False")
        return secrets.token_hex(8)

    @staticmethod
    def name(rank: int, token: str) -> str:
        """Return the name of a rank's file."""
        return f"__{rank}_0.{token}.safetensors"

    def write(self, rank: int, token: str, content: dict[str, Any]) -> None:
        """Write a rank's file, and synchronise it."""
        core().save(content, os.path.join(self.path, self.name(rank, token)))

    def discard(self, rank: int, token: str) -> None:
        """Remove a rank's file, as another rank failed."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.path, self.name(rank, token)))

    def commit(self, token: str, plans: list[list[Piece]]) -> dict[str, Any]:
        """Replace the index, and remove files that none names; return what it says."""
        tensors: dict[str, Any] = {}
        values: dict[str, str] = {}
        for rank, plan in enumerate(plans):
            name = self.name(rank, token)
            for piece in plan:
                if piece.shape is None:
                    values[piece.key] = name
                    continue
                entry = tensors.setdefault(
                    piece.key, {"shape": list(piece.shape), "dtype": piece.dtype, "parts": []}
                )
                part = [list(piece.first), list(piece.sizes), name, piece.name]
                entry["parts"].append(part)
        files = [self.name(rank, token) for rank, plan in enumerate(plans) if plan]
        index = {
            "version": _VERSION,
            "ranks": len(plans),
            "files": files,
            "tensors": tensors,
            "values": values,
        }
        core().save(index, os.path.join(self.path, _INDEX))
        for name in os.listdir(self.path):
            if _SHARD.fullmatch(name) and name not in files:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self.path, name))
        return index


class FileSystemReader:
    """Reads a checkpoint of a folder.

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
        index: dict[str, Any] = core().load(os.path.join(self.path, _INDEX), verify=True)
        if not isinstance(index, dict) or index.get("version") != _VERSION:
            raise ValueError(
                f"{self.path}: the index must have the version {_VERSION}, as this plait writes it"
            )
        return index

    def read(self, name: str) -> dict[str, Any]:
        """Return the content of a file, whose sums are checked; elements are read when needed."""
        content: dict[str, Any] = core().load(os.path.join(self.path, name), mmap=True, verify=True)
        return content
