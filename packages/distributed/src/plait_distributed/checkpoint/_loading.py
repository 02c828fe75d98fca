"""`load`: each rank reads the parts that it needs, of however many ranks wrote them."""

from __future__ import annotations

from typing import Any

from plait_abi.components import require
from plait_distributed._objects import all_gather_object
from plait_distributed._process_group import ProcessGroup
from plait_distributed.checkpoint._boxes import common, first_hole, text_of
from plait_distributed.checkpoint._errors import CheckpointException, Together
from plait_distributed.checkpoint._files import FileSystemReader, folders
from plait_distributed.checkpoint._plans import (
    Entry,
    flattened,
    is_tensor,
    leaves_of_torch,
    piece_of,
)
from plait_distributed.checkpoint._saving import group_of, states_of
from plait_distributed.checkpoint.stateful import Stateful
from plait_distributed.tensor._dtensor import DTensor

_TRIES = 1000  # how often the checkpoint may be replaced while `load` reads it
_MOST_OPEN = 128  # files; others are opened again when they are read


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

    A folder that ``torch.distributed.checkpoint`` of PyTorch wrote is read too, with the package
    plait-torch; nothing of its pickles is executed.

    Tensors are written in place, of a `DTensor` this rank's part; values in dicts are replaced;
    objects with ``load_state_dict()`` get their state. Digests are checked. A load during a save
    gives the old checkpoint or the new one, the same on all ranks.

    Args:
        state_dict: what is to be loaded, in the layout that was saved; some of it may be left out.
        checkpoint_id: the folder.
        storage_reader: in its place, a `FileSystemReader`.
        planner: a `DefaultLoadPlanner`, or None.
        process_group: None: all processes, or this one alone without a process group.
        no_dist: whether this process loads alone.

    Raises:
        CheckpointException: on every rank, if any could not load: a file is missing or damaged,
            or a tensor is not in it, has another shape, or lacks elements (the text names them).
            Then tensors may have been written.

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
    load_ = _Load(state_dict, group)
    with load_.together:
        load_.run(checkpoint_id, storage_reader, planner)
    for name, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(load_.filled[name])
        else:
            state_dict[name] = load_.filled[name]


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


class _Replaced(Exception):
    """A part is not there: if another save has replaced the index, the load begins again."""


class _Load:
    """One load: all ranks read by the index that the lowest one reads, so none mixes two saves."""

    def __init__(self, state_dict: dict[str, Any], group: ProcessGroup | None) -> None:
        self.state_dict, self.group = state_dict, group
        self.together = Together("load", group)
        self.filled: dict[str, Any] = {}
        self._entries: dict[str, Entry] = {}

    def run(self, checkpoint_id: Any, storage_reader: Any, planner: Any) -> None:
        """Fill the state."""
        reader: Any = None
        text, missing = b"", ""
        for _ in range(_TRIES):
            error: BaseException | None = None
            messages: tuple[bytes, Any] = (b"", None)
            try:
                if reader is None:
                    reader = _reader(checkpoint_id, storage_reader)
                    self.filled = states_of(self.state_dict)
                    self._entries = flattened("load", self.filled)
                messages = self._index(reader, text, missing)
            except BaseException as caught:
                error = caught
            self.together.agree(error)
            text, index = self._shared(messages)
            missing = self._fill_together(reader, index, planner)
            if not missing:
                return
        raise CheckpointException(f"load: {reader.path} was replaced while it was read: {missing}")

    def _index(self, reader: FileSystemReader, text: bytes, missing: str) -> tuple[bytes, Any]:
        """Return the text of the index and what it says, on the lowest rank."""
        if self.group is not None and self.group.rank() != 0:
            return b"", None
        message = reader.read_index()
        if missing and message[0] == text:
            raise FileNotFoundError(missing)
        return message

    def _shared(self, message: tuple[bytes, Any]) -> tuple[bytes, Any]:
        if self.group is None:
            return message
        several: list[Any] = [message] * self.group.size()
        all_gather_object(several, message, self.group)
        result: tuple[bytes, Any] = several[0]
        return result

    def _fill_together(self, reader: FileSystemReader, index: Any, planner: Any) -> str:
        """Fill this rank's state; return which part was missing on any rank, or nothing."""
        error: BaseException | None = None
        missing = ""
        try:
            partial = bool(getattr(planner, "allow_partial_load", False))
            with require("autograd").no_grad():
                entries = self._entries
                if "paths" in index:  # PyTorch's paths
                    entries = flattened("load", self.filled, leaves_of_torch)
                _fill(reader, index, entries, partial)
        except _Replaced as caught:
            missing = str(caught)
        except BaseException as caught:
            error = caught
        message = self.together.agree(error, missing)
        return next((text for text in message if text), "")


_Needed = dict[str, list[tuple[Entry, Any]]]  # by file: entries, and the part; None: a value


