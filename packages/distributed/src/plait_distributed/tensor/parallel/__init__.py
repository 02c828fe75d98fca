"""Layers whose parameters processes share, under the names of `torch.distributed.tensor.parallel`."""

from __future__ import annotations

from plait_distributed.tensor.parallel._module import parallelize_module
from plait_distributed.tensor.parallel._style import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "parallelize_module",
]
