"""An int for every dimension, or one int for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import plait_core as pc
from plait_abi import ArgumentError
from plait_core import Tensor

__all__ = ["Sizes", "reserve", "sizes_of"]

Sizes = int | Sequence[int]


def sizes_of(value: Sizes, dims: int, name: str, operator: str) -> tuple[int, ...]:
    """Return ``value`` for each of ``dims`` dimensions."""
    if isinstance(value, int):
        return (value,) * dims
    if len(value) in (1, dims):
        return tuple(int(v) for v in value) * (dims if len(value) == 1 else 1)
    count = {1: "one in a tuple", 2: "two ints", 3: "three ints"}[dims]
    raise ArgumentError(f"{operator}: `{name}` must be an int or {count}; got {tuple(value)}")


def reserve(nbytes: int, like: Tensor) -> None:
    """Raise before a computation that needs more memory, ``nbytes`` on the device of ``like``, than
    there is.
    """
    # sizes of more than 62 bits are not valid for `empty`
    pc.empty(min(nbytes, 2**62), dtype=pc.uint8, device=like.device)