def _needed(
    reader: FileSystemReader, index: Any, entries: dict[str, Entry], partial: bool
) -> _Needed:
    needed: _Needed = {}
    for key, entry in entries.items():
        saved = index["tensors"].get(key)
        if is_tensor(entry.value) and saved is not None:
            for part in _parts_of(reader, entry, saved):
                needed.setdefault(part[2], []).append((entry, part))
        elif not is_tensor(entry.value) and key in index["values"]:
            needed.setdefault(index["values"][key], []).append((entry, None))
        elif _is_number(entry.value) and saved is not None and saved["shape"] == []:
            # a count of steps, which PyTorch's optimizers have as a tensor
            for part in saved["parts"][:1]:
                needed.setdefault(part[2], []).append((entry, part))
        elif not partial:
            there = key in index["values"] or saved is not None
            problem = "is not a tensor" if saved is None else "is a tensor"
            raise KeyError(
                f"{reader.path}: {key} {problem if there else 'is missing'} in the checkpoint"
            )
    return needed


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _fill(reader: FileSystemReader, index: Any, entries: dict[str, Entry], partial: bool) -> None:
    """Fill entries; all files are opened before any is read, as a save may remove them then."""
    needed = _needed(reader, index, entries, partial)
    files: dict[str, Any] = {}
    try:
        for name in sorted(needed):
            files[name] = reader.open(name, index)
            if len(files) > _MOST_OPEN:
                files[name].close()
        for name, file in files.items():
            _copy_all(file, needed[name])
            file.close()
    except OSError as error:
        if folders().is_gone(error):
            raise _Replaced(f"{reader.path} is incomplete: {error}") from error
        raise
    finally:
        for file in files.values():
            file.close()


def _copy_all(file: Any, needed: list[tuple[Entry, Any]]) -> None:
    """Copy values and tensors of a file into entries."""
    values = {entry.key: entry for entry, part in needed if part is None}
    for key, value in file.values(values):
        values[key].holder[values[key].place] = value
    parts: dict[str, list[tuple[Entry, Any]]] = {}
    for entry, part in needed:
        if part is not None:
            parts.setdefault(part[3], []).append((entry, part))
    for name, tensor in file.tensors(parts):
        for entry, part in parts[name]:
            if is_tensor(entry.value):
                _copy(entry, part, tensor)
            else:
                entry.holder[entry.place] = type(entry.value)(tensor.item())


def _box(entry: Entry) -> Any:
    """Return where this rank's part of a tensor begins, and its shape."""
    piece = piece_of("load", entry.key, entry.value)
    return piece.first, piece.sizes


def _box_of(part: Any) -> Any:
    return tuple(part[0]), tuple(part[1])


def _parts_of(reader: FileSystemReader, entry: Entry, saved: dict[str, Any]) -> list[Any]:
    """Return the saved parts that this rank's part has elements of; all of it must be in them."""
    shape = tuple(entry.value.shape)
    if shape != tuple(saved["shape"]):
        raise ValueError(
            f"{reader.path}: {entry.key} has shape {tuple(saved['shape'])} in the checkpoint, and "
            f"{shape} in `state_dict`"
        )
    box = _box(entry)
    parts = [part for part in saved["parts"] if common(box, _box_of(part)) is not None]
    hole = first_hole(box, map(_box_of, parts), f"{entry.key} in {reader.path}")
    if hole is not None:
        raise ValueError(
            f"{reader.path}: the checkpoint does not have the elements {text_of(*hole)} of "
            f"{entry.key}, which has shape {shape}"
        )
    return parts


def _copy(entry: Entry, part: Any, saved: Any) -> None:
    """Copy the elements that a saved part and this rank's part have in common."""
    if tuple(saved.shape) != tuple(part[1]):
        raise ValueError(
            f"{entry.key}: a file of the checkpoint has shape {tuple(saved.shape)} for the "
            f"elements {text_of(part[0], part[1])}, which the index names"
        )
    target = entry.value.detach()
    target = target.local() if isinstance(target, DTensor) else target
    box = _box(entry)
    shared = common(box, _box_of(part))
    assert shared is not None
    for dim, (begin, n) in enumerate(zip(*shared, strict=True)):
        target = target.narrow(dim, begin - box[0][dim], n)
        saved = saved.narrow(dim, begin - part[0][dim], n)
    target.copy_(saved)


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: Any, process_group: Any = None, **options: Any
) -> None:
    """Call `load`; an older name.

    Args:
        state_dict: The state.
        storage_reader: Reads the files.
        process_group: The ranks; None: all.
        **options: `StateDictOptions`, or None.

    Example:
        >>> import tempfile, plait_core as pc
        >>> import plait_distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save({"w": pc.ones(2)}, checkpoint_id=folder)
        ...     dcp.load_state_dict({"w": pc.zeros(2)}, dcp.FileSystemReader(folder))
    """
    no_dist = bool(options.get("no_dist", False))
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist)
