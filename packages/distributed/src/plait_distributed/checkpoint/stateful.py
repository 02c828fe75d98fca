"""Objects that give and take a state."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """An object in a state: `save` calls its `state_dict`, and `load` its `load_state_dict`.

    Example:
        >>> import plait_nn as nn
        >>> from plait_distributed.checkpoint.stateful import Stateful
        >>> isinstance(nn.Linear(1, 1), Stateful)
        True
    """

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state."""
