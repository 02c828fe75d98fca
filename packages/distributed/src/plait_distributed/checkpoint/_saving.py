"""`save` and `async_save`."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from plait_abi.components import require
from plait_distributed._objects import all_gather_object
from plait_distributed._process_group import ProcessGroup
from plait_distributed._world import (
    default_group,
    is_initialized,
    member_of,
    new_group,
    open_groups,
)
from plait_distributed.checkpoint._background import wait_for_saves, write_later
from plait_distributed.checkpoint._errors import Together
from plait_distributed.checkpoint._files import FileSystemWriter, folders, index_of
from plait_distributed.checkpoint._plans import Entry, Piece, flattened, owned, piece_of
from plait_distributed.checkpoint.stateful import Stateful
from plait_distributed.tensor._dtensor import DTensor
from plait_multiprocessing.interrupts import uninterrupted


def group_of(caller: str, process_group: Any, no_dist: bool) -> ProcessGroup | None:
    """Return the ranks that save or load together; None: this process alone."""
    if no_dist or (process_group is None and not is_initialized()):
        return None
    result = member_of(caller, process_group)
    if result is None:
        raise ValueError(f"{caller}: this process is not a member of the group")
    return result


def states_of(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Return a state with the states of the objects in it."""
    if not isinstance(state_dict, dict):
        raise TypeError(f"checkpoint: `state_dict` must be a dict, got {state_dict!r}")
    return {
        name: value.state_dict() if isinstance(value, Stateful) else value
        for name, value in state_dict.items()
    }


class _Save:
    """One save: what this rank writes, and where.

    The lowest rank begins it and ends it. No rank removes a file that it has written: one that is
    interrupted cannot know whether the others went on.
    """

    def __init__(
        self,
        caller: str,
        state_dict: dict[str, Any],
        checkpoint_id: Any,
        storage_writer: Any,
        together: Together,
    ) -> None:
        self.who, self.group = caller, together.group
        self.together = together
        self._failure: BaseException | None = None  # the other ranks do not know it yet
        self.rank = 0 if self.group is None else self.group.rank()
        self._folder: Any = None  # the save in the folder, on the lowest rank
        self._encoded: Any = None
        with self.ended():
            self._begin(state_dict, checkpoint_id, storage_writer)

    @contextlib.contextmanager
    def ended(self) -> Iterator[None]:
        """End the save in the folder after an error."""
        try:
            yield
        except BaseException as error:
            self.end(error)
            raise

    def _begin(self, state_dict: dict[str, Any], checkpoint_id: Any, storage_writer: Any) -> None:
        error: BaseException | None = None
        entries: dict[str, Entry] = {}
        plan: list[Piece] = []
        names: list[str] = []
        try:
            writer = _writer(self.who, checkpoint_id, storage_writer)
            entries = flattened(self.who, states_of(state_dict))
            plan = [piece_of(self.who, key, entry.value) for key, entry in entries.items()]
            if self.rank == 0:
                self._folder = writer.begin()
                names = self._folder.names(1 if self.group is None else self.group.size())
        except BaseException as caught:
            error = caught
        self.together.agree(error)
        messages: list[Any] = [(names, plan)]
        if self.group is not None:
            messages *= self.group.size()
            all_gather_object(messages, (names, plan), self.group)
        self.index = folders().path_of_index(writer.path)
        self.names: list[str] = messages[0][0]
        ranks = (0,) if self.group is None else self.group.ranks
        self._content: dict[str, Any] = {"tensors": {}, "values": {}}
        try:
            self.plans = owned(self.who, [plan for _, plan in messages], ranks)
            self._collect(entries)
        except ValueError:  # every rank finds it
            raise
        except BaseException as caught:
            self._failure = caught

    def _collect(self, entries: dict[str, Entry]) -> None:
        """Note what this rank writes, or its error, which the other ranks do not find."""
        try:
            for piece in self.plans[self.rank]:
                value = entries[piece.key].value
                if piece.shape is None:
                    self._content["values"][piece.key] = value
                else:
                    local = value.detach()
                    local = local.local() if isinstance(local, DTensor) else local
                    self._content["tensors"][piece.name] = local
        except BaseException as caught:
            self._failure = caught

    def stage(self) -> None:
        """Copy the state, so that the program may change it; an error of a rank is one of all."""
        with self.ended():
            error = self._failure
            try:
                if error is None:
                    self._encode(True)
            except BaseException as caught:
                error = caught
            self.together.agree(error)

    def _encode(self, copy: bool) -> None:
        content, self._content = self._content, {}
        if self.plans[self.rank]:
            with require("autograd").no_grad():
                self._encoded = folders().encode(content, copy)

    def write(self) -> Any:
        """Write this rank's file; then the lowest rank completes the checkpoint."""
        with self.together, self.ended():
            sizes = self.together.agree(*self._write_file())
            index: Any = None
            error: BaseException | None = None
            try:
                index = index_of(self.names, self.plans)
                if self.rank == 0:
                    results = {n: int(s) for n, s in zip(self.names, sizes, strict=True) if s}
                    self._folder.commit(index, results)
            except BaseException as caught:
                error = caught
            self.together.agree(self.end(error))
        return index if self.rank == 0 else None

    def _write_file(self) -> tuple[BaseException | None, str]:
        """Write this rank's file; return an error, or its size as a text."""
        if self._failure is not None:
            return self._failure, ""
        try:
            if self._content:
                self._encode(False)
            if self._encoded is None:
                return None, ""
            encoded, self._encoded = self._encoded, None
            return None, str(folders().write_file(self.index, self.names[self.rank], encoded))
        except BaseException as error:
            return error, ""

    def end(self, error: BaseException | None) -> BaseException | None:
        """End the save in the folder; return its error, which says what is in the folder now."""
        if self._folder is None:
            return error
        folder, self._folder = self._folder, None
        try:
            folder.close(error)
        except BaseException as other:
            error = other
        if folder.is_done and isinstance(error, KeyboardInterrupt):
            error.args = ("the new checkpoint is in its place",)
        return error


