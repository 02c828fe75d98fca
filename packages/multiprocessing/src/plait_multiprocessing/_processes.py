"""Processes that get tensors among their arguments as shared memory."""

from __future__ import annotations

import multiprocessing
from multiprocessing import context, forkserver
from typing import Any

from plait_multiprocessing import _shared
from plait_multiprocessing._children import Fork
from plait_multiprocessing._reductions import SOLE, pack
from plait_multiprocessing.interrupts import uninterrupted

_SERVER = "plait_multiprocessing._server"


class _SendsArguments:
    """The base of the process classes of all start methods."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return pack(super().__reduce_ex__(protocol))

    def start(self) -> None:
        """Start the process; tensors among its arguments are moved to shared memory."""
        method = self._start_method or multiprocessing.get_start_method()  # type: ignore[attr-defined]
        if method != "fork":
            super().start()  # type: ignore[misc]
            return
        share_all((self._args, self._kwargs))  # type: ignore[attr-defined]
        with uninterrupted():  # Ctrl-C behind the fork would lose the child
            super().start()  # type: ignore[misc]


def share_all(values: Any) -> None:
    """Move the tensors in nested tuples, lists, dicts and models that can be moved to shared
    memory.
    """
    if isinstance(values, (tuple, list)):
        for value in values:
            share_all(value)
    elif isinstance(values, dict):
        share_all(list(values.values()))
    elif callable(getattr(values, "share_memory", None)):  # a model
        for member in (*values.parameters(), *values.buffers()):
            share_all([member, member.grad])
    elif _shared.kind(values) == SOLE:
        _shared.move(values)


class Process(_SendsArguments, context.Process):
    """`multiprocessing.Process` that gets tensors as shared memory.

    With the start method fork, tensors in nested tuples, lists and dicts of arguments are shared,
    and those of models among them, as they are with the other start methods.

    Args:
        group: None.
        target: The function to run.
        name: The name.
        args: Positional arguments of the function.
        kwargs: Its keyword arguments.
        daemon: Whether it ends with its parent; None: as its parent.

    Example:
        >>> import plait_core as pc, plait_multiprocessing as mp
        >>> x = pc.zeros(2)
        >>> process = mp.Process(target=x.share_memory_().fill_, args=(3.0,))
        >>> process.start()
        >>> process.join()
        >>> x
        tensor([3., 3.])
    """

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802
        return _CLASSES[multiprocessing.get_start_method()]._Popen(process_obj)


class ForkProcess(_SendsArguments, context.ForkProcess):
    """A `Process` that is forked."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802
        return Fork(process_obj)


class SpawnProcess(_SendsArguments, context.SpawnProcess):
    """A `Process` in a new interpreter."""


class ForkServerProcess(_SendsArguments, context.ForkServerProcess):
    """A `Process` forked from a server without threads."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802
        server: Any = forkserver._forkserver
        if _SERVER not in server._preload_modules:  # a server that runs already stays as it is
            server._preload_modules = [*server._preload_modules, _SERVER]
        return context.ForkServerProcess._Popen(process_obj)


_CLASSES: dict[str, Any] = {
    "fork": ForkProcess,
    "spawn": SpawnProcess,
    "forkserver": ForkServerProcess,
}
