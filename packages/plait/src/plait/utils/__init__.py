"""The names `plait.utils.data` and `plait.utils.checkpoint`, as in PyTorch.

They are `plait_data` and `plait_autograd.checkpointing`.
"""

from types import ModuleType as _ModuleType

from plait_abi.imports import import_module as _import_module

__all__ = ["checkpoint", "data"]


def __getattr__(name: str) -> _ModuleType:
    if name in __all__:
        return _import_module(f"plait.utils.{name}")
    raise AttributeError(f"module 'plait.utils' has no attribute {name!r}")
