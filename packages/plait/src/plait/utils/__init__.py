"""The names `plait.utils.data`, `plait.utils.checkpoint` and `plait.utils.tensorboard`, as in
PyTorch.

They are `plait_data`, `plait_autograd.checkpointing` and a part of `plait_torch`.
"""

import importlib as _importlib
from types import ModuleType as _ModuleType

__all__ = ["checkpoint", "data", "tensorboard"]


def __getattr__(name: str) -> _ModuleType:
    if name in __all__:
        return _importlib.import_module(f"plait.utils.{name}")
    raise AttributeError(f"module 'plait.utils' has no attribute {name!r}")
