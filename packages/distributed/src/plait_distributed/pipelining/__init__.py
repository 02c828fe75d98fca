"""Models whose layers lie on several ranks, under the names of `torch.distributed.pipelining`."""

from __future__ import annotations

from plait_distributed.pipelining._schedules import (
    PipelineScheduleSingle,
    Schedule1F1B,
    ScheduleGPipe,
)
from plait_distributed.pipelining._stage import PipelineStage

__all__ = ["PipelineScheduleSingle", "PipelineStage", "Schedule1F1B", "ScheduleGPipe"]
