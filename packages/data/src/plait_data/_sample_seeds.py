"""Random numbers of samples, which do not depend on the process or the order."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import length_hint
from typing import Any

import numpy as np

from plait_data._randomness import RandomSource

_WORD = 2**64 - 1
_SAMPLE, _BATCH, _NAMED = 0, 1, 2  # the streams of a key: a position, a whole batch, a text


def _seed_torch(library: Any, z: int) -> None:
    # where `torch` means plait its module has no generator of its own: plait's is seeded anyway
    generator = vars(library).get("default_generator")
    if generator is not None:
        generator.manual_seed(z)


_SEEDERS: dict[str, Callable[[Any, int], object]] = {
    "random": lambda library, z: library.seed(z),
    "numpy.random": lambda library, z: library.seed(z & 0xFFFFFFFF),
    "plait_core": lambda library, z: library.manual_seed(z),
    "torch": _seed_torch,
}
SEEDED = tuple(_SEEDERS)  # libraries with a global generator
_local = threading.local()


class Cursor:
    """The position of a loop over ``indices``, and the generator of the sample at it.

    Attributes:
        seed: the seed of the epoch.
        indices: the indices of the batch.
        iterator: the list's (or tuple's, range's) iterator that the loop runs on; None while the
            batch as a whole is made.
    """

    __slots__ = ("_at", "_generator", "indices", "iterator", "seed")

    def __init__(self, seed: int, indices: Sequence[Any]) -> None:
        self.seed = seed
        self.indices = indices
        self.iterator: Iterator[Any] | None = None
        self._generator: np.random.Generator | None = None
        self._at = -1

    def position(self) -> int:
        """The position in ``indices`` of the current sample; -1 for the batch as a whole."""
        # the iterator's length hint gives the position, so the loop need not count
        if self.iterator is None:
            return -1
        return len(self.indices) - length_hint(self.iterator) - 1

    def generator(self) -> np.random.Generator:
        """The generator of the current position, the same object until the loop moves on."""
        at = self.position()
        if self._generator is None or at != self._at:
            self._at = at
            index = self.indices[max(at, 0)] if len(self.indices) else 0
            self._generator = _keyed(self.seed, index, _BATCH if at < 0 else _SAMPLE)
        return self._generator


def _keyed(seed: int, index: Any, stream: int) -> np.random.Generator:
    if not isinstance(index, (int, np.integer)):
        stream += _NAMED
    key = np.array([seed & _WORD, _word(index)], dtype=np.uint64)
    counter = np.array([0, 0, 0, stream], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(counter=counter, key=key))


def _word(index: Any) -> int:
    if isinstance(index, (int, np.integer)):
        return int(index) & _WORD
    import hashlib  # imported here, as samplers of names are rare

    return int.from_bytes(hashlib.blake2b(repr(index).encode(), digest_size=8).digest(), "little")


def sample_rng() -> np.random.Generator:
    """The random generator of the sample that is being made.

    Its numbers depend on the loader's seed, the epoch and the sample's index, and on nothing else:
    a dataset (or a transform, or a ``collate_fn``) that draws from it gives the same samples with
    0, 1 or 7 workers and after a resumed epoch. In an iterable dataset the index is the sample's
    number in its worker's stream. Several calls for one sample return the same generator.

    The seed comes from the loader's ``generator``, or else from `manual_seed` or the seed source.
    Outside of a loader the generator comes from the same source.

    Returns:
        A ``numpy.random.Generator`` (Philox with the key (seed of the epoch, index)).

    Example:
        >>> from plait_data import DataLoader, Dataset, sample_rng
        >>> class Noisy(Dataset[float]):
        ...     def __getitem__(self, index):
        ...         return index + sample_rng().random()
        ...     def __len__(self):
        ...         return 4
        >>> def epoch(order):
        ...     return [float(x[0]) for x in DataLoader(Noisy(), sampler=order, generator=0)]
        >>> epoch([0, 1, 2, 3]) == epoch([3, 2, 1, 0])[::-1]
        True
    """
    cursor: Cursor | None = getattr(_local, "cursor", None)
    if cursor is None:
        return RandomSource("sample_rng", None).rng()
    return cursor.generator()


def enter(cursor: Cursor) -> Cursor | None:
    """Set the cursor of `sample_rng` in this thread; return the one before."""
    before: Cursor | None = getattr(_local, "cursor", None)
    _local.cursor = cursor
    return before


def leave(before: Cursor | None) -> None:
    """Restore the random numbers that `enter` replaced."""
    _local.cursor = before


def reseed(seed: int, index: Any, libraries: Iterable[str] = SEEDED) -> None:
    """Seed the global generators of the imported libraries by (seed, index)."""
    # The finisher of SplitMix64 (Steele, Lea, Flood 2014): neighbours get unrelated numbers.
    z = (seed + _word(index) * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & _WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
    z = (z ^ (z >> 31)) >> 1
    loaded = sys.modules
    for name in libraries:
        library = loaded.get(name)
        if library is not None:
            _SEEDERS[name](library, z)


@contextmanager
def preserved_globals() -> Iterator[None]:
    """Restore the global generators at the end, so that loading in process does not change them."""
    import random

    python, numpy = random.getstate(), np.random.get_state()
    libraries = [sys.modules[name] for name in ("plait_core", "torch") if name in sys.modules]
    states = [library.get_rng_state() for library in libraries]
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        for library, state in zip(libraries, states, strict=True):
            library.set_rng_state(state)
