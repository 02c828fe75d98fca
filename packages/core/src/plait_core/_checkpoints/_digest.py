"""Checksums that cost little beside reading the bytes: design note 0010."""

from __future__ import annotations

from typing import Any

import numpy as np

from plait_core import _core

ALGORITHM = "sums509-64"
BLOCK = 509 * 8 * 128  # bytes that are summed up at a time


def digest_of(data: np.ndarray[Any, Any]) -> str:
    """Return the digest of a one-dimensional uint8 array."""
    return _core._digest(data)


def crc_of(data: Any) -> int:
    """Return the CRC-32 of bytes or a contiguous array: the one of zip files."""
    return _core._crc32(data)


def sum_of(data: np.ndarray[Any, Any], kind: str) -> str | int:
    """Return the "digest" or the "crc" of a one-dimensional uint8 array."""
    return digest_of(data) if kind == "digest" else crc_of(data)
