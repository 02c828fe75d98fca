"""Training jobs on a Ray cluster, and remote calls under PyTorch's names.

`Trainer` runs a training function in many processes of a cluster, as the ranks of one process
group. `plait_ray.rpc`, `plait_ray.autograd` and `plait_ray.optim` have the names of
`torch.distributed.rpc`, `torch.distributed.autograd` and `torch.distributed.optim`.

    >>> import plait_ray
    >>> sorted(plait_ray.__all__)[:3]
    ['RemoteError', 'Result', 'Trainer']
"""

from __future__ import annotations

import importlib as _importlib
from typing import Any

from plait_ray._errors import RemoteError, TrainingError, WorkerLost
from plait_ray._session import last_state, report
from plait_ray._trainer import Result, Trainer

__all__ = [
    "RemoteError",
    "Result",
    "Trainer",
    "TrainingError",
    "WorkerLost",
    "last_state",
    "report",
]

__version__ = "0.2.0"

_MODULES = ("autograd", "functions", "optim", "rpc")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'plait_ray' has no attribute {name!r}")
    return _importlib.import_module(f"plait_ray.{name}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
