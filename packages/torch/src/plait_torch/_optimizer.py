"""Additions to plait's `optim.optimizer`, for third-party optimizers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from plait_optim._groups import required

__all__ = ["ParamsT", "required"]

ParamsT: TypeAlias = Iterable[Any]
