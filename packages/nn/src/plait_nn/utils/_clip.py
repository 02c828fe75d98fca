"""Clipping of gradients."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import plait_core as pc
from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn._halves import HALVES, widened


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Any]:
    tensors = [parameters] if isinstance(parameters, Tensor) else parameters
    gradients: list[Any] = [tensor.grad for tensor in tensors]
    # a sparse gradient is written directly: its detach() is another object
    return [
        gradient if isinstance(gradient, pc.SparseTensor) else gradient.detach()
        for gradient in gradients
        if gradient is not None
    ]


def _dense(name: str, tensors: list[Tensor]) -> list[Tensor]:
    if any(isinstance(tensor, pc.SparseTensor) for tensor in tensors):
        raise NotImplementedError(
            f"{name}: gradients must be dense, got a SparseTensor; in PyTorch it has none either"
        )
    return tensors


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of all elements of all tensors together, as a 0-d tensor.

    It is on the device of the first tensor; the others may be on other devices. The norm of float16
    and bfloat16 is float32, as they hold numbers whose norm they do not hold.

    Args:
        tensors: A tensor or several.
        norm_type: p of the p-norm; ``inf`` is the largest absolute value.
        error_if_nonfinite: Raise RuntimeError if the norm is nan or infinite. That reads it, and so
            waits for a device.
        foreach: Unused; programs written for PyTorch may pass it.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.utils.get_total_norm([pc.tensor([3.0]), pc.tensor([4.0])]).item()
        5.0
    """
    gradients = _dense(
        "get_total_norm", [tensors] if isinstance(tensors, Tensor) else list(tensors)
    )
    if not gradients:
        return pc.tensor(0.0)
    p = float(norm_type)
    each = [_norm(tensor, p) for tensor in gradients]
    wide = functools.reduce(pc.promote_types, (norm.dtype for norm in each))
    total = _norm(pc.stack([norm.to(each[0].device, wide) for norm in each]), p)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"clip_grad_norm_: the norm of order {p} of the gradients is {total.item()}, so they "
            f"can't be clipped; error_if_nonfinite=False scales them by it all the same"
        )
    return total


def _norm(tensor: Tensor, p: float) -> Tensor:
    if not tensor.numel():
        return widened(tensor.abs().sum())
    # a half may not hold the norm of halves
    wide = pc.float32 if tensor.dtype in HALVES else None
    return pc.linalg.vector_norm(tensor, p, dtype=wide)


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    r"""Scale gradients in place by :math:`\min(1, m / (n + 10^{-6}))` for a norm n that is known.

    Args:
        parameters: A tensor or several; those without a gradient are skipped.
        max_norm: The largest norm, m.
        total_norm: The norm, a result of `get_total_norm`.
        foreach: Unused; programs written for PyTorch may pass it.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> w = nn.Parameter(pc.zeros(2))
        >>> w.grad = pc.tensor([3.0, 4.0])
        >>> nn.utils.clip_grads_with_norm_(w, 1.0, pc.tensor(10.0))
        >>> [round(g, 4) for g in w.grad.tolist()]
        [0.3, 0.4]
    """
    factor = (max_norm / (widened(total_norm) + 1e-6)).clamp(max=1.0)
    for gradient in _gradients(parameters):
        if gradient.dtype in HALVES:  # a factor that is rounded to a half may be 0
            wide = gradient.to(pc.float32)
            gradient.copy_(wide.mul_(factor.to(gradient.device)))
        else:
            gradient.mul_(factor.to(gradient.device, gradient.dtype))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    r"""Scale gradients in place so that their norm together is at most ``max_norm``.

    Every gradient is multiplied by :math:`\min(1, m / (\|g\| + 10^{-6}))` (Pascanu et al. 2013).
    Nothing is read, so that gradients on a device are not waited for.

    Args:
        parameters: A tensor or several; those without a gradient are skipped.
        max_norm: The largest norm, m.
        norm_type: p of the p-norm; ``inf`` is the largest absolute value.
        error_if_nonfinite: Raise RuntimeError if the norm is nan or infinite, before anything is
            changed. That reads the norm, and so waits for a device.
        foreach: Unused; programs written for PyTorch may pass it.

    Returns:
        The norm before clipping.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> w = nn.Parameter(pc.zeros(2))
        >>> w.grad = pc.tensor([3.0, 4.0])
        >>> nn.utils.clip_grad_norm_([w], 1.0).item()
        5.0
        >>> [round(g, 4) for g in w.grad.tolist()]
        [0.6, 0.8]
    """
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if not tensors and isinstance(parameters, Iterator):
        warn(
            "`parameters` is an empty generator, no gradient clipping will occur: clip_grad_norm_ "
            "needs a generator that was not used before"
        )
    gradients = _dense("clip_grad_norm_", _gradients(tensors))
    total = get_total_norm(gradients, norm_type, error_if_nonfinite)
    clip_grads_with_norm_(tensors, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Call `clip_grad_norm_`; an old name.

    Args:
        parameters: The parameters.
        max_norm: The largest norm.
        norm_type: The order of the norm.
        error_if_nonfinite: Whether a norm that is nan or infinite is an error.
        foreach: Accepted as PyTorch has it.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> w = nn.Parameter(pc.zeros(1))
        >>> w.grad = pc.tensor([3.0])
        >>> nn.utils.clip_grad_norm(w, 1.0).item()
        3.0
    """
    warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clip every element of the gradients in place to ``[-clip_value, clip_value]``.

    Args:
        parameters: A tensor or several; those without a gradient are skipped.
        clip_value: The largest absolute value.
        foreach: Unused; programs written for PyTorch may pass it.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.zeros(2, requires_grad=True)
        >>> x.grad = pc.tensor([-3.0, 0.5])
        >>> nn.utils.clip_grad_value_(x, 1.0)
        >>> x.grad
        tensor([-1.0000,  0.5000])
    """
    bound = float(clip_value)
    for gradient in _dense("clip_grad_value_", _gradients(parameters)):
        gradient.clamp_(-bound, bound)
