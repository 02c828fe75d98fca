"""Means of parameters over the ranks."""

from __future__ import annotations

__all__: list[str] = []
