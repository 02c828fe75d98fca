"""An optimizer whose parameters are in several processes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from plait_ray import _contexts, autograd, rpc

__all__ = ["DistributedOptimizer"]

_one_step = threading.Lock()


class _Local:
    """The optimizer of the parameters of one process."""

    def __init__(self, kind: Any, references: Sequence[Any], args: Any, kwargs: Any) -> None:
        self.parameters = [reference.local_value() for reference in references]
        self.optimizer = kind(self.parameters, *args, **kwargs)

    def step(self, context_id: int) -> None:
        """Take a step with the gradients of a context."""
        gradients = autograd.get_gradients(context_id)
        with _one_step:
            for parameter in self.parameters:
                parameter.grad = gradients.get(parameter)
            try:
                self.optimizer.step()
            finally:
                for parameter in self.parameters:
                    parameter.grad = None


class DistributedOptimizer:
    """An optimizer for parameters in several processes: each process keeps the state of its own.

    Args:
        optimizer_class: such as `plait_optim.SGD`; each process makes one for its parameters.
        params_rref: references to the parameters (`rpc.RRef`), in any order.
        args: for the optimizer.
        kwargs: for the optimizer.

    Raises:
        ValueError: there are no parameters.

    Example:
        >>> from plait_ray.optim import DistributedOptimizer
        >>> DistributedOptimizer(object, [])
        Traceback (most recent call last):
        ValueError: DistributedOptimizer: `params_rref` must have references to parameters, got none
    """

    def __init__(
        self, optimizer_class: Any, params_rref: Sequence[Any], *args: Any, **kwargs: Any
    ) -> None:
        by_owner: dict[Any, list[Any]] = {}
        for reference in params_rref:
            by_owner.setdefault(reference.owner(), []).append(reference)
        if not by_owner:
            raise ValueError(
                "DistributedOptimizer: `params_rref` must have references to parameters, got none"
            )
        self.remote_optimizers = [
            rpc.remote(owner, _Local, args=(optimizer_class, references, args, kwargs))
            for owner, references in by_owner.items()
        ]
        for each in self.remote_optimizers:
            rpc.rpc_sync(each.owner(), _wait_until_made, args=(each,))

    def step(self, context_id: int) -> None:
        """Take a step in all processes, with the gradients of a context.

        Args:
            context_id: The number of the context, as its `with` block gives it.
        """
        _contexts.known("step", context_id)
        with _contexts.inside(None):
            steps = [each.rpc_async().step(context_id) for each in self.remote_optimizers]
            for step in steps:
                step.wait()


def _wait_until_made(reference: Any) -> None:
    """Wait until the optimizer is made; raise the error if it could not be."""
    reference.local_value()
