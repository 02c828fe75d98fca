"""The loader: batches of a dataset, made in the calling process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

from plait_data._dataset import IterableDataset
from plait_data._fetch import batch_at, samples_at
from plait_data._sampler import BatchSampler, RandomSampler, SequentialSampler
from plait_data.collate import Converter, default_collate, default_convert

__all__ = ["DataLoader", "WorkerInfo", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)
_FIXED = {"batch_size", "batch_sampler", "dataset", "drop_last", "persistent_workers", "sampler"}


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself: its number, how many there are, its seed and its dataset.

    Example:
        >>> from plait_data import WorkerInfo
        >>> info = WorkerInfo(id=1, num_workers=4, seed=7, dataset=range(8))
        >>> list(info.dataset)[info.id :: info.num_workers]
        [1, 5]
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info() -> WorkerInfo | None:
    """The worker this code runs in, or None in the main process: for now, always None.

    Example:
        >>> from plait_data import get_worker_info
        >>> get_worker_info() is None
        True
    """
    return None


class DataLoader(Generic[T_co]):
    """Batches of a dataset, in the calling process.

    Args:
        dataset: an indexable dataset (``__getitem__`` and ``__len__``) or an `IterableDataset`.
        batch_size: samples a batch; None for single samples, which are not collated.
        shuffle: visit an indexable dataset in another random order at each epoch.
        sampler: an iterable of indices; excludes ``shuffle``.
        batch_sampler: an iterable of lists of indices; excludes ``batch_size``, ``shuffle``,
            ``sampler`` and ``drop_last``.
        num_workers: must be 0: worker processes are not there yet.
        collate_fn: from a list of samples to a batch (with ``batch_size=None`` from a sample to
            what is yielded). By default `plait_data.default_collate` (`default_convert`).
        pin_memory: of no effect without an accelerator; a warning says so.
        drop_last: leave out a last batch that is smaller.
        timeout: of worker processes, as are ``worker_init_fn``, ``multiprocessing_context``,
            ``prefetch_factor``, ``persistent_workers``, ``in_order`` and ``pin_memory_device``;
            checked, and refused where PyTorch refuses them without workers.
        generator: what shuffling draws from: a ``numpy.random.Generator``, an int seed (orders
            differ from epoch to epoch and repeat from run to run), another library's generator,
            or None (see `plait_data.manual_seed`).
        convert: what turns the NumPy arrays of the default collation into tensors; None for what
            `plait_data.set_batch_converter` registered, ``numpy.asarray`` for NumPy.

    With the default collation a dataset that offers ``__getbatch__`` (`TensorDataset`, a `Subset`
    of one, `datasets.MNIST` without transforms) is asked for whole batches.

    Raises:
        ValueError: arguments that exclude each other, as in PyTorch.
        NotImplementedError: ``num_workers`` above 0.

    Example:
        >>> import numpy as np
        >>> from plait_data import DataLoader, TensorDataset
        >>> samples = TensorDataset(np.arange(10).reshape(5, 2))
        >>> loader = DataLoader(samples, batch_size=2, shuffle=True, drop_last=True, generator=0)
        >>> len(loader), [x.shape for (x,) in loader]
        (2, [(2, 2), (2, 2)])
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        convert: Converter | None = None,
    ) -> None:
        _check_workers(
            num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context
        )
        iterable = isinstance(dataset, IterableDataset)
        _check_order(iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if collate_fn is not None and convert is not None:
            _refuse("`convert` belongs to the default collation; got a `collate_fn` too")
        if pin_memory:
            warnings.warn(
                "DataLoader: `pin_memory` has no effect without an accelerator", stacklevel=2
            )
        if batch_sampler is not None:
            batch_size = None
        elif not iterable:
            if sampler is None and shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            elif sampler is None:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None and not iterable:
            assert sampler is not None
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)

        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.in_order = in_order
        self._iterable = iterable
        self._batched = batch_size is not None or batch_sampler is not None
        self._default_collate = collate_fn is None
        if collate_fn is None:
            default = default_collate if self._batched else default_convert
            collate_fn = default if convert is None else partial(default, convert=convert)
        self.collate_fn = collate_fn
        self._convert = convert
        self._initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and getattr(self, "_initialized", False):
            _refuse(f"`{name}` must not be set after the loader was made; make another one")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[T_co]:
        # Not a generator: the dataset or sampler is asked, and draws, at iter().
        if self._iterable:
            stream = iter(self.dataset)
            return self._stream_batches(stream) if self._batched else self._singles(stream)
        if not self._batched:
            assert self.sampler is not None
            dataset = self.dataset
            return self._singles(dataset[index] for index in iter(self.sampler))
        assert self.batch_sampler is not None
        return self._batches(iter(self.batch_sampler))

    def __len__(self) -> int:
        """The number of batches; a TypeError where a stream doesn't know its length."""
        if not self._iterable:
            return len(self.batch_sampler if self._batched else self.sampler)  # type: ignore[arg-type]
        size = len(self.dataset)
        if self.batch_size is None:
            return size
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)

    def _batches(self, batches: Iterator[Any]) -> Iterator[T_co]:
        dataset, collate = self.dataset, self.collate_fn
        whole = self._default_collate
        for indices in batches:
            if whole:
                batch = batch_at(dataset, indices)
                if batch is not NotImplemented:
                    yield default_convert(batch, convert=self._convert)
                    continue
                whole = False  # a dataset without the short way has none for the next batch
            yield collate(samples_at(dataset, indices))

    def _stream_batches(self, stream: Iterator[Any]) -> Iterator[T_co]:
        size = self.batch_size
        assert size is not None
        while samples := list(islice(stream, size)):
            if self.drop_last and len(samples) < size:
                return
            yield self.collate_fn(samples)

    def _singles(self, samples: Iterator[Any]) -> Iterator[T_co]:
        return map(self.collate_fn, samples)


