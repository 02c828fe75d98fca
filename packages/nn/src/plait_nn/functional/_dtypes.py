"""Checks of the dtypes that a function can compute in."""

from __future__ import annotations

import plait_core as pc
from plait_core import Tensor

__all__ = ["require_bias", "require_floating"]


def require_bias(function: str, input: Tensor, bias: Tensor | None) -> None:
    """Raise for a bias of another dtype than the input's: its sum would have a third dtype."""
    if bias is not None and bias.dtype != input.dtype:
        raise pc.DTypeError(
            f"{function}: `input` and `bias` must have the same dtype; got {input.dtype.name} "
            f"and {bias.dtype.name}"
        )


def require_floating(function: str, argument: str, tensor: Tensor, complex: bool = False) -> None:
    """Raise unless a tensor holds floating-point numbers, or with ``complex`` complex ones.

    Sums and products of integers wrap around, and fractions are lost; PyTorch refuses them too.
    """
    if tensor.is_floating_point() or (complex and tensor.is_complex()):
        return
    kind = "a floating-point or complex dtype" if complex else "a floating-point dtype"
    raise pc.DTypeError(f"{function}: `{argument}` must be {kind}; got {tensor.dtype.name}")
