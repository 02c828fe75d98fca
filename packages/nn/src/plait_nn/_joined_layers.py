"""A batch norm and the activation after it, computed in one pass over memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._activation import Hardswish, Hardtanh, LeakyReLU, ReLU, ReLU6, SiLU
from plait_nn._call import call_together, run_plainly
from plait_nn._layer import Unchanged
from plait_nn._module import Module
from plait_nn._normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d

_NORMS: tuple[type[Module], ...] = (BatchNorm1d, BatchNorm2d, BatchNorm3d)
BATCH_NORMS = frozenset(_NORMS)

_clipped: Callable[[Any], dict[str, Any]] = lambda module: {  # noqa: E731
    "activation": "hardtanh",
    "min_val": module.min_val,
    "max_val": module.max_val,
}
# arguments with which `batch_norm_activation` and others compute each activation
ACTIVATIONS: dict[type[Module], Callable[[Any], dict[str, Any]]] = {
    ReLU: lambda module: {"activation": "relu"},
    ReLU6: _clipped,
    Hardtanh: _clipped,
    LeakyReLU: lambda module: {"activation": "leaky_relu", "negative_slope": module.negative_slope},
    SiLU: lambda module: {"activation": "silu"},
    Hardswish: lambda module: {"activation": "hardswish"},
}
# to notice that a program has replaced a `forward`
_FORWARD = {kind: kind.forward for kind in (*_NORMS, *ACTIVATIONS)}
FUNCTIONS: dict[type[Module], str] = {
    **dict.fromkeys(_NORMS, "batch_norm"),
    ReLU: "relu",
    ReLU6: "hardtanh",
    Hardtanh: "hardtanh",
    LeakyReLU: "leaky_relu",
    SiLU: "silu",
    Hardswish: "hardswish",
}
_unchanged = Unchanged(FUNCTIONS)


def call_joined(layers: Sequence[Any], input: Tensor) -> tuple[Tensor, int] | None:
    """Run a batch norm and the activation after it as one operator, if they are the first layers.

    Return the result and the number of layers that ran, or None if each layer must run on its own:
    in evaluation, and if a hook or override could see the tensor between them.
    """
    norm, activation = layers[:2]
    options = ACTIVATIONS.get(type(activation))
    if (
        options is None
        or not pc.is_fusion_enabled()
        or not run_plainly((norm, activation), _FORWARD)
        or not _unchanged((norm, activation))
        or not norm._by_batch()
    ):
        return None
    run = partial(F.batch_norm_activation, **options(activation))
    return call_together((norm, activation), input, lambda x: norm._normalise(x, run)), 2
