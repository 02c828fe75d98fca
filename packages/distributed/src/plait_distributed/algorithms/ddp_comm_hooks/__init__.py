"""Communication hooks for `DistributedDataParallel.register_comm_hook`."""

from __future__ import annotations

__all__: list[str] = []
