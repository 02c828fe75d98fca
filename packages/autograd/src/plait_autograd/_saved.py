"""Hooks of saved tensors: user functions that pack and unpack the values saved for derivatives."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from plait_autograd import _autograd

Hooks = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class _Stack(threading.local):
    def __init__(self) -> None:
        self.hooks: list[Hooks] = []
        self.refusals: list[str] = []


_stack = _Stack()


class saved_tensors_hooks:  # noqa: N801 - PyTorch's name
    """A context manager in which tensors saved for derivatives pass through two functions.

    ``pack_hook(tensor)`` is called when a tensor is saved, with the operator's argument itself or
    with a handle on its result that has no history, and returns anything; ``unpack_hook(packed)``
    is called when a pass needs it and returns a tensor of the same values, shape and dtype. Both
    run without recording. The innermost pair is used. Tensors that a `Function` saves are packed as
    well. Writes to a packed tensor are not detected.

    Args:
        pack_hook: a function of a tensor; it must not write to the tensor.
        unpack_hook: a function of the result of ``pack_hook``.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.tensor([1.0, 2.0], requires_grad=True)
        >>> with pa.graph.saved_tensors_hooks(lambda t: t.tolist(), pc.tensor):
        ...     y = x * x
        >>> y.sum().backward()
        >>> x.grad.tolist()
        [2.0, 4.0]
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        for hook, name in ((pack_hook, "pack_hook"), (unpack_hook, "unpack_hook")):
            if not callable(hook):
                raise TypeError(
                    f"saved_tensors_hooks: `{name}` must be callable, got {type(hook).__name__}"
                )
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if _stack.refusals:
            raise RuntimeError(_stack.refusals[-1])
        _autograd.set_packing(len(_stack.hooks) + 1)
        _stack.hooks.append((self.pack_hook, self.unpack_hook))

    def __exit__(self, *_: object) -> None:
        _stack.hooks.pop()
        _autograd.set_packing(len(_stack.hooks))


def saved_hooks_are_active() -> bool:
    """Return whether this thread is in a `saved_tensors_hooks`.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> pa.graph.saved_hooks_are_active()
        False
    """
    return bool(_stack.hooks)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A context manager in which `saved_tensors_hooks` raises ``RuntimeError(error_message)``.

    Raises:
        RuntimeError: hooks are active when it is entered.

    Example:
        >>> import plait_autograd as pa
        >>> with pa.graph.disable_saved_tensors_hooks("not here"):
        ...     with pa.graph.save_on_cpu():
        ...         pass
        Traceback (most recent call last):
        RuntimeError: not here
    """
    if _stack.hooks:
        raise RuntimeError(error_message)
    _stack.refusals.append(error_message)
    try:
        yield
    finally:
        _stack.refusals.pop()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """A context manager in which values saved for derivatives are kept in the CPU's memory.

    Args:
        pin_memory: whether copies of a device's tensors lie in pinned memory; then the host does
            not wait for the copies.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.tensor([3.0], requires_grad=True)
        >>> with pa.graph.save_on_cpu():
        ...     y = x * x
        >>> y.backward()
        >>> x.grad.tolist()
        [6.0]
    """

    def __init__(self, pin_memory: bool = False) -> None:
        pinned = bool(pin_memory)
        super().__init__(
            lambda t: (t.device, t.to("cpu", non_blocking=pinned)),
            lambda packed: packed[1].to(packed[0], non_blocking=pinned),
        )


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[None]:
    """A context manager in which tensors that were saved for derivatives may be written in place.

    Each saved tensor is copied, so that derivatives read the values of the time of the call. A pass
    over what was recorded within must run within, too: the copies are freed at the end.

    Raises:
        AssertionError: a pass after the end reads a copy.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(2, requires_grad=True)
        >>> with pa.graph.allow_mutation_on_saved_tensors():
        ...     y = x.clone()
        ...     z = (y * y).sum()
        ...     _ = y.mul_(10)
        ...     z.backward()
        >>> x.grad.tolist()
        [2.0, 2.0]
    """
    copies: list[Any] | None = []

    def pack(tensor: Any) -> int:
        assert copies is not None
        copies.append(tensor.detach().clone())
        return len(copies) - 1

    def unpack(number: int) -> Any:
        if copies is None:
            raise AssertionError(
                "allow_mutation_on_saved_tensors: a pass over what was recorded within it must "
                "run within it: the copies of the saved tensors are gone (Trying to backward "
                "outside of the context in which the graph was recorded)"
            )
        return copies[number]

    try:
        with saved_tensors_hooks(pack, unpack):
            yield
    finally:
        copies = None


def pack(tensor: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return what the engine keeps for the tensor: (unpack hook, result of the pack hook)."""
    pack_hook, unpack_hook = _stack.hooks[-1]
    before = _autograd.set_packing(0)
    recording = _autograd.set_enabled(False)
    try:
        return unpack_hook, pack_hook(tensor)
    finally:
        _autograd.set_enabled(recording)
        _autograd.set_packing(before)


def unpack(entry: tuple[Callable[[Any], Any], Any]) -> Any:
    """Return the tensor for a result of `pack`."""
    unpack_hook, packed = entry
    recording = _autograd.set_enabled(False)
    try:
        tensor = unpack_hook(packed)
    finally:
        _autograd.set_enabled(recording)
    if not _autograd.is_tensor(tensor):
        raise TypeError(
            "saved_tensors_hooks: the unpack hook must return a tensor; got "
            f"{type(tensor).__name__}"
        )
    return tensor
