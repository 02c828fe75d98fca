"""A convolution without gradients and what is behind it: a batch norm in evaluation gives it other
weights, an activation changes its results before they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import plait_core as pc
from plait_core import Tensor
from plait_core._core import _calls_are_watched, _weights_state
from plait_nn._call import call_together, run_plainly
from plait_nn._conv import Conv1d, Conv2d, Conv3d
from plait_nn._joined_layers import ACTIVATIONS, FUNCTIONS
from plait_nn._layer import Unchanged
from plait_nn._module import Module
from plait_nn._normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from plait_nn._operators import conv2d_activation

_NORMS: dict[type[Module], type[Module]] = {
    Conv1d: BatchNorm1d,
    Conv2d: BatchNorm2d,
    Conv3d: BatchNorm3d,
}
CONVOLUTIONS = frozenset(_NORMS)
# a program may have put functions of its own in their place
_FORWARD = {kind: kind.forward for kind in (*_NORMS, *_NORMS.values(), *ACTIVATIONS)}
_unchanged = Unchanged({Conv1d: "conv1d", Conv2d: "conv2d", Conv3d: "conv3d", **FUNCTIONS})
_NUMBERS = "min_val", "max_val", "negative_slope"  # of activations, as the operator takes them


class _Folded(NamedTuple):
    state: tuple[int, ...]  # of all tensors from which the folded weights were computed
    eps: float
    sources: tuple[Tensor | None, ...]  # they keep the memory from being used again
    weight: Tensor
    bias: Tensor


_kept: WeakKeyDictionary[Module, _Folded] = WeakKeyDictionary()


def call_folded(layers: Sequence[Any], input: Tensor) -> tuple[Tensor, int] | None:
    """Call a convolution, a batch norm and an activation by one operator, if layers begin so.

    Return the result and the number of layers that ran, or None: each runs on its own. The batch
    norm or the activation may be missing. They run together without gradients, if the running
    statistics are used and no hook or override can see the intermediate tensors. The cache keeps
    the folded weights until one of their source tensors is written or replaced.
    """
    conv, *behind = layers
    norm = behind.pop(0) if type(behind[0]) is _NORMS[type(conv)] else None
    if norm is not None and norm.training:
        if _kept:
            _kept.pop(conv, None)
        return None
    activation = behind[0] if behind and _may_join(conv, behind[0]) else None
    joined = [layer for layer in (conv, norm) if layer is not None]
    if (norm is None and activation is None) or not _plainly(joined):
        return None
    weights = _weights(conv, norm, input)
    if weights is None:
        return None
    options = conv.stride, conv.padding, conv.dilation, conv.groups
    run: Callable[[Tensor], Tensor] = lambda x: conv._function(x, *weights, *options)  # noqa: E731
    if activation is not None:
        joined.append(activation)
        options += _described(activation)
        run = lambda x: conv2d_activation(x, *weights, *options)  # noqa: E731
    return call_together(joined, input, run), len(joined)


def _plainly(layers: Sequence[Any]) -> bool:
    return run_plainly(layers, _FORWARD) and _unchanged(layers)


def _may_join(conv: Any, activation: Any) -> bool:
    """Whether the convolution's operator may apply the activation."""
    return (
        type(conv) is Conv2d
        and type(activation) in ACTIVATIONS
        and pc.is_fusion_enabled()
        and _plainly((activation,))
        and not isinstance(conv.padding, str)
    )


def _described(activation: Any) -> tuple[Any, ...]:
    options = ACTIVATIONS[type(activation)](activation)
    return options["activation"], *(options.get(name, 0.0) for name in _NUMBERS)


def _weights(conv: Any, norm: Any, input: Tensor) -> tuple[Tensor, Tensor | None] | None:
    """Return the folded weight and bias, or None if both layers must run one after the other."""
    own = conv._parameters
    weight, bias = own["weight"], own["bias"]
    if norm is None:
        alone = (weight, bias)
        fits = _weights_state(alone) is not None and _fit(conv, input, alone)
        return alone if fits else None
    buffers, affine = norm._buffers, norm._parameters
    mean, var = buffers["running_mean"], buffers["running_var"]
    sources = (weight, bias, affine["weight"], affine["bias"], mean, var)
    state = _weights_state(sources)
    if state is None or mean is None or var is None or not _fit(conv, input, sources):
        return None
    if _calls_are_watched():  # by what must see how the weights are folded
        anew = _fold(state, norm.eps, sources)
        return anew.weight, anew.bias
    folded = _kept.get(conv)
    if folded is None or folded.state != state or folded.eps != norm.eps:
        folded = _kept[conv] = _fold(state, norm.eps, sources)
    return folded.weight, folded.bias


def _fit(conv: Any, input: Any, sources: Sequence[Tensor | None]) -> bool:
    """Whether the layers would accept their inputs, and compute in one dtype."""
    weight, *others = sources
    return (
        isinstance(input, Tensor)
        and weight is not None
        and conv.padding_mode == "zeros"
        and input.ndim == weight.ndim == conv._dims + 2
        and weight.dtype in (pc.float32, pc.float64)
        and all(t is None or t.dtype == weight.dtype for t in (input, *others))
        and all(t is None or tuple(t.shape) == (weight.shape[0],) for t in others)
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
