"""Averagers: they average parameters over the ranks in some iterations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plait_abi.components import require
from plait_distributed._arguments import core
from plait_distributed._process_group import ProcessGroup
from plait_distributed._reductions import all_reduce
from plait_distributed._world import default_group

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager:
    """The base class: `average_parameters` is called behind each step.

    Args:
        process_group: None: all processes.

    Example:
        >>> from plait_distributed.algorithms.model_averaging.averagers import (
        ...     ModelAverager, PeriodicModelAverager
        ... )
        >>> issubclass(PeriodicModelAverager, ModelAverager)
        True
    """

    def __init__(self, process_group: ProcessGroup | None = None) -> None:
        self.process_group = process_group or default_group(type(self).__name__)
        self.step = 0

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters if this iteration is one of the averaging ones."""
        raise NotImplementedError(f"{type(self).__name__}: define average_parameters")


class PeriodicModelAverager(ModelAverager):
    """Average every `period` iterations.

    Args:
        period: of iterations.
        warmup_steps: iterations at the beginning that do not average.
        process_group: None: all processes.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed.algorithms.model_averaging.averagers import (
        ...     PeriodicModelAverager
        ... )
        >>> dist.init_process_group(init_method="shm:averager", rank=0, world_size=1)
        >>> averager = PeriodicModelAverager(period=4, warmup_steps=100)
        >>> averager.average_parameters([pc.ones(2)])
        >>> dist.destroy_process_group()
    """

    def __init__(
        self, period: int, warmup_steps: int = 0, process_group: ProcessGroup | None = None
    ) -> None:
        super().__init__(process_group)
        if period < 1 or warmup_steps < 0:
            raise ValueError(
                "PeriodicModelAverager: `period` must be positive and `warmup_steps` not negative, "
                f"got {period} and {warmup_steps}"
            )
        self.period = period
        self.warmup_steps = warmup_steps

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or those of an optimizer's groups, in every `period`-th call."""
        due = self.step >= self.warmup_steps
        if due and (self.step - self.warmup_steps) % self.period == 0:
            results = [q for p in params for q in (p["params"] if isinstance(p, dict) else [p])]
            with require("autograd").no_grad():
                _average(results, self.process_group)
        self.step += 1


def _average(parameters: list[Any], group: ProcessGroup) -> None:
    by_dtype: dict[Any, list[Any]] = {}
    for p in parameters:
        by_dtype.setdefault(p.dtype, []).append(p.detach())
    for some in by_dtype.values():
        flat = core().cat([p.reshape(-1) for p in some])
        all_reduce(flat, group=group)
        flat.div_(group.size())
        at = 0
        for p in some:
            p.copy_(flat[at : at + p.numel()].view(p.shape))
            at += p.numel()
