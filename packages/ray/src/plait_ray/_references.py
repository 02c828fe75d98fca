"""References to values that stay in the process that made them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import plait_distributed as dist
from plait_ray import _contexts, _passes
from plait_ray._agent import Agent, agent
from plait_ray._worker_info import WorkerInfo

T = TypeVar("T")
Key = tuple[int, int]  # the rank that made the reference, and a number of its own

_numbers = itertools.count(1)


class _OwnedValue:
    """A value that this process owns, and its number of references."""

    def __init__(self) -> None:
        self.future = dist.Future()
        self.references = 1


_owned: dict[Key, _OwnedValue] = {}
_lock = threading.Lock()


def forget_all() -> None:
    """Drop all values."""
    with _lock:
        _owned.clear()


def _value(key: Key) -> Any:
    with _lock:
        entry = _owned.get(key)
    if entry is None:
        raise RuntimeError(f"RRef: the value {key} is not in this process any more")
    return entry.future.wait()


def _fork(key: Key) -> None:
    with _lock:
        _owned[key].references += 1


def _drop(key: Key) -> None:
    with _lock:
        entry = _owned.get(key)
        if entry is None:
            return
        entry.references -= 1
        if entry.references == 0:
            del _owned[key]
    # the value's own finalizers run here, without the lock


def _begin(key: Key, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Compute a value in a thread of its own, in this thread's context."""
    entry, context = _OwnedValue(), _contexts.current()
    with _lock:
        _owned[key] = entry

    def run() -> None:
        with _contexts.inside(context):
            try:
                value = function(*args, **kwargs)
                value = value.wait() if getattr(function, "_plait_async", False) else value
            except BaseException as error:
                entry.future.set_exception(error)
            else:
                entry.future.set_result(value)

    threading.Thread(target=run, daemon=True).start()


def _invoke(reference: RRef[Any], name: str, args: Any, kwargs: Any) -> Any:
    return getattr(reference.local_value(), name)(*args, **kwargs)


class RRef(Generic[T]):
    """A reference to a value in one process, its owner, which keeps it as long as there are any.

    Args:
        value: a value of this process, which becomes its owner. `remote` makes references to values
            of other processes.
        type_hint: unused.

    Example:
        >>> import plait_ray.rpc
        >>> plait_ray.rpc.RRef.__name__
        'RRef'
    """

    _key: Key

    def __init__(self, value: T, type_hint: Any = None) -> None:
        here = agent("RRef")
        self._begin(here, here.rank, (here.rank, next(_numbers)))
        entry = _OwnedValue()
        entry.future.set_result(value)
        with _lock:
            _owned[self._key] = entry

    def _begin(self, here: Agent, owner: int, key: Key, accepted: Any = None) -> None:
        self._agent, self._owner, self._key, self._accepted = here, owner, key, accepted

    def __del__(self) -> None:
        here = getattr(self, "_agent", None)
        if here is not None:  # sent by the agent's thread, as finalizers run anywhere
            here.released.append((self._owner, self._key, self._accepted))

    def __repr__(self) -> str:
        return f"RRef(owner={self.owner_name()!r}, id={self._key})"

    def is_owner(self) -> bool:
        """Return whether the value is in this process."""
        return self._owner == self._agent.rank

    def confirmed_by_owner(self) -> bool:
        """Return whether the owner knows of this reference."""
        return self._accepted is None or self._accepted.done()

    def owner(self) -> WorkerInfo:
        """Return the process with the value."""
        return WorkerInfo(self.owner_name(), self._owner)

    def owner_name(self) -> str:
        """Return the name of the process with the value."""
        return self._agent.peers[self._owner].name

    def _confirm(self) -> None:
        if self._accepted is not None:
            self._accepted.wait()

    def to_here(self, timeout: float = -1.0) -> T:
        """Return the value, copied to this process if it is another's.

        Args:
            timeout: seconds; 0: without a limit; -1: the timeout of `init_rpc`.

        Raises:
            WorkerLost: the owner has died.
            RuntimeError: the time is over.
            Exception: the exception of the function that computes the value.
        """
        if self.is_owner():
            return self.local_value()
        self._confirm()
        peer = self._agent.peers[self._owner]
        seconds = None if timeout < 0 else timeout
        result: T = self._agent.call(peer, _value, (self._key,), {}, seconds).wait()
        return result

    def local_value(self) -> T:
        """Return the value itself, in the process that owns it.

        Raises:
            RuntimeError: in another process.
        """
        if not self.is_owner():
            raise RuntimeError(
                f"RRef.local_value: the value is in {self._agent.peers[self._owner]}, not here; "
                "to_here() copies it"
            )
        self._confirm()
        result: T = _value(self._key)
        return result

    def rpc_sync(self, timeout: float = -1.0) -> Any:
        """Return a stand-in for the value, whose methods are called at the owner."""
        return _StandIn(self, lambda future: future.wait(), timeout)

    def rpc_async(self, timeout: float = -1.0) -> Any:
        """Return a stand-in for the value, whose methods return futures."""
        return _StandIn(self, lambda future: future, timeout)

    def remote(self, timeout: float = -1.0) -> Any:
        """Return a stand-in for the value, whose methods return references to their results."""
        return _RemoteStandIn(self)

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Begin a backward pass at the value, a scalar, in the process that owns it."""
        self._confirm()
        peer = self._agent.peers[self._owner]
        args = (self, dist_autograd_ctx_id, retain_graph)
        self._agent.call(peer, _backward, args, {}, 0).wait()


def _backward(reference: RRef[Any], context_id: int, retain_graph: bool) -> None:
    value = reference.local_value()
    if context_id < 0:
        value.backward(retain_graph=retain_graph)
        return
    with _contexts.inside(None):
        _passes.run(context_id, [value], retain_graph)


class _StandIn:
    """Calls methods of a reference's value."""

    def __init__(self, reference: RRef[Any], end: Callable[[Any], Any], timeout: float) -> None:
        self._parts = reference, end, None if timeout < 0 else timeout

    def __getattr__(self, name: str) -> Callable[..., Any]:
        reference, end, timeout = self._parts

        def call(*args: Any, **kwargs: Any) -> Any:
            reference._confirm()
            here = reference._agent
            request = (reference, name, args, kwargs)
            return end(here.call(here.peers[reference._owner], _invoke, request, {}, timeout))

        return call


