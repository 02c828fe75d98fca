"""Packages of PyTorch that contain only packages."""

from __future__ import annotations

__all__: list[str] = []
