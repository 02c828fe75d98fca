"""`Function` and related names, as in PyTorch's ``autograd.function``."""

from __future__ import annotations

from plait_autograd._context import FunctionContext
from plait_autograd._function import Function, once_differentiable

__all__ = ["Function", "FunctionContext", "FunctionCtx", "once_differentiable"]

FunctionCtx = FunctionContext
"""PyTorch's name for `FunctionContext`."""
