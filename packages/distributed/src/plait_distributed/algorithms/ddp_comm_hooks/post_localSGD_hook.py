"""Gradients of a few ranks, for optimizers that average parameters now and then."""

from __future__ import annotations

from plait_distributed._buckets import GradBucket
from plait_distributed._futures import Future
from plait_distributed._process_group import ProcessGroup
from plait_distributed._world import new_subgroups
from plait_distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from plait_distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """The options of `post_localSGD_hook`. All processes make it.

    Args:
        process_group: of the first iterations; None: all processes.
        subgroup: of later ones; None: the processes of this host.
        start_localSGD_iter: how many iterations reduce over all first.
        post_local_gradient_allreduce: whether later ones reduce over the subgroup.

    Example:
        >>> from plait_distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
        ...     PostLocalSGDState, post_localSGD_hook
        ... )
        >>> def train(model, mine):
        ...     model.register_comm_hook(PostLocalSGDState(None, mine, 100), post_localSGD_hook)
    """

    def __init__(
        self,
        process_group: ProcessGroup | None,
        subgroup: ProcessGroup | None,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group = process_group
        self.subgroup = new_subgroups()[0] if subgroup is None else subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration at its last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(  # noqa: N802 - PyTorch's name
    state: PostLocalSGDState, bucket: GradBucket
) -> Future:
    """Return the mean over all ranks at first, and over a few, or none, from some iteration on.

    `plait.distributed.optim.PostLocalSGDOptimizer` averages parameters then.

    Reference:
        Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", 2018.

    Args:
        state: The state of the hook, which is kept between steps.
        bucket: The gradients.

    Example:
        >>> from plait_distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
        ...     PostLocalSGDState, post_localSGD_hook
        ... )
        >>> def train(model, mine):
        ...     model.register_comm_hook(PostLocalSGDState(None, mine, 100), post_localSGD_hook)
    """
    iteration = state.iter
    state.maybe_increase_iter(bucket)
    if iteration < state.start_localSGD_iter:
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    return allreduce_hook(state.subgroup, bucket)
