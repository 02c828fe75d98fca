"""The graph of a backward pass: its nodes, their hooks, and the tensors that they save."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_autograd import _autograd
from plait_autograd._autograd import Node
from plait_autograd._dot import to_dot
from plait_autograd._edge import GradientEdge
from plait_autograd._multi_hook import register_multi_grad_hook
from plait_autograd._removable_handle import RemovableHandle
from plait_autograd._saved import (
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_hooks_are_active,
    saved_tensors_hooks,
)

__all__ = [
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
