"""Additions to plait's loader for `torch.utils.data.dataloader`: names for annotations and
`isinstance`.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["_BaseDataLoaderIter", "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"]

# `iter(loader)` returns one of several iterators; PyTorch has one class
_BaseDataLoaderIter = _SingleProcessDataLoaderIter = _MultiProcessingDataLoaderIter = Iterator
