"""Learning-rate schedules, whose `step` sets ``lr`` of an optimizer's groups."""

from __future__ import annotations

from plait_optim.lr_scheduler._base import LRScheduler
from plait_optim.lr_scheduler._composed import ChainedScheduler, SequentialLR
from plait_optim.lr_scheduler._cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from plait_optim.lr_scheduler._cycles import CyclicLR, OneCycleLR
from plait_optim.lr_scheduler._decays import (
    ConstantLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from plait_optim.lr_scheduler._functions import LambdaLR, MultiplicativeLR
from plait_optim.lr_scheduler._plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
