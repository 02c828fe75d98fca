"""The switch for layers that run together in one pass over memory."""

from __future__ import annotations

_enabled = True


def set_fusion(mode: bool) -> None:
    """Let layers that follow each other run as one operator, or each on its own.

    With fusion, which is on at the start, a `Sequential` in training runs a batch norm and the
    activation that follows it in one pass. Outputs and gradients are the same up to rounding,
    usually bit for bit. Hooks on one of the modules, and modules with a ``forward`` of their own,
    keep them apart in any case. The setting is one for the whole process.

    Args:
        mode: Whether they may run together.

    Example:
        >>> import plait_core as pc
        >>> pc.set_fusion(False)
        >>> pc.is_fusion_enabled()
        False
        >>> pc.set_fusion(True)
    """
    global _enabled
    if not isinstance(mode, bool):
        raise TypeError(f"set_fusion: `mode` must be a bool; got {type(mode).__name__}")
    _enabled = mode


def is_fusion_enabled() -> bool:
    """Whether layers that follow each other may run as one operator; see `set_fusion`.

    Example:
        >>> import plait_core as pc
        >>> pc.is_fusion_enabled()
        True
    """
    return _enabled
