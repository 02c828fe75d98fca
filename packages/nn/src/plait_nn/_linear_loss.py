"""A linear layer and the cross entropy of its output, in one module."""

from __future__ import annotations

import math
from typing import Any

from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._linear import Linear
from plait_nn._module import Module
from plait_nn.functional._grouped import LinearCrossEntropyOptions

__all__ = ["LinearCrossEntropyLoss"]


class LinearCrossEntropyLoss(Module):
    """The cross entropy of a linear layer; `plait_nn.functional.linear_cross_entropy`.

    With ``options`` the logits of the whole batch are never in memory at once.

    Args:
        in_features: Size of the input.
        num_classes: Number of classes, C.
        out_features: Further dimensions of the loss, (d1, ...).
        bias: Whether the layer has a bias.
        device: Where the parameters live.
        dtype: Their dtype; None is float32.
        reduction: "mean", "sum" or "none".
        weight: A factor for each class.
        ignore_index: A class that is ignored; None: -100 for class indices.
        label_smoothing: The part of the target that is spread over all classes.
        options: `LinearCrossEntropyOptions`; None makes all logits at once.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> loss = nn.LinearCrossEntropyLoss(8, 20, options=nn.LinearCrossEntropyOptions())
        >>> bool(loss(pc.randn(5, 8), pc.tensor([0, 3, 4, 12, 19])) > 0)
        True
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        super().__init__()
        self.reduction = reduction
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        rows = num_classes * math.prod(self.out_features)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        weight: Tensor = self.linear.weight
        bias: Tensor | None = self.linear.bias
        if self.out_features:
            shape = (self.num_classes, *self.out_features)
            weight = weight.reshape((*shape, self.linear.in_features))
            bias = None if bias is None else bias.reshape(shape)
        return F.linear_cross_entropy(
            input,
            weight,
            target,
            linear_bias=bias,
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )
