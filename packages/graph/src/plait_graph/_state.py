"""What a call of a function may change, kept so that another call can begin with the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import plait_autograd
import plait_core as pc
from plait_abi.binding import default_generators
from plait_graph import _graph
from plait_graph._differences import same_elements

_MISSING = object()


class State:
    """Elements of tensors, gradients, numbers of optimizers, generators, and values of Python.

    Args:
        tensors: those that the call may write to; their gradients belong to the state.
        optimizers: their groups and their state belong to it.
        entries: values of Python, in the form that `plait_graph._graph.Guard` has.
    """

    def __init__(
        self, tensors: Iterable[pc.Tensor], optimizers: list[Any], entries: list[tuple[Any, ...]]
    ) -> None:
        known = {id(tensor): tensor for tensor in tensors}
        leaves = [t for t in known.values() if t.requires_grad and t.is_leaf]
        self._grads = [(tensor, tensor.grad) for tensor in leaves]
        known.update((id(grad), grad) for _, grad in self._grads if grad is not None)
        with plait_autograd.no_grad():
            own = [
                _distinct_elements(tensor)
                for tensor in known.values()
                if _graph.has_own_elements(tensor) and tensor.device.type != "meta"
            ]
            self._tensors = [(tensor, tensor._version, tensor.clone()) for tensor in own]
        self._generators = [(each, each.get_state()) for each in default_generators()]
        dicts = [group for each in optimizers for group in each.param_groups]
        dicts += [state for each in optimizers for state in each.state.values()]
        self._dicts = [(each, dict(each)) for each in dicts]
        self._entries = entries

    def restore(self) -> None:
        """Let all be as it was."""
        for container, items in self._dicts:
            container.clear()
            container.update(items)
        for entry in self._entries:
            _restore_entry(*entry)
        for tensor, grad in self._grads:
            if tensor.grad is not grad:
                tensor.grad = grad
        with plait_autograd.no_grad():
            for tensor, version, elements in self._tensors:
                if tensor._version != version or not same_elements(tensor, elements):
                    tensor.copy_(elements)
        for generator, state in self._generators:
            generator.set_state(state)


def _distinct_elements(tensor: pc.Tensor) -> pc.Tensor:
    """Return a view that has each element of an expanded tensor once."""
    tensor = tensor.detach()
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _restore_entry(container: Any, *rest: Any) -> None:
    if len(rest) == 2:
        key, value = rest
        if isinstance(container, list):
            if key == len(container):
                container.append(value)
            container[key] = value
        elif container.get(key, _MISSING) is not value:
            container[key] = value
    elif hasattr(container, "cell_contents"):
        container.cell_contents = rest[0]
    else:
        keys = range(len(container)) if isinstance(container, list) else container
        for key in reversed(list(keys)[rest[0] :]):
            del container[key]
