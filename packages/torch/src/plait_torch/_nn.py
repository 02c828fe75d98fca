"""Additions to plait's `nn` for `torch.nn`."""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["NonDynamicallyQuantizableLinear", "is_lazy"]

# the class of a layer in PyTorch's attention, which tools skip
NonDynamicallyQuantizableLinear = plait.nn.Linear


def is_lazy(param: Any) -> bool:
    """Return whether the parameter has no shape yet."""
    return isinstance(param, plait.nn.UninitializedParameter)
