"""The graph of a backward pass: its nodes, their hooks, and the tensors that they save."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from plait_autograd import _autograd
from plait_autograd._autograd import Node
from plait_autograd._edge import GradientEdge
from plait_autograd._removable_handle import RemovableHandle
from plait_autograd._saved import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_hooks_are_active,
    saved_tensors_hooks,
)

__all__ = [
    "allow_mutation_on_saved_tensors",
    "GradientEdge",
    "Node",
    "RemovableHandle",
    "at_end_of_pass",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "running_node",
    "running_pass",
    "set_gradient_place",
    "save_on_cpu",
    "saved_hooks_are_active",
    "saved_tensors_hooks",
    "to_dot",
    "will_run",
]


def at_end_of_pass(fn: Callable[[], Any]) -> None:
    """Call a function once when the backward pass that this thread runs has ended.

    It is called on this thread, after all gradients are computed and before `backward` or `grad`
    returns, whether the graph is kept or not. Functions are called in the order in which they were
    added; one may add others. They run within the grad mode of the pass. A pass that fails calls
    none. If a function raises an error, the functions after it are not called, and `backward`
    raises the error; the gradients of the leaves stay. Within a pass that another pass runs, the
    function belongs to the inner one.

    Args:
        fn: called without arguments.

    Raises:
        RuntimeError: this thread runs no backward pass.
        TypeError: `fn` is not callable.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(2, requires_grad=True)
        >>> y = x * 3
        >>> handle = y.register_hook(
        ...     lambda g: pa.graph.at_end_of_pass(lambda: print("end:", x.grad.tolist()))
        ... )
        >>> y.sum().backward()
        end: [3.0, 3.0]
    """
    if not callable(fn):
        raise TypeError(f"at_end_of_pass: a callable is required, got {type(fn).__name__}")
    _autograd.at_end_of_pass(fn)


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the gradient edge of a tensor; of a leaf, the node that adds to its ``.grad``.

    Args:
        tensor: The tensor.

    Raises:
        RuntimeError: the tensor does not require grad.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> pa.graph.get_gradient_edge(pc.ones(1, requires_grad=True)).node.name()
        'AccumulateGrad'
    """
    node, output = _autograd.gradient_edge(tensor)
    if node is None:
        raise RuntimeError("get_gradient_edge: the tensor must require grad")
    description = _autograd.shown(node)
    return GradientEdge(description, output, None if isinstance(description, Node) else node)


def increment_version(tensor: Any) -> None:
    """Record that a tensor's memory was written to outside of plait.

    Args:
        tensor: a tensor, or an iterable of them.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(2)
        >>> before = x._version
        >>> pa.graph.increment_version(x)
        >>> x._version - before
        1
    """
    for each in (tensor,) if _autograd.is_tensor(tensor) else tensor:
        _autograd.touch(each)


def running_node() -> Any:
    """Return the node that the backward pass of this thread is at; None outside of a pass.

    Hooks of its gradients, its own hooks and the unpack hooks of its saved tensors are called while
    the pass is at a node. Of the call of a `Function` it is the context, as in ``grad_fn``.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(1, requires_grad=True)
        >>> y = x * 2
        >>> handle = y.register_hook(lambda g: print(pa.graph.running_node() == y.grad_fn))
        >>> y.backward()
        True
        >>> pa.graph.running_node() is None
        True
    """
    return _autograd.running_node()


def running_pass() -> int:
    """Return the number of the backward pass that this thread runs; 0 if it runs none.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> pa.graph.running_pass()
        0
        >>> x = pc.ones(1, requires_grad=True)
        >>> handle = x.register_hook(lambda g: print(pa.graph.running_pass() > 0))
        >>> x.sum().backward()
        True
    """
    return _autograd.running_pass()


