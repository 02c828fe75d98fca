"""`torch.random`: states are tensors of bytes, as in PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import plait
from plait import initial_seed, seed
from plait_torch._generator import state_of, tensor_of

__all__ = [
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def manual_seed(seed: Any) -> Any:
    """Start the default stream of random numbers again; returns its generator.

    Args:
        seed: as in PyTorch, a number or a text that ``int`` takes.

    Example:
        >>> from plait_torch._random import manual_seed
        >>> manual_seed(2.0).initial_seed()
        2
    """
    return plait.manual_seed(int(seed))


def get_rng_state() -> Any:
    """Return the state of the default generator as a tensor of bytes.

    PyTorch's has 5,056 bytes, plait's own 16, its seed and its offset.

    Example:
        >>> import plait
        >>> from plait_torch._random import get_rng_state, set_rng_state
        >>> state = get_rng_state()
        >>> x = plait.rand(3)
        >>> set_rng_state(state)
        >>> bool((plait.rand(3) == x).all())
        True
    """
    return tensor_of(plait.get_rng_state())


def set_rng_state(new_state: Any) -> None:
    """Set the state of the default generator to a result of `get_rng_state`, also of PyTorch's.

    Raises:
        ValueError: for a tensor that is no state of the generator in use.
    """
    plait.set_rng_state(state_of(new_state))


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, **kwargs: Any
) -> Iterator[None]:
    """A context manager that restores the default generator's state at its end."""
    before = plait.get_rng_state()
    try:
        yield
    finally:
        if enabled:
            plait.set_rng_state(before)


def thread_safe_generator() -> None:
    """Return None, with which operators draw from the default generator: plait's loaders have
    workers that are processes, whose default generators are their own.
    """


def __getattr__(name: str) -> Any:
    if name == "default_generator":  # another one after a fork
        return plait.default_generator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
