"""Conversions between files of `torch.save` and folders of PyTorch's distributed checkpoints, under
the names of `torch.distributed.checkpoint.format_utils`.
"""

from __future__ import annotations

import itertools
import math
import os
from typing import Any

from plait_abi import binding
from plait_distributed.checkpoint._files import FileSystemReader, folders
from plait_distributed.checkpoint._loading import load
from plait_distributed.checkpoint._plans import flattened, leaves_of_torch

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(
    dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]
) -> None:
    """Write the state in a folder as one file of `torch.save`.

    Args:
        dcp_checkpoint_dir: a folder that ``torch.distributed.checkpoint`` of PyTorch wrote, or
            `save`; of the latter the state is one dict, with dotted paths.
        torch_save_path: the file.

    Raises:
        CheckpointException: the folder is damaged, or is no checkpoint.

    Example:
        >>> import tempfile, plait_core as pc
        >>> from plait_distributed.checkpoint import save
        >>> from plait_distributed.checkpoint.format_utils import dcp_to_torch_save
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = save({"w": pc.ones(2)}, checkpoint_id=folder, no_dist=True)
        ...     dcp_to_torch_save(folder, f"{folder}/w.pt")
        ...     pc.load(f"{folder}/w.pt")
        {'w': tensor([1., 1.])}
    """
    import plait_core

    reader = FileSystemReader(dcp_checkpoint_dir)
    state = _empty_state(reader)
    load(state, storage_reader=reader, no_dist=True)
    plait_core.save(state, torch_save_path, format="torch")


def torch_save_to_dcp(
    torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]
) -> None:
    """Write the state in a file of `torch.save` as a folder that PyTorch's
    ``torch.distributed.checkpoint.load`` reads.

    Args:
        torch_save_path: the file, which is read as data.
        dcp_checkpoint_dir: the folder, which is made.

    Raises:
        CheckpointError: the file is damaged or holds more than data.
        TypeError: it does not hold a dict.

    Example:
        >>> import os, tempfile, plait_core as pc
        >>> from plait_distributed.checkpoint.format_utils import torch_save_to_dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pc.save({"w": pc.ones(2)}, f"{folder}/w.pt", format="torch")
        ...     torch_save_to_dcp(f"{folder}/w.pt", f"{folder}/w")
        ...     sorted(os.listdir(f"{folder}/w"))
        ['.metadata', '__0_0.distcp']
    """
    import plait_core

    state = plait_core.load(torch_save_path)
    entries = flattened("torch_save_to_dcp", state, leaves_of_torch)
    leaves = [(entry.path, entry.value) for entry in entries.values()]
    folders().write_torch_folder(os.fsdecode(dcp_checkpoint_dir), leaves)


def _empty_state(reader: FileSystemReader) -> dict[str, Any]:
    """Return a state with all tensors and values of a checkpoint, to be filled."""
    index = reader.read_metadata()
    state: dict[str, Any] = {}
    sizes = {name: reader.size(name) for name in index["files"]}
    paths = index.get("paths", {})
    for key in dict.fromkeys((*paths, *index["tensors"], *index["values"])):
        if key not in index["tensors"] and key not in index["values"]:
            continue
        saved = index["tensors"].get(key)
        value = None if saved is None else _empty(key, saved, sizes)
        _put(state, paths.get(key, [key]), value)
    result: dict[str, Any] = _with_lists(state)
    return result


def _empty(key: str, saved: dict[str, Any], sizes: dict[str, int]) -> Any:
    """Return a tensor for the parts in files, which must hold its elements."""
    files = {part[2] for part in saved["parts"]}
    dtype = binding.dtype(saved["dtype"].rpartition(".")[2])
    if math.prod(saved["shape"]) * dtype.itemsize > sum(sizes.get(name, 0) for name in files):
        raise ValueError(
            f"dcp_to_torch_save: {key} has shape {tuple(saved['shape'])}, which is larger than the "
            "files of its parts"
        )
    return binding.operator("empty")(tuple(saved["shape"]), dtype=dtype)


class _Positions(dict[Any, Any]):
    """A list while it is filled: its values by their positions."""


def _put(state: dict[Any, Any], path: list[Any], value: Any) -> None:
    for step, following in itertools.pairwise(path):
        made: Any = _Positions() if isinstance(following, int) else {}
        state = state.setdefault(step, made)
        if not isinstance(state, dict):
            raise ValueError(f"dcp_to_torch_save: {path} leads through a value")
    state[path[-1]] = value


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _with_lists(each) for key, each in value.items()}
    if not isinstance(value, _Positions):
        return inner
    return [inner[position] for position in sorted(inner)]
