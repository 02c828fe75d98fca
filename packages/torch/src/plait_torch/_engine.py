"""What `torch._C` says of backward passes, and the engine object of `torch.autograd.Variable`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plait

__all__ = [
    "_EngineBase",
    "_ImperativeEngine",
    "_current_autograd_node",
    "_current_graph_task_id",
    "_will_engine_execute_node",
]


def _current_graph_task_id() -> int:
    """Return the number of the backward pass that this thread runs, or -1.

    Example:
        >>> from plait_torch._engine import _current_graph_task_id
        >>> _current_graph_task_id()
        -1
    """
    return plait.autograd.graph.running_pass() or -1


def _current_autograd_node() -> Any:
    """Return the node that the backward pass of this thread is at, or None."""
    return plait.autograd.graph.running_node()


def _will_engine_execute_node(node: Any) -> bool:
    """Return whether the backward pass that this thread runs will reach a node, or has."""
    if not plait.autograd.graph.running_pass():
        raise RuntimeError(
            "_get_should_execute_nodes should only be called during the backward pass"
        )
    return bool(plait.autograd.graph.will_run(node))


class _EngineBase:
    """What runs backward passes; `torch.autograd.Variable` has one as ``_execution_engine``.

    Example:
        >>> import plait
        >>> from plait_torch._autograd import Variable
        >>> queue = Variable._execution_engine.queue_callback
        >>> x = plait.ones(1, requires_grad=True)
        >>> y = x * 2
        >>> handle = y.register_hook(lambda g: queue(lambda: print(x.grad)))
        >>> y.backward()
        tensor([2.])
    """

    def queue_callback(self, callback: Callable[[], Any]) -> None:
        """Call a function once when the backward pass that this thread runs has ended."""
        if not plait.autograd.graph.running_pass():
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        plait.autograd.graph.at_end_of_pass(callback)

    def is_checkpoint_valid(self) -> bool:
        """Return True: `checkpoint` works in all backward passes."""
        return True

    def run_backward(
        self,
        tensors: Sequence[Any],
        grad_tensors: Sequence[Any],
        keep_graph: bool,
        create_graph: bool,
        inputs: Sequence[Any] = (),
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ) -> Any:
        """Run a backward pass: add to ``.grad``, or return the gradients of ``inputs``."""
        if accumulate_grad or not inputs:
            plait.autograd.backward(
                tensors, grad_tensors, keep_graph, create_graph, inputs=inputs or None
            )
            return None
        return plait.autograd.grad(
            tensors, inputs, grad_tensors, keep_graph, create_graph, allow_unused=allow_unreachable
        )


class _ImperativeEngine(_EngineBase):
    """The class of the engine."""
