"""Contexts: what a process remembers of the messages of one forward pass over several processes.

A message with tensors that require a gradient cuts the graph. The sender keeps those tensors; the
receiver gets them as the outputs of a node of its own graph, whose gradients are what a backward
pass brings back to the sender.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import plait_autograd as pa
from plait_abi.components import require

Name = tuple[int, int]  # the rank of the sender, and a number of its own
Note = tuple[int, Name, tuple[int, ...]]  # of a context, of a message, and of its tensors

_contexts: dict[int, Context] = {}
_lock = threading.Lock()
_here = threading.local()
_numbers = itertools.count(1)
_rank = [0]


class _Received(pa.Function):
    """Gives the tensors of a message a node, at which a pass of this process ends."""

    @staticmethod
    def forward(ctx: Any, anchor: Any, message: Any, tensors: Any) -> Any:
        ctx.plait_message = message
        return tuple(tensors.pop() for _ in range(len(tensors)))[::-1]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(
            "backward: the graph continues in another process; use "
            "torch.distributed.autograd.backward(context_id, roots)"
        )


class Context:
    """One forward pass, as this process knows it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lock = threading.RLock()
        self.kept: dict[Name, list[Any]] = {}  # tensors that this process sent
        self.receivers: dict[Name, int] = {}
        self.edges: dict[Name, list[Any]] = {}  # of tensors that it received
        self.waiting: dict[Name, list[Any]] = {}  # gradients for them
        self.gradients: dict[Any, Any] = {}  # of leaves, by their nodes
        self.others: set[int] = set()  # processes with which messages were exchanged
        self.ended = False

    def sent(self, to: int, tensors: Sequence[Any]) -> Note:
        """Note a message; return what the receiver must know."""
        which = tuple(i for i, tensor in enumerate(tensors) if tensor.requires_grad)
        with self.lock, _lock:
            name = (_rank[0], next(_numbers))
            self.others.add(to)
            if which:
                self.kept[name] = [tensors[i] for i in which]
                self.receivers[name] = to
        return self.number, name, which

    def received(self, sender: int, note: Note, decoder: Any) -> list[Any]:
        """Return the tensors of a message, those that require a gradient as outputs of a node."""
        _, name, which = note
        tensors: list[Any] = decoder.tensors()
        with self.lock:
            self.others.add(sender)
            if which:
                anchor = require("core").empty(0, requires_grad=True)
                with pa.enable_grad():
                    result = _Received.apply(anchor, name, [tensors[i] for i in which])
                self.edges[name] = [pa.graph.get_gradient_edge(tensor) for tensor in result]
                for i, tensor in zip(which, result, strict=True):
                    tensors[i] = tensor
        return tensors


def set_rank(rank: int) -> None:
    """Make names of messages and contexts those of a rank."""
    _rank[0] = rank


def enter() -> Context:
    """Return a new context of this process."""
    with _lock:
        number = (_rank[0] << 40) + next(_numbers)
        result = _contexts[number] = Context(number)
    return result


def joined(number: int) -> Context:
    """Return the context of that number, made if this process had no part in it."""
    with _lock:
        if number not in _contexts:
            _contexts[number] = Context(number)
        return _contexts[number]


def known(caller: str, number: int) -> Context:
    """Return the context of that number."""
    with _lock:
        if number not in _contexts:
            raise RuntimeError(f"{caller}: there is no context {number!r} in this process")
        return _contexts[number]


def drop(number: int) -> Context | None:
    """Forget a context."""
    with _lock:
        return _contexts.pop(number, None)


def current() -> Context | None:
    """Return the context that this thread is in."""
    return getattr(_here, "context", None)


@contextlib.contextmanager
def inside(context: Context | None) -> Iterator[None]:
    """Let this thread be in a context."""
    before = current()
    _here.context = context
    try:
        yield
    finally:
        _here.context = before
