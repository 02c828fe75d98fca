"""`torch.optim.optimizer` beside plait's: the mark of options without a default."""

from __future__ import annotations

from plait_optim._groups import required

__all__ = ["required"]
