"""This package's operators: the component is loaded at the first step, not at import."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import plait_abi

__all__ = ["grad_mode", "operator"]


@functools.cache
def operator(name: str) -> Any:
    """Return one of this component's operators, such as ``adam_step``."""
    plait_abi.load(pathlib.Path(__file__).parent / "lib" / "libplait_optim.so")
    return plait_abi.operator(name)


@contextmanager
def grad_mode(enabled: bool) -> Iterator[None]:
    """Whether the engine, if one is loaded, records what runs inside."""
    before = plait_abi.set_grad_enabled(enabled)
    try:
        yield
    finally:
        plait_abi.set_grad_enabled(before)
