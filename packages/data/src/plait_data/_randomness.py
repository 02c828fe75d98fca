"""The random numbers of samplers and splits.

Without a ``generator`` they draw, in this order, from the generator that `manual_seed` seeded; from
a seed source that the program registered (the ``plait`` package registers its own generator, so
that ``plait.manual_seed`` governs shuffling too); from fresh entropy of the operating system.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

SeedSource = Callable[[], int]


class LibraryDraws(Protocol):
    """Orders and seeds as another library draws them, for programs that expect its numbers.

    Attributes:
        kind: the ``"bit_generator"`` in the states of its generators.
        block: the number of indices that a sampler with replacement draws at once.

    A library may also have ``worker_error(error, trace, worker)``, which returns the exception that
    a loader raises for one of a worker, from it, its traceback's text and the worker's number.

    Example:
        >>> import numpy as np, plait_data
        >>> class Draws:
        ...     kind, block = "PCG64", 32
        ...     def rng(self, operator, generator):
        ...         return np.random.default_rng(3)
        ...     def seed_worker(self, seed, worker):
        ...         np.random.seed(seed % 2**32)
        >>> before = plait_data.set_library_draws(Draws())
        >>> list(plait_data.RandomSampler("abc")) == list(plait_data.RandomSampler("abc"))
        True
        >>> _ = plait_data.set_library_draws(before)
    """

    kind: str
    block: int

    def rng(self, operator: str, generator: Any) -> Any:
        """Return what a sampler, a split or a loader draws from, with the methods of a
        `numpy.random.Generator` that they call; ``generator`` is their argument, or None.
        """

    def seed_worker(self, seed: int, worker: int) -> None:
        """Seed the global generators of a process that makes samples, once."""


_seeded: np.random.Generator | None = None
_seed_source: SeedSource | None = None
_library: LibraryDraws | None = None
_SEED_LIMIT = 2**63 - 1


def manual_seed(seed: int | None) -> None:
    """Seed the generator of samplers and splits without a ``generator``; None undoes it.

    Args:
        seed: an integer >= 0, or None for a registered seed source or fresh entropy again.

    Raises:
        ValueError: ``seed`` is negative.

    Example:
        >>> import plait_data
        >>> orders = []
        >>> for _ in range(2):
        ...     plait_data.manual_seed(0)
        ...     orders.append(list(plait_data.RandomSampler(range(100))))
        >>> plait_data.manual_seed(None)
        >>> orders[0] == orders[1]
        True
    """
    global _seeded
    _seeded = None if seed is None else _numpy_generator("manual_seed", "seed", seed)


def set_seed_source(source: SeedSource | None) -> SeedSource | None:
    """Register the source of seeds that is used if neither a generator nor a seed was given.

    Args:
        source: a function without arguments that returns another non-negative integer at each
            call, or None for the entropy of the operating system.

    Returns:
        The source that was registered before.

    Example:
        >>> import plait_data
        >>> numbers = iter(range(10))
        >>> before = plait_data.set_seed_source(lambda: next(numbers))
        >>> order = list(plait_data.RandomSampler(range(100)))
        >>> _ = plait_data.set_seed_source(before)
        >>> next(numbers)
        1
    """
    global _seed_source
    if source is not None and not callable(source):
        raise TypeError(
            "set_seed_source: `source` must be a function that returns an int, or None; "
            f"got {type(source).__name__}"
        )
    before, _seed_source = _seed_source, source
    return before


def set_library_draws(draws: LibraryDraws | None) -> LibraryDraws | None:
    """Let samplers, splits and loaders draw as another library does, if they have no generator of
    NumPy and no seed.

    Args:
        draws: see `LibraryDraws`; None: they draw as plait's do, which is the default.

    Returns:
        What was set before.

    Example:
        >>> import plait_data
        >>> before = plait_data.set_library_draws(None)
        >>> plait_data.set_library_draws(before) is None
        True
    """
    global _library
    before, _library = _library, draws
    return before


def library_draws() -> LibraryDraws | None:
    """Return what `set_library_draws` set."""
    return _library


class RandomSource:
    """A NumPy generator for each epoch, from any kind of ``generator`` argument.

    Args:
        operator: the name of the caller, for errors.
        generator: None (the default source, looked up at each epoch), a
            ``numpy.random.Generator``, an int seed, or another library's generator: an object
            with ``initial_seed()`` or an integer ``seed``. If that library has PyTorch's
            ``randint(low, high, size, generator=)``, each epoch draws a seed from the generator;
            otherwise its seed is read once.
    """

    def __init__(self, operator: str, generator: Any) -> None:
        self._operator = operator
        self._foreign: Any = None
        self._generator: np.random.Generator | None = None
        self._latest: np.random.Generator | None = None
        self._begun: Any = None
        self._replayed: Any = None
        if generator is None or isinstance(generator, np.random.Generator):
            self._generator = generator
        elif isinstance(generator, (int, np.integer)):
            self._generator = _numpy_generator(operator, "generator", int(generator))
        elif callable(getattr(generator, "initial_seed", None)):
            if _library is not None or _randint_of(generator) is not None:
                self._foreign = generator
            else:
                seed = int(generator.initial_seed())
                self._generator = _numpy_generator(operator, "generator", seed)
        elif isinstance(getattr(generator, "seed", None), (int, np.integer)):
            self._generator = _numpy_generator(operator, "generator", int(generator.seed))
        else:
            raise TypeError(
                f"{operator}: `generator` must be a numpy.random.Generator, an int seed, or an "
                f"object with `initial_seed()` or `seed`; got {type(generator).__name__}"
            )

    def rng(self) -> np.random.Generator:
        """The generator to draw the next epoch (or split) from."""
        state, self._replayed = self._replayed, None
        if state is None:
            self._latest = self._pick()
        else:
            self._latest = self._lasting() or _of_kind(state)
            self._latest.bit_generator.state = state
        self._begun = self._latest.bit_generator.state
        return self._latest

    @property
    def latest(self) -> np.random.Generator:
        """The generator that `rng` returned last; a new one if it was never called."""
        return self.rng() if self._latest is None else self._latest

    @property
    def begun(self) -> Any:
        """The state of `latest` when `rng` returned it, None before."""
        return self._begun

    @property
    def next_state(self) -> Any:
        """The state for the next epoch; None if each epoch has a seed of its own."""
        lasting = self._lasting()
        return None if lasting is None else lasting.bit_generator.state

    def replay(self, state: Any) -> None:
        """Make the next `rng` start from ``state``, a value of `begun` or `next_state`."""
        self._replayed = state

    def _lasting(self) -> np.random.Generator | None:
        """The generator that all epochs draw from, if there is one."""
        if self._generator is not None:
            return self._generator
        return _seeded if self._foreign is None and _library is None else None

    def _pick(self) -> np.random.Generator:
        if self._generator is not None:
            return self._generator
        if _library is not None:
            library: np.random.Generator = _library.rng(self._operator, self._foreign)
            return library
        if self._foreign is not None:
            randint = _randint_of(self._foreign)
            assert randint is not None
            seed = randint(0, _SEED_LIMIT, (1,), generator=self._foreign)
            return np.random.default_rng(int(seed.item()))
        if _seeded is not None:
            return _seeded
        if _seed_source is not None:
            return _numpy_generator("set_seed_source", "source()", int(_seed_source()))
        return np.random.default_rng()


def _of_kind(state: Any) -> np.random.Generator:
    if _library is not None and state["bit_generator"] == _library.kind:
        library: np.random.Generator = _library.rng("RandomSampler", None)
        return library
    kind = getattr(np.random, state["bit_generator"])
    return np.random.Generator(kind())


def _randint_of(generator: Any) -> Any:
    """``randint`` of the library that a generator belongs to, or None."""
    library = sys.modules.get(type(generator).__module__.partition(".")[0])
    return getattr(library, "randint", None) if library is not np else None


def _numpy_generator(operator: str, argument: str, seed: int) -> np.random.Generator:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"{operator}: `{argument}` must be an int; got {type(seed).__name__}")
    if seed < 0:
        raise ValueError(f"{operator}: `{argument}` must be >= 0 as a seed; got {seed}")
    return np.random.default_rng(int(seed))
