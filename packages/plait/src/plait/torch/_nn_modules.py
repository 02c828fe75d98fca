"""The base classes of `torch.nn.modules`, from which programs derive and by which they ask."""

from __future__ import annotations

from plait_nn._batch_norm import _BatchNorm, _InstanceNorm, _Norm
from plait_nn._conv import _Conv, _ConvTransposeNd
from plait_nn._loss import _Loss, _WeightedLoss

__all__ = [
    "_BatchNorm",
    "_ConvNd",
    "_ConvTransposeNd",
    "_InstanceNorm",
    "_Loss",
    "_NormBase",
    "_WeightedLoss",
]

_ConvNd = _Conv  # in PyTorch the base of the transposed convolutions, too
_NormBase = _Norm
