"""`load`: each rank reads the parts that it needs, of however many ranks wrote them."""

from __future__ import annotations

from typing import Any

from plait_abi.components import require
from plait_distributed.checkpoint._errors import raise_together
from plait_distributed.checkpoint._files import FileSystemReader
from plait_distributed.checkpoint._plans import Entry, flattened, is_tensor, piece_of
from plait_distributed.checkpoint._saving import group_of, states_of
from plait_distributed.checkpoint.stateful import Stateful
from plait_distributed.tensor._dtensor import DTensor

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fill a state from a folder that `save` wrote, of any number of ranks. All ranks call it.

    Tensors are written in place, of a `DTensor` this rank's part; values in dicts are replaced;
    objects with ``load_state_dict()`` get their state. The files' digests are checked first.

    Args:
        state_dict: what is to be loaded, in the layout that was saved; some of it may be left out.
        checkpoint_id: the folder.
        storage_reader: in its place, a `FileSystemReader`.
        planner: a `DefaultLoadPlanner`, or None.
        process_group: None: all processes, or this one alone without a process group.
        no_dist: whether this process loads alone.

    Raises:
        CheckpointException: on every rank, if any could not load: a file is missing or damaged,
            or a tensor is not in it or has another shape. Then tensors may have been written.

    Example:
        >>> import tempfile, plait_core as pc
        >>> import plait_distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save({"w": pc.arange(3)}, checkpoint_id=folder)
        ...     state = {"w": pc.zeros(3)}
        ...     dcp.load(state, checkpoint_id=folder)
        >>> state["w"]
        tensor([0., 1., 2.])
    """
    group = group_of("load", process_group, no_dist)
    error: BaseException | None = None
    filled: dict[str, Any] = {}
    try:
        reader = _reader(checkpoint_id, storage_reader)
        filled = states_of(state_dict)
        partial = bool(getattr(planner, "allow_partial_load", False))
        with require("autograd").no_grad():
            _fill(reader, flattened("load", filled), partial)
    except Exception as caught:
        error = caught
    raise_together("load", group, error)
    for name, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(filled[name])
        else:
            state_dict[name] = filled[name]


def _reader(checkpoint_id: Any, storage_reader: Any) -> FileSystemReader:
    if storage_reader is None:
        if checkpoint_id is None:
            raise ValueError("load: give `checkpoint_id` or `storage_reader`")
        return FileSystemReader(checkpoint_id)
    if not isinstance(storage_reader, FileSystemReader):
        raise NotImplementedError(
            f"load: `storage_reader` must be a FileSystemReader, got {storage_reader!r}"
        )
    return storage_reader if checkpoint_id is None else FileSystemReader(checkpoint_id)


def _fill(reader: FileSystemReader, entries: dict[str, Entry], partial: bool) -> None:
    index = reader.read_metadata()
    needed: dict[str, list[tuple[Entry, Any]]] = {}
    for key, entry in entries.items():
        saved = index["tensors"].get(key)
        if is_tensor(entry.value) and saved is not None:
            for part in _parts_of(reader, entry, saved):
                needed.setdefault(part[2], []).append((entry, part))
        elif not is_tensor(entry.value) and key in index["values"]:
            needed.setdefault(index["values"][key], []).append((entry, None))
        elif not partial:
            there = key in index["values"] or saved is not None
            what = "is not a tensor" if saved is None else "is a tensor"
            raise KeyError(
                f"{reader.path}: {key} {what if there else 'is missing'} in the checkpoint"
            )
    for name in sorted(needed):
        content = reader.read(name)
        for entry, part in needed[name]:
            if part is None:
                entry.holder[entry.place] = content["values"][entry.key]
            else:
                _copy(entry, part, content["tensors"][part[3]])


def _bounds(entry: Entry) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return where this rank's part of a tensor begins, and its shape."""
    piece = piece_of("load", entry.key, entry.value)
    return piece.first, piece.sizes


def _parts_of(reader: FileSystemReader, entry: Entry, saved: dict[str, Any]) -> list[Any]:
    """Return the saved parts that this rank's part has elements of."""
    shape = tuple(entry.value.shape)
    if shape != tuple(saved["shape"]):
        raise ValueError(
            f"{reader.path}: {entry.key} has shape {tuple(saved['shape'])} in the checkpoint, and "
            f"{shape} in `state_dict`"
        )
    first, sizes = _bounds(entry)
    return [part for part in saved["parts"] if _common(first, sizes, part) is not None]


def _common(first: Any, sizes: Any, part: Any) -> list[tuple[int, int, int]] | None:
    """Return for each dimension where the common elements begin, here and there, and how many."""
    found = []
    for a, n, b, m in zip(first, sizes, part[0], part[1], strict=True):
        begin, end = max(a, b), min(a + n, b + m)
        if begin >= end:
            return None
        found.append((begin - a, begin - b, end - begin))
    return found


def _copy(entry: Entry, part: Any, saved: Any) -> None:
    target = entry.value.detach()
    target = target.local() if isinstance(target, DTensor) else target
    common = _common(*_bounds(entry), part)
    assert common is not None
    for dim, (here, there, n) in enumerate(common):
        target, saved = target.narrow(dim, here, n), saved.narrow(dim, there, n)
    target.copy_(saved)


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: Any, process_group: Any = None, **options: Any
) -> None:
    """Call `load`; an older name.

    Example:
        >>> import tempfile, plait_core as pc
        >>> import plait_distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save({"w": pc.ones(2)}, checkpoint_id=folder)
        ...     dcp.load_state_dict({"w": pc.zeros(2)}, dcp.FileSystemReader(folder))
    """
    no_dist = bool(options.get("no_dist", False))
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist)