class _RemoteStandIn:
    """Calls methods of a reference's value, and leaves the results at the owner."""

    def __init__(self, reference: RRef[Any]) -> None:
        self._reference = reference

    def __getattr__(self, name: str) -> Callable[..., Any]:
        reference = self._reference

        def call(*args: Any, **kwargs: Any) -> Any:
            reference._confirm()
            return create(
                reference._agent, reference._owner, _invoke, (reference, name, args, kwargs), {}
            )

        return call


def create(here: Agent, owner: int, function: Any, args: Any, kwargs: Any) -> RRef[Any]:
    """Return a reference to the later result of a function in a process."""
    result: RRef[Any] = RRef.__new__(RRef)
    key = (here.rank, next(_numbers))
    peer = here.peers[owner]
    result._begin(here, owner, key, here.call(peer, _begin, (key, function, args, kwargs), {}))
    return result


def _describe(here: Agent, thing: Any) -> Any:
    """Name a reference in a message; the message has a share of the value of its own."""
    if not isinstance(thing, RRef):
        return None
    thing._confirm()
    if thing.is_owner():
        _fork(thing._key)
    else:
        with _contexts.inside(None):  # before this process can drop its own
            here.call(here.peers[thing._owner], _fork, (thing._key,), {}).wait()
    return "reference", thing._owner, thing._key


def _replace(here: Agent, name: Any) -> RRef[Any]:
    result: RRef[Any] = RRef.__new__(RRef)
    result._begin(here, name[1], name[2])
    return result


def _release(here: Agent) -> None:
    """Tell owners which references were freed."""
    for _ in range(len(here.released)):
        owner, key, accepted = here.released.popleft()
        if accepted is not None and not accepted.done():
            here.released.append((owner, key, accepted))
        elif owner == here.rank:
            _drop(key)
        else:
            here.tell(here.peers[owner], _drop, key)


def connect(here: Agent) -> None:
    """Let an agent's messages have references in them."""
    here.describe = lambda thing: _describe(here, thing)
    here.replace = lambda name: _replace(here, name)
    here.between = lambda: _release(here)
