"""Optimizers that write any array in place: plait tensors, NumPy arrays, torch tensors.

A step over all parameters of a group is one call of a fused operator in this package's component,
which is loaded at the first step. Importing this package loads plait-abi only.
"""

from plait_optim import lr_scheduler, swa_utils
from plait_optim._adafactor import Adafactor
from plait_optim._adagrad import Adadelta, Adagrad, RMSprop
from plait_optim._adam import Adam, Adamax, AdamW, NAdam, RAdam
from plait_optim._asgd import ASGD
from plait_optim._hooks import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from plait_optim._lbfgs import LBFGS
from plait_optim._muon import Muon
from plait_optim._optimizer import Optimizer
from plait_optim._rprop import Rprop
from plait_optim._sgd import SGD
from plait_optim._sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "lr_scheduler",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "swa_utils",
]

__version__ = "0.2.0"
