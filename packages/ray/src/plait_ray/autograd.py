"""Gradients through remote calls, under the names of `torch.distributed.autograd`.

    with context() as context_id:
        loss = rpc.rpc_sync("worker", model, args=(x,)).sum()
        backward(context_id, [loss])
        gradients = get_gradients(context_id)

Remote calls within the context, and those that they make, are part of the graph. Gradients go into
the context of each process, not into `.grad`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import plait_autograd as pa
from plait_ray import _contexts, _passes
from plait_ray._agent import agent

__all__ = ["backward", "context", "get_gradients", "is_available"]


def is_available() -> bool:
    """Return True: this package is there.

    Example:
        >>> import plait_ray.autograd
        >>> plait_ray.autograd.is_available()
        True
    """
    return True


@contextlib.contextmanager
def context() -> Iterator[int]:
    """Record remote calls of this thread, and give the number that `backward` takes.

    Raises:
        RuntimeError: without `init_rpc`, or within another context.

    Example:
        >>> import plait_ray.autograd
        >>> with plait_ray.autograd.context() as context_id:
        ...     pass
        Traceback (most recent call last):
        RuntimeError: context: there is no RPC agent; call init_rpc first
    """
    agent("context")
    if _contexts.current() is not None:
        raise RuntimeError("context: this thread is in another context")
    result = _contexts.enter()
    try:
        with _contexts.inside(result):
            yield result.number
    finally:
        _drop(result.number)


def _drop(number: int) -> None:
    """Forget a context here and in all processes that it came to."""
    dropped = _contexts.drop(number)
    if dropped is not None:
        here = agent("context")
        for rank in dropped.others - {here.rank}:
            here.later.append((rank, _drop, (number,)))


def backward(context_id: int, roots: Sequence[Any], retain_graph: bool = False) -> None:
    """Compute gradients of the sum of the roots in all processes of a context.

    Args:
        context_id: what `context` gave.
        roots: tensors of this process with one element each.
        retain_graph: another pass may follow.

    Raises:
        RuntimeError: a root is no scalar or requires no gradient, or the graph was freed.
        WorkerLost: a process of the context has died.

    Example:
        >>> import plait_ray.autograd
        >>> plait_ray.autograd.backward(1, [])
        Traceback (most recent call last):
        RuntimeError: backward: there is no RPC agent; call init_rpc first
    """
    agent("backward")
    with _contexts.inside(None):
        _passes.run(context_id, list(roots), retain_graph)


class _Gradients(Mapping[Any, Any]):
    """Gradients by tensors of this process that require one."""

    def __init__(self, by_node: dict[Any, Any]) -> None:
        self._by_node = by_node

    def __getitem__(self, tensor: Any) -> Any:
        result = self.get(tensor)
        if result is None:
            raise KeyError(f"get_gradients: no gradient for a tensor of shape {tensor.shape}")
        return result

    def get(self, tensor: Any, default: Any = None) -> Any:
        """Return the gradient of a tensor, or the default."""
        if not tensor.requires_grad:
            return default
        return self._by_node.get(pa.graph.get_gradient_edge(tensor).node, default)

    def __contains__(self, tensor: object) -> bool:
        return self.get(tensor) is not None

    def __len__(self) -> int:
        return len(self._by_node)

    def __iter__(self) -> NoReturn:
        raise NotImplementedError(
            "get_gradients: the tensors cannot be listed, as the graph does not know them; ask for "
            "those of a model: gradients[parameter], or `parameter in gradients`"
        )

    def __repr__(self) -> str:
        return f"<gradients of {len(self)} tensors>"


def get_gradients(context_id: int) -> Mapping[Any, Any]:
    """Return the gradients that passes of a context left in this process.

    Args:
        context_id: what `context` gave, here or in the process that called this one.

    Returns:
        A mapping from leaf tensors, such as parameters, to gradients. It has a length and answers
        ``tensor in gradients``, but its keys cannot be listed.

    Raises:
        RuntimeError: this process had no part in the context.

    Example:
        >>> import plait_ray.autograd
        >>> plait_ray.autograd.get_gradients(1)
        Traceback (most recent call last):
        RuntimeError: get_gradients: there is no context 1 in this process
    """
    result = _contexts.known("get_gradients", context_id)
    with result.lock:
        return _Gradients(dict(result.gradients))
