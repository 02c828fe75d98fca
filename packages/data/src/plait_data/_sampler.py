"""Orders in which a loader visits a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import chain, islice, repeat
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from plait_data._pickled_state import OnUnpickling
from plait_data._randomness import RandomSource, library_draws
from plait_data.collate import batch_converter

T_co = TypeVar("T_co", covariant=True)
_CHUNK = 8192  # number of indices that are converted to Python ints at a time


class Sampler(Generic[T_co]):
    """An order of indices (or of lists of indices). A subclass defines ``__iter__()``.

    Example:
        >>> from plait_data import DataLoader, Sampler
        >>> class Backwards(Sampler[int]):
        ...     def __iter__(self):
        ...         return iter([2, 1, 0])
        >>> [batch.tolist() for batch in DataLoader([5, 6, 7], sampler=Backwards())]
        [[7], [6], [5]]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(
            f"{type(self).__name__}: a Sampler must define `__iter__()`; it has none"
        )


class SequentialSampler(Sampler[int]):
    """0, 1, ..., ``len(data_source)`` - 1.

    Example:
        >>> from plait_data import SequentialSampler
        >>> list(SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class EndlessSampler(Sampler[None]):
    """None without an end: the order of a loader's stream, which has no indices."""

    def __iter__(self) -> Iterator[None]:
        return repeat(None)


class _Drawing(Sampler[int]):
    """A sampler that draws from a generator, which may be replaced."""

    @property
    def generator(self) -> Any:
        """The source of random numbers, as it was given."""
        return self._generator

    @generator.setter
    def generator(self, generator: Any) -> None:
        self._generator = generator
        self._random = RandomSource(type(self).__name__, generator)

    # While another library's numbers are drawn, a state has the attributes of its samplers.

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if library_draws() is not None:
            del state["_random"]
            state["generator"] = state.pop("_generator")
        return state

    @OnUnpickling
    def __setstate__(self, state: dict[str, Any]) -> None:
        own = {name: value for name, value in state.items() if name != "generator"}
        self.__dict__.update(own)
        if "_random" not in own:
            self.generator = state.get("generator")


_BLOCK = 1 << 16  # indices drawn at once


