"""`torch.utils.data.dataloader` beside plait's: names for annotations and `isinstance`."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["_BaseDataLoaderIter", "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"]

# what `iter(loader)` returns is some iterator; PyTorch's has a class of its own
_BaseDataLoaderIter = _SingleProcessDataLoaderIter = _MultiProcessingDataLoaderIter = Iterator
