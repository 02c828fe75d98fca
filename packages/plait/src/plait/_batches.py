"""Settings of `plait_data`: batches are tensors, and `plait.manual_seed` seeds shuffling."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from plait_abi.components import require


@functools.cache
def _from_numpy() -> Any:
    return require("core").from_numpy


def _to_tensor(array: Any) -> Any:
    return _from_numpy()(array)


def _next_seed() -> int:
    return int(require("core").randint(2**62, ()).item())


def register(data: ModuleType) -> None:
    """Register both with a data component that has the functions and no registration yet."""
    for hook, ours in (("set_batch_converter", _to_tensor), ("set_seed_source", _next_seed)):
        register_hook = getattr(data, hook, None)
        if register_hook is None:
            continue
        before = register_hook(ours)
        if before is not None and before is not ours:
            register_hook(before)
