"""A convolution and the batch norm behind it in evaluation: one convolution with other weights."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import plait_core as pc
from plait_core import Tensor
from plait_core._core import _weights_state
from plait_nn._batch_norm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from plait_nn._call import call_together, run_plainly
from plait_nn._conv import Conv1d, Conv2d, Conv3d
from plait_nn._module import Module

__all__ = ["CONVOLUTIONS", "call_folded"]

_NORMS: dict[type[Module], type[Module]] = {
    Conv1d: BatchNorm1d,
    Conv2d: BatchNorm2d,
    Conv3d: BatchNorm3d,
}
CONVOLUTIONS = frozenset(_NORMS)
# a program may have put functions of its own in their place
_FORWARD = {kind: kind.forward for pair in _NORMS.items() for kind in pair}


class _Folded(NamedTuple):
    state: tuple[int, ...]  # of all that the folded weights were made of
    eps: float
    sources: tuple[Tensor | None, ...]  # keeps the memory, so that nothing else comes to lie there
    weight: Tensor
    bias: Tensor


_kept: WeakKeyDictionary[Module, _Folded] = WeakKeyDictionary()


def call_folded(conv: Any, norm: Any, input: Tensor) -> Tensor | None:
    """Return ``norm(conv(input))`` by one convolution, or None: each runs on its own.

    They run as one without gradients, if the running statistics are used and nobody can see what is
    between the two. The folded weights are kept until one of the tensors that they were made of is
    written or replaced.
    """
    kind: Any = _NORMS[type(conv)]
    if type(norm) is not kind:
        return None
    if norm.training:
        if _kept:
            _kept.pop(conv, None)
        return None
    if not run_plainly((conv, norm), _FORWARD):
        return None
    own, buffers, affine = conv._parameters, norm._buffers, norm._parameters
    mean, var = buffers["running_mean"], buffers["running_var"]
    sources = (own["weight"], own["bias"], affine["weight"], affine["bias"], mean, var)
    state = _weights_state(sources)
    if state is None or not _fit(conv, norm, input, sources):
        return None
    kept = _kept.get(conv)
    if kept is None or kept.state != state or kept.eps != norm.eps:
        kept = _kept[conv] = _fold(state, norm.eps, sources)
    options = conv.stride, conv.padding, conv.dilation, conv.groups
    return call_together(
        conv, norm, input, lambda x: conv._convolve(x, kept.weight, kept.bias, *options)
    )


def _fit(conv: Any, norm: Any, input: Any, sources: tuple[Any, ...]) -> bool:
    """Whether both layers would accept their inputs, and compute in one dtype."""
    weight, bias, scale, shift, mean, var = sources
    return (
        isinstance(input, Tensor)
        and not (weight is None or mean is None or var is None)
        and conv.padding_mode == "zeros"
        and input.ndim == weight.ndim == conv._dims + 2
        and weight.dtype in (pc.float32, pc.float64)
        and all(t is None or t.dtype == weight.dtype for t in (input, *sources))
        and all(
            t is None or tuple(t.shape) == (weight.shape[0],)
            for t in (bias, scale, shift, mean, var)
        )
    )


def _fold(state: tuple[int, ...], eps: float, sources: tuple[Any, ...]) -> _Folded:
    aliases: tuple[Any, ...] = tuple(None if t is None else t.detach() for t in sources)
    weight, bias, scale, shift, mean, var = aliases
    factor = (var + eps).rsqrt()
    if scale is not None:
        factor = factor * scale
    folded = weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
    moved = -mean if bias is None else bias - mean
    moved = moved * factor
    return _Folded(state, eps, aliases, folded, moved if shift is None else moved + shift)
