"""`torch.multiprocessing` beside plait's: the strategies of sharing by which programs ask."""

from __future__ import annotations

import plait_multiprocessing

__all__ = ["set_sharing_strategy"]


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept PyTorch's strategies, of which plait has one.

    Programs choose ``"file_system"`` lest they run out of descriptors, of which the one strategy
    needs a few.

    Raises:
        ValueError: for a word that isn't PyTorch's either.

    Example:
        >>> from plait_torch._multiprocessing import set_sharing_strategy
        >>> set_sharing_strategy("file_system")
    """
    if new_strategy != "file_system":
        plait_multiprocessing.set_sharing_strategy(new_strategy)
