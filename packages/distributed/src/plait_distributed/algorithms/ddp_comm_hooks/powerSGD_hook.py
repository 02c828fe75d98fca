"""Gradients sent as products of two thin matrices: PowerSGD."""

from __future__ import annotations

from typing import Any

from plait_distributed._arguments import core
from plait_distributed._buckets import GradBucket
from plait_distributed._futures import Future
from plait_distributed._process_group import ProcessGroup
from plait_distributed._reductions import all_reduce
from plait_distributed._world import default_group
from plait_distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "powerSGD_hook"]


class PowerSGDState:
    """The options and the memory of `powerSGD_hook`.

    Args:
        process_group: None: all processes.
        matrix_approximation_rank: the width of the thin matrices.
        start_powerSGD_iter: how many iterations reduce whole gradients first.
        min_compression_rate: matrices that are not at least so many times smaller go as they are.
        use_error_feedback: whether what an iteration leaves out is added to the next gradient.
        warm_start: whether the last iteration's second matrix is the first guess.
        orthogonalization_epsilon: added to lengths by which columns are divided.
        random_seed: of the first guess, the same on all ranks.
        compression_stats_logging_frequency, batch_tensors_with_same_shape: unused.

    Example:
        >>> from plait_distributed.algorithms.ddp_comm_hooks.powerSGD_hook import (
        ...     PowerSGDState, powerSGD_hook
        ... )
        >>> def train(model):
        ...     state = PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=10)
        ...     model.register_comm_hook(state, powerSGD_hook)
    """

    def __init__(
        self,
        process_group: ProcessGroup | None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if matrix_approximation_rank < 1:
            raise ValueError(
                "PowerSGDState: `matrix_approximation_rank` must be positive, got "
                f"{matrix_approximation_rank}"
            )
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "PowerSGDState: `start_powerSGD_iter` must be above 1 with error feedback or a "
                "warm start: buckets change after the first iteration"
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.generator = core().Generator()
        self.generator.manual_seed(random_seed)
        self.iter = 0
        self.error_dict: dict[int, Any] = {}
        self.q_memory_dict: dict[int, list[Any]] = {}

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration at its last bucket."""
        if bucket.is_last():
            self.iter += 1


def _compressible(gradient: Any, state: PowerSGDState) -> bool:
    n = gradient.shape[0] if gradient.ndim else 1
    m = gradient.numel() // n if n else 0
    rank = min(n, m, state.matrix_approximation_rank)
    return gradient.ndim > 1 and (n + m) * rank * state.min_compression_rate < n * m


def _orthogonalize(matrix: Any, epsilon: float) -> None:
    """Make columns orthonormal, one behind the other (Gram and Schmidt)."""
    for i in range(matrix.shape[1]):
        column = matrix[:, i : i + 1]
        if i:
            done = matrix[:, :i]
            column -= done @ (done.t() @ column)
        length = column.norm() + epsilon
        if length.item() > 0:
            column.div_(length)


def powerSGD_hook(  # noqa: N802 - PyTorch's name
    state: PowerSGDState, bucket: GradBucket
) -> Future:
    """Return the mean of gradients over the ranks, in which matrices are approximated.

    A gradient M of n rows and m columns goes as P of n, and Q of m rows, with few columns:
    P = M Q, its mean made orthonormal, then the mean of Q = M^T P; the result is P Q^T. What it
    leaves out is added to the next iteration's gradient. Vectors go as they are.

    Reference:
        Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for
        Distributed Optimization", 2019.

    Args:
        state: The state of the hook, which is kept between steps.
        bucket: The gradients.

    Example:
        >>> from plait_distributed.algorithms.ddp_comm_hooks.powerSGD_hook import (
        ...     PowerSGDState, powerSGD_hook
        ... )
        >>> def train(model):
        ...     model.register_comm_hook(PowerSGDState(None), powerSGD_hook)
    """
    iteration = state.iter
    state.maybe_increase_iter(bucket)
    if iteration < state.start_powerSGD_iter:
        return allreduce_hook(state.process_group, bucket)
    buffer, number = bucket.buffer(), bucket.index()
    if state.use_error_feedback:
        error = state.error_dict.get(number)
        if error is not None:
            buffer.add_(error)
        clone = buffer.clone()
    group = state.process_group or default_group("powerSGD_hook")
    matrices = [x.view(x.shape[0], -1) for x in bucket.gradients() if _compressible(x, state)]
    others = [x for x in bucket.gradients() if not _compressible(x, state)]

    def approximate(_: Any) -> Any:
        _mean(group, others)
        guesses = _guesses(state, number, matrices)
        columns = [m @ q for m, q in zip(matrices, guesses, strict=True)]
        _mean(group, columns)
        for p in columns:
            _orthogonalize(p, state.orthogonalization_epsilon)
        rows = [m.t() @ p for m, p in zip(matrices, columns, strict=True)]
        _mean(group, rows)
        for m, p, q in zip(matrices, columns, rows, strict=True):
            m.copy_(p @ q.t())
        if state.warm_start:
            state.q_memory_dict[number] = rows
        if state.use_error_feedback:
            state.error_dict[number] = clone - buffer
        return buffer

    ready = Future()
    ready.set_result(buffer)
    return ready.then(approximate)


def _guesses(state: PowerSGDState, number: int, matrices: list[Any]) -> list[Any]:
    guesses = state.q_memory_dict.get(number)
    if guesses is None or not state.warm_start:
        rank = state.matrix_approximation_rank
        guesses = [
            core().randn(m.shape[1], min(rank, *m.shape), generator=state.generator).to(m.dtype)
            for m in matrices
        ]
    guesses = [q.clone() for q in guesses]
    for q in guesses:
        _orthogonalize(q, state.orthogonalization_epsilon)
    return guesses


def _mean(group: ProcessGroup, tensors: list[Any]) -> None:
    """Make tensors the means over the ranks, in one collective."""
    if not tensors:
        return
    flat = core().cat([x.reshape(-1) for x in tensors])
    all_reduce(flat, group=group)
    flat.div_(group.size())
    at = 0
    for x in tensors:
        x.copy_(flat[at : at + x.numel()].view(x.shape))
        at += x.numel()
