"""`torch.random`: states are tensors of bytes, as in PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import plait
from plait import initial_seed, manual_seed, seed

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def get_rng_state() -> Any:
    """Return the state of the default generator as a tensor of bytes.

    Plait's own has 16 bytes, its seed and its offset.

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
    """Set the state of the default generator to a result of `get_rng_state`.

    Raises:
        ValueError: for a tensor that is not such a state, also for states of PyTorch itself.
    """
    plait.set_rng_state(state_of(new_state))


def tensor_of(state: Any) -> Any:
    """Return a state of a generator as a tensor of bytes."""
    if not isinstance(state, bytes):
        state = b"".join(word.to_bytes(8, "little") for word in state)
    return plait.tensor(list(state), dtype=plait.uint8)


def state_of(tensor: Any) -> Any:
    """Return the state that `tensor_of` made a tensor of."""
    if isinstance(tensor, (tuple, bytes)):
        return tensor
    if isinstance(plait.get_rng_state(), bytes):
        return bytes(tensor.tolist())
    if tensor.dtype != plait.uint8 or tensor.numel() != 16:
        raise ValueError(
            "set_rng_state: 16 bytes of plait's generator are required, got "
            f"{tensor.numel()} of {tensor.dtype.name}; PyTorch's states are those of other "
            "generators"
        )
    words = bytes(tensor.tolist())
    return int.from_bytes(words[:8], "little"), int.from_bytes(words[8:], "little")


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


def __getattr__(name: str) -> Any:
    if name == "default_generator":  # another one after a fork
        return plait.default_generator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
