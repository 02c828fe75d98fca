"""Algorithms of data-parallel training."""

from __future__ import annotations

__all__: list[str] = []
