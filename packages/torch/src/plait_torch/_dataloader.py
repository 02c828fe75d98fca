"""Additions to plait's loader for `torch.utils.data.dataloader`: names for annotations and
`isinstance`.
"""

from __future__ import annotations

import os  # programs replace its functions here
from collections.abc import Callable, Iterator
from typing import Any

from plait_abi.frames import warn
from plait_data._loader import DataLoader
from plait_data._sampler import EndlessSampler

__all__ = [
    "_BaseDataLoaderIter",
    "_BaseDatasetFetcher",
    "_DatasetKind",
    "_collate_fn_t",
    "_InfiniteConstantSampler",
    "_IterableDatasetFetcher",
    "_MapDatasetFetcher",
    "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter",
    "os",
]

_collate_fn_t = Callable[[list[Any]], Any]
_InfiniteConstantSampler = EndlessSampler


class _BaseDatasetFetcher:
    """The base class of what makes batches of a dataset; `fetch` is its subclasses'."""

    def __init__(
        self,
        dataset: Any,
        auto_collation: bool,
        collate_fn: Callable[[Any], Any],
        drop_last: bool = False,
    ) -> None:
        self.dataset, self.auto_collation = dataset, auto_collation
        self.collate_fn, self.drop_last = collate_fn, drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return a batch, or a sample."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass must define `fetch`")


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Makes a batch of a dataset with an index."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return the collated samples of a list of indices, or the sample of one."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if hasattr(self.dataset, "__getitems__"):
            return self.collate_fn(self.dataset.__getitems__(possibly_batched_index))
        return self.collate_fn([self.dataset[index] for index in possibly_batched_index])


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Makes batches of a dataset without an index."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter, self.ended = iter(dataset), False

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return the next sample, or as many as there are indices, collated."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        samples = []
        for _ in possibly_batched_index:
            try:
                samples.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(possibly_batched_index)):
            raise StopIteration
        return self.collate_fn(samples)


class _DatasetKind:
    """The two kinds of datasets, with and without an index."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int,
        dataset: Any,
        auto_collation: bool,
        collate_fn: Callable[[Any], Any],
        drop_last: bool,
    ) -> _MapDatasetFetcher | _IterableDatasetFetcher:
        """Return what makes batches of a dataset of this kind.

        Example:
            >>> from plait_torch._dataloader import _DatasetKind
            >>> fetcher = _DatasetKind.create_fetcher(0, [5, 6, 7], True, tuple, False)
            >>> fetcher.fetch([2, 0])
            (7, 5)
        """
        make = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return make(dataset, auto_collation, collate_fn, drop_last)


class _Iterators(type):
    """Makes every iterator an instance: `iter(loader)` returns one of several."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Iterator)

    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        _choose_iterator()

    def __delattr__(cls, name: str) -> None:
        super().__delattr__(name)
        _choose_iterator()


class _BaseDataLoaderIter(metaclass=_Iterators):
    """An iterator over the batches of an object with the attributes of a loader.

    Args:
        loader: has `_dataset_kind`, `dataset`, `_auto_collation`, `collate_fn`, `drop_last` and
            `_index_sampler`, as a `DataLoader` does; libraries write such objects.

    Example:
        >>> from types import SimpleNamespace
        >>> from plait_torch._dataloader import _SingleProcessDataLoaderIter
        >>> loader = SimpleNamespace(_dataset_kind=0, dataset=[5, 6, 7], _auto_collation=True,
        ...                          collate_fn=tuple, drop_last=False, _index_sampler=[[0, 2]])
        >>> list(_SingleProcessDataLoaderIter(loader))
        [(5, 7)]
    """

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._dataset, self._dataset_kind = loader.dataset, loader._dataset_kind
        self._auto_collation, self._drop_last = loader._auto_collation, loader.drop_last
        self._collate_fn, self._index_sampler = loader.collate_fn, loader._index_sampler
        self._num_workers = getattr(loader, "num_workers", 0)
        self._sampler_iter = iter(self._index_sampler)  # not by `_reset`, as in PyTorch
        self._num_yielded = 0
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn,
            self._drop_last,
        )  # fmt: skip

    def __iter__(self) -> Any:
        return self

    # Subclasses override the following methods.

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())

    def __next__(self) -> Any:
        batch = self._next_data()
        self._num_yielded += 1
        return batch

    def __len__(self) -> int:
        return len(self._index_sampler)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads in this process."""


# what PyTorch's iterator of several processes calls, and this one has not
_STEPS = frozenset({
    "_try_get_data", "_get_data", "_try_put_index", "_process_data", "_mark_worker_as_unavailable",
    "_shutdown_workers",
})  # fmt: skip


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Loads in this process too: the processes of plait's loader are for its own datasets."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if own := sorted(_STEPS.intersection(vars(cls))):
            raise NotImplementedError(
                f"{cls.__name__}: a subclass of _MultiProcessingDataLoaderIter must not override "
                f"{', '.join(own)}: plait's loader has other steps, and would never call them"
            )


# steps that a program may replace in the classes: loaders are then iterated over by them
_REPLACEABLE = ("__init__", "__next__", "_reset", "_next_index", "_next_data", *sorted(_STEPS))
_PLAIN_ITERATOR = DataLoader._get_iterator


def _steps(kind: type) -> list[Any]:
    """Return the steps of iterators of one kind."""
    return [vars(each).get(name) for each in (_BaseDataLoaderIter, kind) for name in _REPLACEABLE]


_PLAIN_STEPS: dict[type, list[Any]] = {
    kind: _steps(kind) for kind in (_SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter)
}


def _is_replaced(kind: type) -> bool:
    return _steps(kind) != _PLAIN_STEPS[kind]


def _choose_iterator() -> None:
    """Let loaders call the steps that a program has put into the classes, if there are any."""
    choice: Any = _iterator_of_steps if any(map(_is_replaced, _PLAIN_STEPS)) else _PLAIN_ITERATOR
    DataLoader._get_iterator = choice  # type: ignore[method-assign]


def _iterator_of_steps(loader: Any) -> Any:
    """Return an iterator that calls the steps that a program has put into the classes."""
    if loader.num_workers == 0 and _is_replaced(_SingleProcessDataLoaderIter):
        return _SingleProcessDataLoaderIter(loader)
    if loader.num_workers and _is_replaced(_MultiProcessingDataLoaderIter):
        warn(
            "plait_torch: a step of _BaseDataLoaderIter or _MultiProcessingDataLoaderIter was "
            "replaced, which loaders with workers do not call; num_workers=0 calls those of "
            "_BaseDataLoaderIter",
            UserWarning,
        )
    return _PLAIN_ITERATOR(loader)
