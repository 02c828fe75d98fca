"""Fetching samples at given indices, by the fastest method of a dataset, and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plait_data._sample_seeds import Cursor, enter, leave, preserved_globals
from plait_data.collate import Converter, default_convert

Note = Callable[[int], None]
Seed = Callable[[int, Any], None]
END: Any = object()  # marks the end of a stream


def samples_at(dataset: Any, indices: Sequence[int]) -> list[Any]:
    """The list of samples at ``indices``, by ``__getitems__`` if the dataset has it.

    Raises:
        ValueError: ``__getitems__`` returned another number of samples.
    """
    if not _may_replace_getitem(type(dataset), "__getitems__"):
        return [dataset[index] for index in indices]
    samples = dataset.__getitems__(indices)
    if len(samples) != len(indices):
        raise ValueError(
            f"{type(dataset).__name__}: `__getitems__` must return one sample an index; "
            f"got {len(samples)} for {len(indices)}"
        )
    return list(samples)


def batch_at(dataset: Any, indices: Sequence[int] | npt.NDArray[np.intp]) -> Any:
    """The collated batch at ``indices``; NotImplemented if there is no ``__getbatch__``."""
    if not _may_replace_getitem(type(dataset), "__getbatch__"):
        return NotImplemented
    array = np.asarray(indices)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        return NotImplemented  # a sampler of keys, not of integers
    return dataset.__getbatch__(array.astype(np.intp, copy=False))


def _may_replace_getitem(kind: type, method: str) -> bool:
    """Whether ``method`` is defined in the same class as ``__getitem__``, or in a subclass of it.

    If a subclass overrides only ``__getitem__`` (to augment images, for example), it must be
    called.
    """
    for base in kind.__mro__:
        if method in vars(base):
            return True
        if "__getitem__" in vars(base):
            return False
    return False


class Fetch:
    """Makes the batches of one epoch of an indexable dataset, in process or in a worker.

    Args:
        dataset: with ``__getitem__``.
        collate: the function from a list of samples to a batch (from a sample to the yielded
            value).
        seed: of the epoch.
        convert: for the arrays of whole batches.
        whole: whether ``__getbatch__`` of the dataset may be used.
        seed_globals: called with the epoch's seed and each index before its sample is made.
        note: called with each position before its sample is made, with -1 before the collation.
    """

    def __init__(
        self,
        dataset: Any,
        collate: Callable[[Any], Any],
        seed: int,
        *,
        convert: Converter | None = None,
        whole: bool = False,
        seed_globals: Seed | None = None,
        note: Note | None = None,
    ) -> None:
        self._dataset = dataset
        self._collate = collate
        self._seed = seed
        self._convert = convert
        self._whole = whole
        self._seed_globals = seed_globals
        self._note = note
        self._each = not _may_replace_getitem(type(dataset), "__getitems__")

    def batch(self, indices: Any) -> Any:
        """The collated batch at ``indices``."""
        if type(indices) is not list and not isinstance(indices, (tuple, range)):
            indices = list(indices)
        cursor = Cursor(self._seed, indices)
        before = enter(cursor)
        try:
            if self._whole:
                if self._seed_globals is not None and len(indices):
                    self._seed_globals(self._seed, indices[0])
                batch = batch_at(self._dataset, indices)
                if batch is not NotImplemented:
                    return default_convert(batch, convert=self._convert)
                self._whole = False  # after one NotImplemented it is not tried again in this epoch
            samples = self._samples(cursor)
            cursor.iterator = None
            if self._note is not None:
                self._note(-1)
            return self._collate(samples)
        finally:
            leave(before)

    def single(self, index: Any) -> Any:
        """The sample at ``index``, not collated but passed through ``collate``."""
        cursor = Cursor(self._seed, (index,))
        # an iterator of length 0: the position is that of the only sample
        cursor.iterator = iter(())
        before = enter(cursor)
        try:
            if self._note is not None:
                self._note(0)
            if self._seed_globals is not None:
                self._seed_globals(self._seed, index)
            return self._collate(self._dataset[index])
        finally:
            leave(before)

    def _samples(self, cursor: Cursor) -> list[Any]:
        indices, dataset = cursor.indices, self._dataset
        if not self._each:
            if self._seed_globals is not None and len(indices):
                self._seed_globals(self._seed, indices[0])
            return samples_at(dataset, indices)
        iterator = cursor.iterator = iter(indices)
        if self._note is None and self._seed_globals is None:
            return [dataset[index] for index in iterator]
        samples = []
        for position, index in enumerate(iterator):
            if self._note is not None:
                self._note(position)
            if self._seed_globals is not None:
                self._seed_globals(self._seed, index)
            samples.append(dataset[index])
        return samples


class Stream:
    """Makes the batches of one epoch of an iterable dataset, in process or in a worker.

    Args:
        dataset: with ``__iter__``.
        collate, seed, seed_globals, note: see `Fetch`.
        size: the number of samples of a batch; None for single samples.
        drop_last: drop a shorter last batch.
        start: the number of the first sample, which differs between workers.
    """

    def __init__(
        self,
        dataset: Any,
        collate: Callable[[Any], Any],
        seed: int,
        *,
        size: int | None,
        drop_last: bool,
        start: int = 0,
        seed_globals: Seed | None = None,
        note: Note | None = None,
    ) -> None:
        self._collate = collate
        self._seed = seed
        self._size = size
        self._drop_last = drop_last
        self._at = start
        self._seed_globals = seed_globals
        self._note = note
        before = enter(Cursor(seed, (start,)))
        try:
            self._samples = iter(dataset)
        finally:
            leave(before)

    def skip(self, batches: int) -> None:
        """Skip batches that were made before, without collating them."""
        for _ in range(batches):
            cursor = Cursor(self._seed, self._numbers())
            before = enter(cursor)
            try:
                if not self._take(cursor):
                    return
            finally:
                leave(before)

    def batch(self) -> Any:
        """The next batch (or sample); `END` at the end."""
        cursor = Cursor(self._seed, self._numbers())
        before = enter(cursor)
        try:
            samples = self._take(cursor)
            if not samples or (self._size and self._drop_last and len(samples) < self._size):
                return END
            if self._size is None:
                return self._collate(samples[0])
            cursor.iterator = None
            if self._note is not None:
                self._note(-1)
            return self._collate(samples)
        finally:
            leave(before)

    def _numbers(self) -> range:
        count = 1 if self._size is None else self._size
        self._at += count
        return range(self._at - count, self._at)

    def _take(self, cursor: Cursor) -> list[Any]:
        iterator = cursor.iterator = iter(cursor.indices)
        if self._note is None and self._seed_globals is None:
            return [sample for _, sample in zip(iterator, self._samples, strict=False)]
        samples = []
        for position, number in enumerate(iterator):
            if self._note is not None:
                self._note(position)
            if self._seed_globals is not None:
                self._seed_globals(self._seed, number)
            try:
                samples.append(next(self._samples))
            except StopIteration:
                break
        return samples


def in_process(make: Callable[..., Any], preserve: bool) -> Callable[..., Any]:
    """``make`` for the calling process, in which seeded global generators are restored."""
    if not preserve:
        return make

    def preserved(*indices: Any) -> Any:
        with preserved_globals():
            return make(*indices)

    return preserved


def stopped_iteration(error: StopIteration) -> RuntimeError:
    """The error for a StopIteration in a dataset, which must not end the loader's iteration."""
    wrapped = RuntimeError("DataLoader: the dataset raised StopIteration")
    wrapped.__cause__ = error
    return wrapped
