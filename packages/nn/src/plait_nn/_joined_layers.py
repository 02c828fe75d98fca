"""A batch norm and the activation behind it, run in one pass over memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._activation import Hardswish, ReLU, SiLU
from plait_nn._batch_norm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from plait_nn._call import call_together, run_plainly
from plait_nn._looked_up import Unchanged
from plait_nn._module import Module
from plait_nn._parametric import Hardtanh, LeakyReLU, ReLU6

__all__ = ["ACTIVATIONS", "BATCH_NORMS", "FUNCTIONS", "call_joined"]

_NORMS: tuple[type[Module], ...] = (BatchNorm1d, BatchNorm2d, BatchNorm3d)
BATCH_NORMS = frozenset(_NORMS)

_clipped: Callable[[Any], dict[str, Any]] = lambda module: {  # noqa: E731
    "activation": "hardtanh",
    "min_val": module.min_val,
    "max_val": module.max_val,
}
# what they are called by operators that join them, and their numbers
ACTIVATIONS: dict[type[Module], Callable[[Any], dict[str, Any]]] = {
    ReLU: lambda module: {"activation": "relu"},
    ReLU6: _clipped,
    Hardtanh: _clipped,
    LeakyReLU: lambda module: {
        "activation": "leaky_relu",
        "negative_slope": module.negative_slope,
    },
    SiLU: lambda module: {"activation": "silu"},
    Hardswish: lambda module: {"activation": "hardswish"},
}
# a program may have put functions of its own in their place
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
    """Call a batch norm and the activation behind it by one operator, if they are the first layers.

    Return the result and the number of layers that ran, or None: each runs on its own. They run
    together if no hook or override can see the tensor between them. In evaluation they run one
    after the other.
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
