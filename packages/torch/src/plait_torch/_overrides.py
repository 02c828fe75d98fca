"""`torch.overrides`: predicates for libraries; no class of plait overrides functions of torch."""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["has_torch_function", "is_tensor_like", "is_tensor_method_or_property"]


def is_tensor_like(inp: Any) -> bool:
    """Return whether the object is a tensor."""
    return bool(plait.is_tensor(inp))


def has_torch_function(relevant_args: Any) -> bool:
    """Return False: ``__torch_function__`` is not called; plait has ``__plait_function__``."""
    return False


def is_tensor_method_or_property(func: Any) -> bool:
    """Return whether the function is an attribute of `Tensor`."""
    return any(value is func for value in vars(plait.Tensor).values())
