"""This package's operators: the component is loaded at the first step, not at import."""

from __future__ import annotations

import functools
import pathlib
from typing import Any

import plait_abi


@functools.cache
def operator(name: str) -> Any:
    """Return one of this component's operators, such as ``adam_step``."""
    plait_abi.load(pathlib.Path(__file__).parent / "lib" / "libplait_optim.so")
    return plait_abi.operator(name)


class grad_mode:  # noqa: N801 - used as `with grad_mode(False):`
    """A context manager that sets whether the engine, if one is loaded, records operators."""

    __slots__ = ("_before", "_enabled")

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def __enter__(self) -> None:
        self._before = plait_abi.set_grad_enabled(self._enabled)

    def __exit__(self, *error: object) -> None:
        plait_abi.set_grad_enabled(self._before)
