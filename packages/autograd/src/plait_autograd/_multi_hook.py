"""One hook for the gradients of several tensors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from plait_autograd import _autograd
from plait_autograd._autograd import Node
from plait_autograd._removable_handle import RemovableHandle

__all__ = ["MultiHandle", "register_multi_grad_hook"]

# passes of one thread whose gradients are incomplete: nested passes, or passes that failed
_KEPT = 8


class MultiHandle(RemovableHandle):
    """A handle to remove a hook of several tensors; see `register_multi_grad_hook`.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(1, requires_grad=True)
        >>> handle = pa.graph.register_multi_grad_hook((x,), print)
        >>> handle.remove()
        >>> (x * 2).backward()
    """

    __slots__ = ("_handles",)

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        super().__init__(None, _autograd.unhook)
        self._handles = handles

    def remove(self) -> None:
        """Remove the hook from all of the tensors; a second call does nothing."""
        for handle in self._handles:
            handle.remove()


class _All:
    """Collects the gradients of a pass and calls the function when the last one is complete."""

    def __init__(self, nodes: list[Node | None], fn: Callable[[Sequence[Any]], Any]) -> None:
        self._nodes = nodes
        self._fn = fn
        self._passes = threading.local()

    def __call__(self, i: int, gradient: Any) -> None:
        result: dict[int, tuple[list[Any], list[int]]] = self._passes.__dict__.setdefault("of", {})
        number = _autograd.running_pass()
        entry = result.get(number)
        if entry is None:
            while len(result) >= _KEPT:
                del result[min(result)]
            coming = sum(node is not None and _autograd.will_run(node) for node in self._nodes)
            entry = result[number] = ([None] * len(self._nodes), [coming])
        gradients, left = entry
        gradients[i] = gradient
        left[0] -= 1
        if left[0] <= 0:
            del result[number]
            self._fn(gradients)


class _Any:
    """Calls the function with the first gradient of each pass."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self._fn = fn
        self._guard = threading.Lock()
        self._seen: set[int] = set()

    def __call__(self, _: int, gradient: Any) -> None:
        number = _autograd.running_pass()
        with self._guard:
            if number in self._seen:
                return
            self._seen.add(number)
            if len(self._seen) > 64:  # passes that ended long ago
                self._seen = set(sorted(self._seen)[-32:])
        self._fn(gradient)


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[[Any], Any], *, mode: str = "all"
) -> MultiHandle:
    """Call a function once in each pass, when the gradients of several tensors are complete.

    With ``mode="all"`` it is called as ``fn(grads)`` when the last of them is complete; ``grads``
    has an entry for each tensor, None for those that the pass does not reach. With ``mode="any"``
    it is called as ``fn(grad)`` with the first of them. It cannot change gradients, and its result
    is ignored.

    Args:
        tensors: they require grad; leaves or not.
        fn: called on the thread that runs the pass.
        mode: ``"all"`` or ``"any"``.

    Raises:
        ValueError: another mode.
        RuntimeError: a tensor does not require grad.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x, y, z = (pc.ones(1, requires_grad=True) for _ in range(3))
        >>> handle = pa.graph.register_multi_grad_hook(
        ...     (x, y, z), lambda gs: print([None if g is None else g.item() for g in gs])
        ... )
        >>> (x * 2 + y * 3).backward()
        [2.0, 3.0, None]
    """
    if mode not in ("all", "any"):
        raise ValueError(f'register_multi_grad_hook: `mode` must be "all" or "any", got {mode!r}')
    if not callable(fn):
        raise TypeError(f"register_multi_grad_hook: `fn` must be callable, got {type(fn).__name__}")
    each = tuple(tensors)
    for i, tensor in enumerate(each):
        if not _autograd.is_tensor(tensor):
            raise TypeError(
                f"register_multi_grad_hook: tensor {i} must be a tensor, "
                f"got {type(tensor).__name__}"
            )
        if not _autograd.requires_grad(tensor):
            raise RuntimeError(f"register_multi_grad_hook: tensor {i} must require grad")
    hook: _All | _Any = _Any(fn)
    if mode == "all":
        hook = _All([_autograd.gradient_edge(tensor)[0] for tensor in each], fn)
    return MultiHandle(tuple(_hang(tensor, hook, i) for i, tensor in enumerate(each)))


def _hang(tensor: Any, hook: _All | _Any, i: int) -> RemovableHandle:
    def arrived(gradient: Any) -> None:
        hook(i, gradient)

    return RemovableHandle(_autograd.hook_tensor(tensor, 0, arrived), _autograd.unhook)
