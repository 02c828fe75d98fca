"""Checks of arguments: dtypes, and sizes by dimension."""

from __future__ import annotations

from collections.abc import Sequence

import plait_core as pc
from plait_abi import ArgumentError
from plait_core import Tensor


def require_same_dtype(function: str, name: str, tensor: Tensor, **others: Tensor | None) -> None:
    """Raise for a tensor of ``others`` whose dtype is another than that of the argument ``name``:
    products and sums of both would have a third dtype.
    """
    for other, each in others.items():
        if each is not None and each.dtype != tensor.dtype:
            raise pc.DTypeError(
                f"{function}: `{name}` and `{other}` must have the same dtype; got "
                f"{tensor.dtype.name} and {each.dtype.name}"
            )


def require_floating(function: str, argument: str, tensor: Tensor, complex: bool = False) -> None:
    """Raise unless a tensor holds floating-point numbers, or with ``complex`` complex ones.

    Sums and products of integers wrap around, and fractions are lost; PyTorch refuses them too.
    """
    if tensor.is_floating_point() or (complex and tensor.is_complex()):
        return
    kind = "a floating-point or complex dtype" if complex else "a floating-point dtype"
    raise pc.DTypeError(f"{function}: `{argument}` must be {kind}; got {tensor.dtype.name}")


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
