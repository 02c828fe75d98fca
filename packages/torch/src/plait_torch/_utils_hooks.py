"""`torch.utils.hooks`: handles of hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from plait_abi.frames import warn
from plait_nn._hooks import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

F = TypeVar("F", bound=Callable[..., Any])


def unserializable_hook(f: F) -> F:
    """Mark a hook so that `warn_if_has_hooks` does not warn of it.

    Example:
        >>> unserializable_hook(lambda gradient: None).__torch_unserializable__
        True
    """
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of each hook of a tensor that a file of the tensor will not have.

    Example:
        >>> import plait
        >>> warn_if_has_hooks(plait.ones(2))
    """
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warn(f"backward hook {hook!r} on tensor will not be serialized.")
