"""The loader: batches of a dataset, made in the calling process or by workers."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar, cast

from plait_data._dataset import Indexable, IterableDataset
from plait_data._epoch import Epoch, Order
from plait_data._fetch import Fetch, Stream, in_process
from plait_data._html import Shown, name_and_size, size_text
from plait_data._iterators import (
    IndexIterator,
    PinnedIterator,
    StreamIterator,
    WorkerIterator,
    has_accelerator,
)
from plait_data._pickled_state import OnUnpickling
from plait_data._randomness import library_draws
from plait_data._sample_seeds import reseed
from plait_data._sampler import BatchSampler, EndlessSampler, RandomSampler, SequentialSampler
from plait_data.collate import Converter, batch_converter, default_collate, default_convert

_CONTEXTS = ("fork", "spawn", "forkserver", "thread")


def refuse(text: str) -> None:
    """Raise the ValueError for a wrong argument."""
    raise ValueError(f"DataLoader: {text}")


def check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool, context: Any
) -> None:
    """Raise for arguments about workers that exclude each other, as PyTorch does."""
    if not isinstance(num_workers, int) or isinstance(num_workers, bool):
        refuse(f"`num_workers` must be an int >= 0; got {num_workers!r}")
    if num_workers < 0:
        refuse(f"`num_workers` must be >= 0; got {num_workers}")
    if not hasattr(timeout, "__float__") or timeout < 0:
        refuse(f"`timeout` must be >= 0; got {timeout!r}")
    if num_workers > 0:
        if prefetch_factor is not None and (
            not isinstance(prefetch_factor, int) or prefetch_factor < 1
        ):
            refuse(f"`prefetch_factor` must be a positive int or None; got {prefetch_factor!r}")
        if isinstance(context, str) and context not in _CONTEXTS:
            names = ", ".join(map(repr, _CONTEXTS))
            refuse(
                f"`multiprocessing_context` must be None, a context or one of {names}; "
                f"got {context!r}"
            )
        return
    if prefetch_factor is not None:
        refuse(f"`prefetch_factor` requires num_workers > 0; got {prefetch_factor}")
    if persistent:
        refuse("`persistent_workers` requires num_workers > 0")
    if context is not None:
        refuse(f"`multiprocessing_context` requires num_workers > 0; got {context!r}")


def _processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_order(
    iterable: bool,
    batch_size: int | None,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    drop_last: bool,
) -> None:
    """Raise for arguments about the order that exclude each other, as PyTorch does."""
    if iterable:
        arguments = {"shuffle": bool(shuffle), "sampler": sampler is not None}
        arguments["batch_sampler"] = batch_sampler is not None
        for name, is_given in arguments.items():
            if is_given:
                refuse(f"`{name}` must not be given for an IterableDataset, which has no indices")
    if sampler is not None and shuffle:
        refuse("give `sampler` or `shuffle`, not both")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            refuse(
                "`batch_sampler` excludes `batch_size`, `shuffle`, `sampler` and `drop_last`; "
                f"got batch_size={batch_size}, shuffle={shuffle}, drop_last={drop_last}"
                + (", a sampler" if sampler is not None else "")
            )
    elif batch_size is None:
        if drop_last:
            refuse("`drop_last` requires a batch_size; got batch_size=None")
    elif not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
        refuse(f"`batch_size` must be a positive int or None; got {batch_size!r}")


T_co = TypeVar("T_co", covariant=True)
# attributes of a loader that its state has not while another library's numbers are drawn
_OF_THIS_LIBRARY = (
    *("_own_collate", "_convert", "_exact_globals", "_stream_order", "_order", "_epoch", "_pool"),
    "_latest",
)
_FIXED = {"batch_size", "batch_sampler", "dataset", "drop_last", "persistent_workers", "sampler"}


class DataLoader(Shown, Generic[T_co]):
    """Batches of a dataset, made in the calling process or by workers.

    Args:
        dataset: an indexable dataset (``__getitem__`` and ``__len__``) or an `IterableDataset`.
        batch_size: the number of samples of a batch; None for single samples, which are not
            collated.
        shuffle: visit an indexable dataset in another random order at each epoch.
        sampler: an iterable of indices; excludes ``shuffle``.
        batch_sampler: an iterable of lists of indices; excludes ``batch_size``, ``shuffle``,
            ``sampler`` and ``drop_last``.
        num_workers: the number of processes (threads) that make batches; 0: the calling thread.
        collate_fn: a function from a list of samples to a batch (with ``batch_size=None`` from a
            sample to the yielded value). By default `plait.utils.data.default_collate`
            (`default_convert`).
        pin_memory: put the tensors of each batch into page-locked memory, from which
            ``x.to(device, non_blocking=True)`` copies while the host continues; without an
            accelerator it has no effect, as a warning says.
        drop_last: drop a smaller last batch.
        timeout: seconds after which a missing batch is a `WorkerTimeout`; 0 for never.
        worker_init_fn: called with its number in each worker before the first sample.
        multiprocessing_context: None for new interpreters that import `plait_data` and the modules
            in the dataset's pickle, and never run the main module; ``"thread"`` for threads;
            ``"fork"``, ``"spawn"``, ``"forkserver"`` or a context for the standard module's start
            methods. After ``"fork"``, workers cannot use the tensors of an accelerator that the
            program has used; the others load its library and get copies.
        generator: the source of shuffling and of samples' seeds: a
            ``numpy.random.Generator``, an int seed (epochs differ and repeat from run to run),
            another library's generator, or None (see `plait.utils.data.manual_seed`).
        prefetch_factor: the number of batches that a worker makes in advance; None for 2.
        persistent_workers: keep the workers from epoch to epoch.
        pin_memory_device: the accelerator that will copy; empty for the current one.
        in_order: yield batches in the order of the indices instead of their completion.
        convert: a function from the NumPy arrays of the default collation to tensors; None: the one
            of `plait.utils.data.set_batch_converter`; ``numpy.asarray`` keeps NumPy arrays.
        exact_globals: whether `random`, NumPy's, plait's and torch's global generators (those that
            are imported) are seeded for each index; None: in worker processes only.

    With the default collation a dataset that offers ``__getbatch__`` (`TensorDataset`, a `Subset`
    of one, `datasets.MNIST` without transforms) makes whole batches itself.

    Raises:
        ValueError: arguments that exclude each other, as in PyTorch.
        WorkerError: during iteration, if a worker process died.

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
        dataset: Indexable[T_co],
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
        exact_globals: bool | None = None,
    ) -> None:
        check_workers(
            num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context
        )
        iterable = isinstance(dataset, IterableDataset)
        if multiprocessing_context == "thread" and exact_globals:
            refuse("`exact_globals` needs processes: threads share the global generators")
        check_order(iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if collate_fn is not None and convert is not None:
            refuse("`convert` belongs to the default collation; got a `collate_fn` too")
        if pin_memory and not has_accelerator():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found: DataLoader does "
                "not pin memory",
                stacklevel=2,
            )
        processors = _processors()
        if num_workers > processors:
            warnings.warn(
                f"This DataLoader will create {num_workers} worker processes in total, more than "
                f"the {processors} processors that this process may use, which can make loading "
                "slower",
                stacklevel=2,
            )
        self.dataset = cast("Any", dataset)
        if batch_sampler is not None:
            batch_size = None
        if sampler is None and iterable:
            sampler = EndlessSampler()
        elif sampler is None and shuffle:
            sampler = RandomSampler(self.dataset, generator=generator)
        elif sampler is None:
            sampler = SequentialSampler(self.dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(cast("Iterable[int]", sampler), batch_size, drop_last)

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
        self._dataset_kind = int(iterable)
        self._own_collate: Any = None
        if collate_fn is None:
            default = default_collate if self._auto_collation else default_convert
            collate_fn = default if convert is None else partial(default, convert=convert)
            self._own_collate = collate_fn
        self.collate_fn = collate_fn
        self._convert = convert
        self._exact_globals = exact_globals
        self._begin(isinstance(self.sampler, RandomSampler) and bool(shuffle))
        # programs of PyTorch set it to False to replace a sampler
        self.__initialized = True

    def _begin(self, own_order: bool) -> None:
        """Set what changes from epoch to epoch; `own_order`: the loader made its random order."""
        iterable = self._iterable
        # that of a stream cannot be replaced
        self._stream_order = self._index_sampler if iterable else None
        self._order = Order(None if iterable else self._index_sampler, self.generator, own_order)
        self._epoch: Epoch | None = None
        self._pool: Any = None
        self._latest: Any = None

    # While another library's numbers are drawn, a state has the attributes of its loaders.

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if library_draws() is not None and self._convert is None:
            for name in _OF_THIS_LIBRARY:
                del state[name]
            state["_DataLoader__multiprocessing_context"] = state.pop("multiprocessing_context")
            state["_iterator"] = state["_IterableDataset_len_called"] = None
            if self.num_workers and self.prefetch_factor is None:
                state["prefetch_factor"] = 2
        return state

    @OnUnpickling
    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_order" in state:
            self.__dict__.update(state)
            return
        others = "_iterator", "_IterableDataset_len_called", "_DataLoader__multiprocessing_context"
        self.__dict__.update({name: each for name, each in state.items() if name not in others})
        own = {"multiprocessing_context": state.get(others[2]), "_convert": None}
        self.__dict__.update(own, _exact_globals=None, _own_collate=None)
        if self.collate_fn is (default_collate if self._auto_collation else default_convert):
            self._own_collate = self.collate_fn
        drawing = isinstance(self.sampler, RandomSampler)
        self._begin(drawing and cast("Any", self.sampler).generator is self.generator)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and getattr(self, "_DataLoader__initialized", False):
            refuse(f"`{name}` must not be set after the loader was made; make another one")
        super().__setattr__(name, value)

    # The private names below are PyTorch's: subclasses override them.

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    @property
    def _iterable(self) -> bool:
        return self._dataset_kind == 1

    @property
    def _default_collate(self) -> bool:
        return self.collate_fn is self._own_collate

    @property
    def _iterator(self) -> Any:
        """The latest iterator while its workers are kept for the next epoch."""
        return self._latest if self._pool is not None and self._pool.size else None

    @_iterator.setter
    def _iterator(self, value: Any) -> None:
        if value is not None:
            refuse("`_iterator` can be set to None only, which ends the workers that are kept")
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def __iter__(self) -> Iterator[Any]:
        # not a generator, so that the sampler draws at iter()
        iterator = self._get_iterator()
        # not without kept workers: an iterator ends its workers when nothing refers to it
        self._latest = iterator if self.persistent_workers else None
        return iterator

    def _get_iterator(self) -> Iterator[Any]:
        sampler = self._index_sampler
        if self._iterable:
            if sampler is not self._stream_order:
                refuse("the samplers of an iterable dataset must not be replaced")
            sampler = None
        self._order.use(sampler, self.generator)
        epoch, order = self._order.begin(
            self.num_workers, kept=self._pool is not None and self._pool.size > 0
        )
        self._epoch = epoch
        make = self._from_workers if self.num_workers else self._in_process
        batches = make(epoch, order)
        if not self.pin_memory or not has_accelerator():
            return batches
        return PinnedIterator(batches, self.pin_memory_device)

    def _in_process(self, epoch: Epoch, order: Iterator[Any] | None) -> Iterator[Any]:
        exact = bool(self._exact_globals)
        seed_globals = reseed if exact else None
        if order is None:
            stream = Stream(
                self.dataset,
                self.collate_fn,
                epoch.seed,
                size=self.batch_size,
                drop_last=self.drop_last,
                seed_globals=seed_globals,
            )
            return StreamIterator(stream, in_process(stream.batch, exact), epoch)
        fetch = Fetch(
            self.dataset,
            self.collate_fn,
            epoch.seed,
            convert=self._convert,
            whole=self._default_collate and self._auto_collation,
            seed_globals=seed_globals,
        )
        make = fetch.batch if self._auto_collation else fetch.single
        return IndexIterator(in_process(make, exact), order, epoch)

    def _from_workers(self, epoch: Epoch, order: Iterator[Any] | None) -> Iterator[Any]:
        # imported here, as not all programs use processes
        from plait_data._workers._pool import open_pool

        if self._pool is not None and self._pool.size == 0:
            self._pool = None  # the pool failed
        pool = self._pool
        try:
            if pool is None:
                pool = open_pool(self, epoch.seed)
                if self.persistent_workers:
                    self._pool = pool
                    weakref.finalize(self, pool.close)
            return WorkerIterator(
                pool,
                epoch,
                order,
                prefetch=self.prefetch_factor or 2,
                in_order=self.in_order,
                timeout=self.timeout,
                convert=partial(_converter, self._convert),  # not a reference to the loader
                keep=self.persistent_workers,
            )
        except BaseException:  # of the sampler, or Ctrl-C, whose traceback would keep the workers
            if pool is not None:
                pool.close(0)
            raise

    def state_dict(self) -> dict[str, Any]:
        """The state of the loader after the batches that its latest iterator has yielded.

        Prefetched batches don't count. The state is of plain data (numbers, strings, containers; an
        array of integers if the generator's state is one) and serves any number of workers. For an
        iterable dataset it counts the batches of each worker, and ``num_workers`` must not change;
        its streams are read again up to this point.

        Example:
            >>> from plait_data import DataLoader
            >>> def loader():
            ...     return DataLoader(range(6), batch_size=2, shuffle=True, generator=3)
            >>> first = loader()
            >>> batches = iter(first)
            >>> _ = next(batches)
            >>> second = loader()
            >>> second.load_state_dict(first.state_dict())
            >>> [b.tolist() for b in batches] == [b.tolist() for b in second]
            True

        Raises:
            RuntimeError: in the middle of an epoch with ``in_order=False``.
        """
        epoch = self._epoch
        unordered = not self.in_order and self.num_workers > 1 and not self._iterable
        if unordered and epoch is not None and epoch.yielded and not epoch.finished:
            raise RuntimeError(
                "state_dict: with in_order=False batches arrive as workers finish them, so "
                "there is "
                "no position to resume from. Use in_order=True, or call it between epochs"
            )
        return self._order.state(epoch)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Make the next iteration continue from ``state``, with the same remaining batches.

        The order repeats for samplers of this package and for samplers that have ``state_dict``
        and ``load_state_dict`` themselves; another sampler must give the same order by itself.

        Args:
            state: a result of `state_dict` of a loader with the same dataset and batches.

        Raises:
            ValueError: it is not such a state, or has another number of workers' streams.
        """
        self._order.resume(state, self.num_workers)
        self._epoch = None

    def __len__(self) -> int:
        """The number of batches; a TypeError for a stream without a length."""
        if not self._iterable:
            return len(self._index_sampler)
        size = len(self.dataset)
        if self.batch_size is None:
            return size
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)

    def _facts(self) -> Iterable[tuple[str, str]]:
        yield "dataset", name_and_size(self.dataset)
        order = self._index_sampler
        order = getattr(order, "sampler", order)  # that of a BatchSampler
        yield "order", "as they come" if self._iterable else type(order).__name__
        size = "batches of the sampler" if self._auto_collation else "single samples"
        yield "batch size", size if self.batch_size is None else str(self.batch_size)
        yield "batches", size_text(self)
        kind = "threads" if self.multiprocessing_context == "thread" else "processes"
        yield "workers", f"{self.num_workers} ({kind})" if self.num_workers else "none"


def _converter(own: Converter | None) -> Converter | None:
    return own or batch_converter()