class RandomSampler(_Drawing):
    """A random order of 0, ..., n - 1, another one at each iteration.

    Args:
        data_source: a sized object of length n.
        replacement: draw each index independently of the others.
        num_samples: the number of indices, n by default. More than n without replacement give
            several permutations.
        generator: None, a ``numpy.random.Generator``, an int seed, or another library's generator.

    Raises:
        ValueError: ``num_samples`` is not a positive integer.

    Example:
        >>> from plait_data import RandomSampler
        >>> sorted(RandomSampler("abc", generator=0))
        [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        _require_bool("RandomSampler", "replacement", replacement)
        if num_samples is not None:
            _require_positive("RandomSampler", "num_samples", num_samples)
        self.data_source = data_source
        self.replacement = replacement
        self.generator = generator
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """The number of indices of an iteration."""
        # not stored, as the length of a dataset may change between epochs
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        order = self._order()
        return self._endless() if order is None else _ints(order)

    def _order(self) -> npt.NDArray[Any] | None:
        """All indices of an iteration; None if they are drawn in blocks."""
        size, count = len(self.data_source), self.num_samples
        if count and not size:
            raise ValueError(
                f"RandomSampler: `data_source` must not be empty for num_samples={count}; got 0"
            )
        if self.replacement or count > size or library_draws() is not None:
            return None
        return self._random.rng().permutation(size)[:count]

    def _endless(self) -> Iterator[int]:
        size, count = len(self.data_source), self.num_samples
        rng = self._random.rng()
        library = library_draws()
        if self.replacement:
            # in blocks, for programs that set 1e10 and stop earlier
            block = _BLOCK if library is None else library.block
            starts = range(0, count, block)
            blocks = (rng.integers(0, size, min(block, count - start)) for start in starts)
            return chain.from_iterable(map(_ints, blocks))
        # PyTorch draws another order behind the last one, of which it takes nothing
        end = count if library is None or not size else count - count % size + 1
        rounds = (rng.permutation(size)[: count - start] for start in range(0, end, size or 1))
        return chain.from_iterable(map(_ints, rounds))

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(_Drawing):
    """The given indices in a random order, another one at each iteration.

    Args:
        indices: The indices to draw.
        generator: The generator of the order; None is the default one.

    Example:
        >>> from plait_data import SubsetRandomSampler
        >>> sorted(SubsetRandomSampler([7, 3, 5], generator=0))
        [3, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = self._random.rng().permutation(len(self.indices))
        return (self.indices[i] for i in _ints(order))

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(_Drawing):
    """Indices 0, ..., ``len(weights)`` - 1, each drawn with a probability proportional to its
    weight.

    Args:
        weights: finite numbers >= 0, not all zero; they need not sum to one.
        num_samples: the number of indices to draw.
        replacement: draw each index independently of the others. Otherwise each draw is among the
            indices not drawn so far, so that at least ``num_samples`` weights must not be zero.
        generator: None, a ``numpy.random.Generator``, an int seed, or another library's generator.

    Raises:
        ValueError: the weights or ``num_samples`` are invalid.

    Example:
        >>> from plait_data import WeightedRandomSampler
        >>> set(WeightedRandomSampler([0.0, 2.0, 1.0], 50, generator=0)) == {1, 2}
        True
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Any = None,
    ) -> None:
        self.weights: Any = np.array(weights, dtype=np.float64)
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator
        self._checked_weights()

    def __getstate__(self) -> dict[str, Any]:
        state, convert = super().__getstate__(), batch_converter()
        if library_draws() is not None and convert is not None:
            state["weights"] = convert(np.asarray(self.weights))
        return state

    def _checked_weights(self) -> npt.NDArray[np.float64]:
        """Return the weights, which may have been replaced, as may the other attributes."""
        _require_bool("WeightedRandomSampler", "replacement", self.replacement)
        _require_positive("WeightedRandomSampler", "num_samples", self.num_samples)
        weights: npt.NDArray[np.float64] = np.asarray(self.weights, dtype=np.float64)
        if weights.ndim != 1 or not weights.size:
            raise ValueError(
                "WeightedRandomSampler: `weights` must be a sequence of numbers; "
                f"got shape {weights.shape}"
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError("WeightedRandomSampler: `weights` must be finite and >= 0")
        least, usable = 1 if self.replacement else self.num_samples, int(np.count_nonzero(weights))
        if usable < least:
            raise ValueError(
                f"WeightedRandomSampler: `weights` must have {least} entries above zero; "
                f"got {usable}"
            )
        return weights

    def __iter__(self) -> Iterator[int]:
        weights, rng = self._checked_weights(), self._random.rng()
        if self.replacement:
            bounds = np.cumsum(weights)
            drawn = rng.random(self.num_samples) * bounds[-1]
            # A draw may round up to the last bound; the last index with a weight takes it.
            last = int(np.flatnonzero(weights)[-1])
            return _ints(np.minimum(np.searchsorted(bounds, drawn, side="right"), last))
        # Exponential clocks with these rates ring in the order of successive weighted draws.
        with np.errstate(divide="ignore"):
            rings = rng.exponential(size=weights.size) / weights
        return _ints(np.argsort(rings, kind="stable")[: self.num_samples])

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` successive indices of another sampler.

    Args:
        sampler: a sampler or any iterable of indices.
        batch_size: the number of indices of a list.
        drop_last: drop a shorter last list.

    Raises:
        ValueError: ``batch_size`` is not a positive integer.

    Example:
        >>> from plait_data import BatchSampler
        >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool = False) -> None:
        _require_positive("BatchSampler", "batch_size", batch_size)
        _require_bool("BatchSampler", "drop_last", drop_last)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        # the sampler's iterator is made here, not at the first batch, so that it draws its random
        # numbers here
        if type(self.sampler) is RandomSampler and (order := self.sampler._order()) is not None:
            return self._slices(order)
        return self._batches(iter(self.sampler))

    def _slices(self, order: npt.NDArray[Any]) -> Iterator[list[int]]:
        # the same batches as `_batches`, in two thirds of the time
        size = self.batch_size
        end = len(order) // size * size if self.drop_last else len(order)
        for start in range(0, end, size):
            yield order[start : start + size].tolist()

    def _batches(self, indices: Iterator[int]) -> Iterator[list[int]]:
        while batch := list(islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        size = len(self.sampler)  # type: ignore[arg-type]
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)


def _ints(indices: npt.NDArray[Any]) -> Iterator[int]:
    chunks = (indices[i : i + _CHUNK].tolist() for i in range(0, len(indices), _CHUNK))
    return chain.from_iterable(chunks)


def _require_positive(operator: str, argument: str, value: object) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value <= 0:  # type: ignore[operator]
        raise ValueError(f"{operator}: `{argument}` must be a positive int; got {value!r}")


def _require_bool(operator: str, argument: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{operator}: `{argument}` must be a bool; got {value!r}")
