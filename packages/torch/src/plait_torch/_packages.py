"""Packages of PyTorch's that hold nothing but packages."""

from __future__ import annotations

__all__: list[str] = []