def set_gradient_place(leaf: Any, place: Any) -> None:
    """Say where new gradients of a leaf lie: in memory that the caller owns, such as a bucket.

    From now on a backward pass that finds ``leaf.grad`` None makes the gradient there and sets
    ``leaf.grad`` to `place`. Where the operator's derivative allows it, it is computed in this
    memory; otherwise it is copied. Gradients of earlier passes that lie there are overwritten.

    Args:
        leaf: a tensor that requires grad and has no history.
        place: a tensor of its shape, dtype and device; None ends it. One that is in C order and
            begins at a multiple of 64 bytes needs no copy.

    Raises:
        ValueError: `leaf` is no leaf, or `place` does not fit.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x, place = pc.ones(2, requires_grad=True), pc.zeros(2)
        >>> pa.graph.set_gradient_place(x, place)
        >>> (x * 3).sum().backward()
        >>> place
        tensor([3., 3.])
    """
    _autograd.set_gradient_place(get_gradient_edge(leaf).node, place)


def will_run(node: Node) -> bool:
    """Return whether the backward pass that this thread runs will reach a node, or has.

    Args:
        node: of the graph of the pass, such as that of a leaf's `get_gradient_edge`.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x, y = (pc.ones(1, requires_grad=True) for _ in range(2))
        >>> nodes = [pa.graph.get_gradient_edge(leaf).node for leaf in (x, y)]
        >>> handle = x.register_hook(lambda g: print([pa.graph.will_run(n) for n in nodes]))
        >>> (x * 2).sum().backward()
        [True, False]
    """
    return _autograd.will_run(node)


# passes of one thread whose gradients are incomplete: nested passes, or passes that failed
_MOST_PASSES = 8


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
            while len(result) >= _MOST_PASSES:
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


def to_dot(tensors: Any, params: Mapping[str, Any] | None = None) -> str:
    """Return the graph behind results in the DOT language; no library is needed for it.

    Boxes are operators, rounded boxes are leaves; arrows point in the direction in which gradients
    flow. Nodes are numbered in the order of their recording, so that the same program gives the
    same text.

    Args:
        tensors: a result or a sequence of them.
        params: names for leaves (for example ``dict(model.named_parameters())``).

    Raises:
        RuntimeError: a result does not require grad.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(2, requires_grad=True)
        >>> print(pa.graph.to_dot(x * x, {"x": x}))
        digraph {
          n0 [label="MulBackward" shape=box];
          n1 [label="x" shape=box style=rounded];
          n0 -> n1;
          n0 -> n1;
        }
    """
    if not isinstance(tensors, Iterable):
        raise TypeError(
            "to_dot: `tensors` must be a tensor or a sequence of tensors, "
            f"got {type(tensors).__name__}"
        )
    roots = [tensors] if _autograd.is_tensor(tensors) else list(tensors)
    names: dict[Node, str] = {}
    for name, tensor in (params or {}).items():
        node, _ = _autograd.gradient_edge(tensor)
        if node is not None:
            names.setdefault(node, name)
    waiting: list[Node] = []
    for i, root in enumerate(roots):
        node, _ = _autograd.gradient_edge(root)
        if node is None:
            raise RuntimeError(f"to_dot: result {i} must require grad")
        waiting.append(node)
    visited: dict[Node, tuple[tuple[Node | None, int], ...]] = {}
    while waiting:
        node = waiting.pop()
        if node in visited:
            continue
        visited[node] = _autograd.edges(node)
        waiting += [to for to, _ in reversed(visited[node]) if to is not None]
    # the latest first; leaves all have the same number and keep the order in which they were found
    order = sorted(visited, key=lambda node: (node.name() == "AccumulateGrad", -node.sequence))
    number = {node: i for i, node in enumerate(order)}
    lines = ["digraph {"]
    for node in order:
        leaf = node.name() == "AccumulateGrad"
        label = names.get(node, node.name()).replace("\\", "\\\\").replace('"', '\\"')
        style = " style=rounded" if leaf else ""
        lines.append(f'  n{number[node]} [label="{label}" shape=box{style}];')
    for node in order:
        lines += [
            f"  n{number[node]} -> n{number[to]};" for to, _ in visited[node] if to is not None
        ]
    return "\n".join([*lines, "}"])
