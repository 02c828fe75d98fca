"""The package's own library, of which Python calls a few functions."""

from __future__ import annotations

import ctypes

import plait_abi

__all__ = ["library"]

library = ctypes.CDLL(str(plait_abi.paths("plait_cuda")["libplait_cuda.so"]))
