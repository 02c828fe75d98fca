"""Programs written for PyTorch: ``python -m plait_torch SCRIPT ARGS...``, or `install` it here.

Once installed, ``import torch`` and its submodules mean plait: its modules and classes where they
exist, thin additions for names that only PyTorch has, and errors with the name and a workaround for
all others. An installed PyTorch is not imported.

    >>> import plait, plait_torch
    >>> with plait_torch.installed():
    ...     import torch
    ...     import torch.nn as nn
    >>> nn.Linear is plait.nn.Linear
    True
    >>> torch.LongTensor([1, 2]) + 1
    tensor([2, 3])
    >>> torch.classes
    Traceback (most recent call last):
    ...
    plait_torch._missing.MissingName: plait_torch: torch.classes is not available; ...
"""

from __future__ import annotations

from plait_torch._finder import install, installed, uninstall
from plait_torch._generator import use_generator
from plait_torch._missing import MissingModule, MissingName
from plait_torch._program import run

__version__ = "2.13.0.2"

__all__ = [
    "MissingModule",
    "MissingName",
    "install",
    "installed",
    "run",
    "uninstall",
    "use_generator",
]
