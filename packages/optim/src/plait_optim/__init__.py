"""Optimizers that write any array in place: plait tensors, NumPy arrays, torch tensors.

A step over all parameters of a group is one call of a fused operator in this package's own
component; it is loaded when the first step is taken. Importing this package loads plait-abi alone.
"""

from __future__ import annotations

from plait_optim import lr_scheduler
from plait_optim._adam import Adam, AdamW
from plait_optim._optimizer import Optimizer
from plait_optim._sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]

__version__ = "0.1.0"
