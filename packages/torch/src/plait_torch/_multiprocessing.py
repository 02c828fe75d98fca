"""Additions to plait's `multiprocessing`: PyTorch's names of sharing strategies."""

from __future__ import annotations

import plait_multiprocessing


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept PyTorch's strategies, of which plait has one.

    Programs choose ``"file_system"`` to save file descriptors, of which plait's strategy needs only
    a few.

    Raises:
        ValueError: for a name that PyTorch does not have either.

    Example:
        >>> from plait_torch._multiprocessing import set_sharing_strategy
        >>> set_sharing_strategy("file_system")
    """
    if new_strategy != "file_system":
        plait_multiprocessing.set_sharing_strategy(new_strategy)
