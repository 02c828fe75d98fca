"""Batch norm over the batches of all processes."""

from __future__ import annotations

from typing import Any

from plait_abi.components import require
from plait_distributed._arguments import core
from plait_distributed._process_group import ProcessGroup
from plait_distributed._world import is_initialized, member_of
from plait_distributed.nn.functional import all_reduce

_SyncBatchNorm: Any = require("nn").SyncBatchNorm


class SyncBatchNorm(_SyncBatchNorm):  # type: ignore[misc]
    """Normalise each channel over the batches of all processes of a group.

    In training every process computes with the mean and variance of all batches together, also if
    they have different sizes, and keeps the same running statistics. In evaluation, without a
    process group, and in a group of one process it is `plait.nn.BatchNorm2d` for any number of
    dimensions.

    Args:
        num_features: Channels, C.
        eps: Keeps the root away from 0.
        momentum: The weight of a batch in the running statistics; None averages all batches.
        affine: Whether there is a weight, starting at 1, and a bias.
        track_running_stats: Whether there are running statistics.
        process_group: None: all processes.
        device: Where the parameters live.
        dtype: Their dtype; None is float32.
        bias: Whether there is a bias, starting at 0.

    Shapes: (N, C, ...).

    Raises:
        ValueError: There is one value for each channel in all batches.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3))
        >>> model = dist.SyncBatchNorm.convert_sync_batchnorm(model)
        >>> tuple(model(pc.ones(2, 1, 4, 4)).shape)
        (2, 3, 2, 2)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, None, device, dtype, bias=bias
        )
        self.process_group = process_group

    def forward(self, input: Any) -> Any:
        """Normalise a batch."""
        by_batch = self.training or self.running_mean is None
        if not by_batch or not is_initialized():
            return super().forward(input)
        group = member_of("SyncBatchNorm", self.process_group)
        if group is None or group.size() == 1:
            return super().forward(input)
        return self._over_ranks(input, group)

    def _over_ranks(self, input: Any, group: ProcessGroup) -> Any:
        self._check_input_dim(input)
        new = core()
        wide = new.float64 if input.dtype is new.float64 else new.float32
        x = input.to(wide)
        dims = [d for d in range(x.ndim) if d != 1]
        count = x.new_full((1,), x.numel() // max(x.shape[1], 1))
        sums = all_reduce(new.cat([x.sum(dims), count]), group=group)
        total = sums[-1].detach()
        if int(total.item()) < 2:
            raise ValueError(
                "SyncBatchNorm: more than one value for each channel is required, got input of "
                f"shape {tuple(input.shape)} in {group.size()} processes"
            )
        shape = [1, -1] + [1] * (x.ndim - 2)
        mean = sums[:-1] / total
        centred = x - mean.view(shape)
        var = all_reduce((centred * centred).sum(dims), group=group) / total
        self._keep(mean.detach(), var.detach() * (total / (total - 1)))
        result = centred * (var + self.eps).rsqrt().view(shape)
        if self.weight is not None:
            result = result * self.weight.to(wide).view(shape)
        if self.bias is not None:
            result = result + self.bias.to(wide).view(shape)
        return result.to(input.dtype)

    def _keep(self, mean: Any, var: Any) -> None:
        """Update the running statistics."""
        if not self.training or self.running_mean is None:
            return
        self.num_batches_tracked.add_(1)
        share = self.momentum
        if share is None:
            share = 1.0 / float(self.num_batches_tracked.item())
        for running, each in ((self.running_mean, mean), (self.running_var, var)):
            running.mul_(1 - share).add_(each.to(running.dtype), alpha=share)