def _refuse(text: str) -> None:
    raise ValueError(f"DataLoader: {text}")


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool, context: Any
) -> None:
    if num_workers < 0:
        _refuse(f"`num_workers` must be >= 0; got {num_workers}")
    if timeout < 0:
        _refuse(f"`timeout` must be >= 0; got {timeout}")
    if num_workers > 0:
        raise NotImplementedError(
            "DataLoader: `num_workers` must be 0: this version of plait_data makes batches in the "
            f"calling process and has no worker processes yet; got {num_workers}"
        )
    if prefetch_factor is not None:
        _refuse(f"`prefetch_factor` requires num_workers > 0; got {prefetch_factor}")
    if persistent:
        _refuse("`persistent_workers` requires num_workers > 0")
    if context is not None:
        _refuse(f"`multiprocessing_context` requires num_workers > 0; got {context!r}")


def _check_order(
    iterable: bool,
    batch_size: int | None,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    drop_last: bool,
) -> None:
    if iterable:
        given = {"shuffle": bool(shuffle), "sampler": sampler is not None}
        given["batch_sampler"] = batch_sampler is not None
        for name, is_given in given.items():
            if is_given:
                _refuse(f"`{name}` must not be given for an IterableDataset, which has no indices")
    if sampler is not None and shuffle:
        _refuse("`sampler` and `shuffle` exclude each other; got both")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            _refuse(
                "`batch_sampler` excludes `batch_size`, `shuffle`, `sampler` and `drop_last`; "
                f"got batch_size={batch_size}, shuffle={shuffle}, drop_last={drop_last}"
                + (", a sampler" if sampler is not None else "")
            )
    elif batch_size is None:
        if drop_last:
            _refuse("`drop_last` requires a batch_size; got batch_size=None")
    elif not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
        _refuse(f"`batch_size` must be a positive int or None; got {batch_size!r}")