def _writer(caller: str, checkpoint_id: Any, storage_writer: Any) -> FileSystemWriter:
    if storage_writer is None:
        if checkpoint_id is None:
            raise ValueError(f"{caller}: give `checkpoint_id` or `storage_writer`")
        return FileSystemWriter(checkpoint_id)
    if not isinstance(storage_writer, FileSystemWriter):
        raise NotImplementedError(
            f"{caller}: `storage_writer` must be a FileSystemWriter, got {storage_writer!r}"
        )
    if checkpoint_id is not None:
        return FileSystemWriter(checkpoint_id, overwrite=storage_writer.overwrite)
    return storage_writer


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Any:
    """Write the state of all ranks into a folder, together. All ranks call it.

    Of a `DTensor` each rank writes its part; the lowest rank writes values that several ranks have.
    What only one rank has, such as the state of its generator, needs a path of its own. The files
    are safetensors files with digests. A crash at any time leaves the old checkpoint, if there was
    one, or the new one. Of two saves into one folder at the same time, each is complete, and the
    one that ends last remains. Saves of one process into one folder end in the order of the calls.

    Args:
        state_dict: tensors and values that ``plait.save`` takes, in dicts; objects with
            ``state_dict()``, such as modules, give theirs.
        checkpoint_id: the folder.
        storage_writer: in its place, a `FileSystemWriter`.
        planner: unused.
        process_group: None: all processes, or this one alone without a process group.
        no_dist: whether this process saves alone.
        use_collectives: unused.

    Returns:
        The index, on the lowest rank; None on others.

    Raises:
        CheckpointException: on every rank, if any could not write. The old checkpoint stays, unless
            the text says that the new one is in its place.
        ValueError: the ranks have tensors of different shapes under one path, or together do not
            have all elements of a tensor; the text names the tensor and the elements.
        RankLost: a rank was lost. The folder has the old checkpoint or the new one.

    Example:
        >>> import tempfile, plait_core as pc, plait_nn as nn
        >>> import plait_distributed.checkpoint as dcp
        >>> model = nn.Linear(2, 1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save({"model": model, "step": 3}, checkpoint_id=folder)
        ...     state = {"model": nn.Linear(2, 1), "step": 0}
        ...     dcp.load(state, checkpoint_id=folder)
        >>> state["step"], bool((state["model"].weight == model.weight).all())
        (3, True)
    """
    group = group_of("save", process_group, no_dist)
    together = Together("save", group)
    with together:
        _wait_for(checkpoint_id, storage_writer)
        return _Save("save", state_dict, checkpoint_id, storage_writer, together).write()


_background: weakref.WeakKeyDictionary[ProcessGroup, ProcessGroup] = weakref.WeakKeyDictionary()


def _wait_for(checkpoint_id: Any, storage_writer: Any) -> None:
    """Wait for saves in the background into the same folder: the last call is to win."""
    path = getattr(storage_writer, "path", None) if checkpoint_id is None else checkpoint_id
    if isinstance(path, (str, bytes, os.PathLike)):
        wait_for_saves(folders().path_of_index(path))


def _background_group(group: ProcessGroup | None) -> ProcessGroup | None:
    """Return a group for the thread that writes: collectives of both may mix."""
    if group is None:
        return None
    result = _background.get(group)
    if result is None or result not in open_groups():
        alone = group is default_group("async_save")
        result = new_group(
            group.ranks, use_local_synchronization=not alone, group_desc="async_save"
        )
        _background[group] = result
    return result


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    async_checkpointer_type: Any = None,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future[Any]:
    """Save in a thread, from a copy of the state: the program may continue and change it.

    Saves of one process are written one behind the other, and `save` into the same folder waits for
    them. Wait for the result before `destroy_process_group`.

    Args:
        state_dict, checkpoint_id, storage_writer, planner: as of `save`.
        process_group, no_dist, use_collectives: as of `save`.
        async_checkpointer_type, async_stager: unused: a thread writes.

    Returns:
        A future with the result of `save`.

    Example:
        >>> import tempfile, plait_core as pc
        >>> import plait_distributed.checkpoint as dcp
        >>> w = pc.ones(2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     saved = dcp.async_save({"w": w}, checkpoint_id=folder)
        ...     w.zero_()
        ...     _ = saved.result()
        ...     state = {"w": pc.zeros(2)}
        ...     dcp.load(state, checkpoint_id=folder)
        tensor([0., 0.])
        >>> state["w"]
        tensor([1., 1.])
    """
    group = group_of("async_save", process_group, no_dist)
    behind = _background_group(group)
    together = Together("async_save", group, behind)
    with together:
        saving = _Save("async_save", state_dict, checkpoint_id, storage_writer, together)
        saving.stage()
        with uninterrupted(), saving.ended():  # the thread writes it, or it is ended here
            together.group = behind
            return write_later(saving.write, saving.index)


def save_state_dict(
    state_dict: dict[str, Any], storage_writer: Any, process_group: Any = None, **options: Any
) -> Any:
    """Call `save`; an older name.

    Args:
        state_dict: The state.
        storage_writer: Writes the files.
        process_group: The ranks; None: all.
        **options: `StateDictOptions`, or None.

    Example:
        >>> import tempfile, plait_core as pc
        >>> import plait_distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save_state_dict({"w": pc.ones(2)}, dcp.FileSystemWriter(folder))
    """
    no_dist = bool(options.get("no_dist", False))
    return save(
        state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist
    )
