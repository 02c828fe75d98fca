"""Orders of samplers and seeds of loaders, drawn as PyTorch draws them."""

from __future__ import annotations

import random
import sys
from functools import cache
from typing import Any

import numpy as np

import plait
import plait_data
from plait_torch._tensor_lists import worker_error

__all__ = ["bind", "unbind"]

_MASK = 2**32 - 1


class _Draws:
    """A generator of PyTorch, with the methods of NumPy's that samplers and loaders call.

    Args:
        generator: None: the default one.
    """

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    @property
    def bit_generator(self) -> Any:
        """What has a `state`, as in NumPy."""
        return self

    @property
    def state(self) -> dict[str, Any]:
        """Where the generator is."""
        return {"bit_generator": _PyTorch.kind, "state": self._own().get_state()}

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self._own().set_state(state["state"])

    def _own(self) -> Any:
        return plait.default_generator if self._generator is None else self._generator

    def permutation(self, n: int) -> Any:
        """Return 0, ..., n - 1 in a random order."""
        return plait.randperm(n, generator=self._generator).numpy()

    def integers(self, low: int, high: int | None = None, size: int | None = None) -> Any:
        """Return ``size`` integers from low up to high, or one seed."""
        if size is None or high is None:
            return _seed(self._generator)
        return plait.randint(low, high, (size,), generator=self._generator).numpy()

    def random(self, size: int) -> Any:
        """Return uniform numbers in [0, 1)."""
        return plait.rand(size, dtype=plait.float64, generator=self._generator).numpy()

    def exponential(self, size: int) -> Any:
        """Return exponential numbers with the mean 1."""
        numbers = plait.empty(size, dtype=plait.float64)
        return numbers.exponential_(generator=self._generator).numpy()


def _seed(generator: Any) -> int:
    return int(plait.empty((), dtype=plait.int64).random_(generator=generator).item())


class _PyTorch:
    """What `plait_data` asks; see `plait_data.LibraryDraws`."""

    kind = "PyTorch"
    block = 32

    @staticmethod
    def rng(operator: str, generator: Any) -> Any:
        """Return the generator of a sampler, a split or a loader."""
        if operator == "DataLoader":  # which may start workers
            _import_names()
        if operator == "RandomSampler" and generator is None:
            generator = plait.Generator().manual_seed(_seed(None))
        return _Draws(generator)

    worker_error = staticmethod(worker_error)

    @staticmethod
    def seed_worker(seed: int, worker: int) -> None:
        """Seed the global generators of a worker process."""
        random.seed(seed + worker)
        plait.manual_seed(seed + worker)
        np.random.seed(_numpy_seed(seed, worker))


@cache
def _import_names() -> None:
    """Import what workers use of the facade before they are forked, once for all of them."""
    plait.empty(0).__array_namespace__()  # which stacks samples
    for name in ("torch", "torch.nn.functional"):
        load = getattr(sys.modules.get(name), "_import_sources", None)
        if load is not None:  # PyTorch itself may be imported
            load()


def _numpy_seed(seed: int, worker: int) -> list[int]:
    """Return four words from a seed and a worker's number (O'Neill 2015, "Developing a seed_seq
    alternative"), as NumPy's `SeedSequence` mixes them.
    """
    entropy = [worker, seed & _MASK, seed >> 32, 0]
    constant = 0x43B0D7E5

    def hashed(value: int) -> int:
        nonlocal constant
        value = (value ^ constant) & _MASK
        constant = constant * 0x931E8875 & _MASK
        value = value * constant & _MASK
        return (value ^ value >> 16) & _MASK

    def mixed(x: int, y: int) -> int:
        result = (0xCA01F9DD * x - 0x4973F715 * y) & _MASK
        return (result ^ result >> 16) & _MASK

    pool = [hashed(value) for value in entropy]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = mixed(pool[target], hashed(pool[source]))
    words = []
    constant = 0x8B51F9DD
    for value in pool:
        value ^= constant
        constant = constant * 0x58F38DED & _MASK
        value = value * constant & _MASK
        words.append((value ^ value >> 16) & _MASK)
    return words


def bind() -> None:
    """Let samplers, splits and loaders draw as PyTorch's do."""
    plait_data.set_library_draws(_PyTorch())


def unbind() -> None:
    """Let them draw as plait's do."""
    plait_data.set_library_draws(None)
