"""`torch.nn.init`: functions that draw as PyTorch's do, where those of `nn.init` draw otherwise."""

from __future__ import annotations

import math
from typing import Any

import plait

__all__ = ["trunc_normal_"]

_LEAST_WITHIN = 0.3  # of the normal numbers


def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Any:
    """Fill a tensor with normal numbers between ``a`` and ``b``; see `plait.nn.init.trunc_normal_`.

    Numbers outside are drawn again: from the normal distribution if most of it lies within, else
    from a uniform one, with a second number that decides.

    Example:
        >>> import plait
        >>> from plait_torch._init import trunc_normal_
        >>> bool((trunc_normal_(plait.empty(100)).abs() <= 2).all())
        True
    """
    if tensor.is_meta:
        return tensor
    within = (math.erf((b - mean) / std / 2**0.5) - math.erf((a - mean) / std / 2**0.5)) / 2
    with plait.no_grad():
        if within > _LEAST_WITHIN:
            low, high = (plait.tensor(end, dtype=tensor.dtype).item() for end in (a, b))
            result = tensor.normal_(mean, std, generator=generator)
            while (outside := (result < low) | (result > high)).any():
                again = plait.empty_like(result).normal_(mean, std, generator=generator)
                result = plait.where(outside, again, result)
        else:
            result = _from_uniform(tensor, mean, std, a, b, generator)
        if result is not tensor:
            tensor.copy_(result)
    return tensor


def _from_uniform(tensor: Any, mean: float, std: float, a: float, b: float, generator: Any) -> Any:
    """Return numbers of [a, b], each kept with the share of its density in the largest one."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    result, refused = tensor, None
    while refused is None or refused.any():
        drawn = plait.empty_like(tensor).uniform_(a, b, generator=generator)
        result = drawn if refused is None else plait.where(refused, drawn, result)
        density = ((drawn - mean) / std) ** 2 * -0.5 - peak
        now = plait.empty_like(tensor).uniform_(generator=generator).log() > density
        refused = now if refused is None else plait.where(refused, now, refused)
    return result
