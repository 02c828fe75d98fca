"""Dropout of elements and of whole channels, also with constant mean and variance."""

from __future__ import annotations

from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._module import Module


class _DropoutNd(Module):
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__}: `p` must be in [0, 1]; got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training mode, zero elements with probability ``p`` and divide the others by ``1 - p``.

    Args:
        p: Probability that an element becomes 0.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Dropout(0.5).eval()(pc.ones(2)).tolist()
        [1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """In training mode, zero whole channels with probability ``p``, scaling the others.

    Args:
        p: Probability that an element becomes 0.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Dropout2d(0.5).eval()(pc.ones(1, 2, 1, 1)).reshape(-1)
        tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """In training mode, zero whole channels of (N, C, L); see `plait.nn.functional.dropout1d`.

    Args:
        p: Probability that an element becomes 0.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Dropout1d(0.5).eval()(pc.ones(1, 2, 1)).flatten().tolist()
        [1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """In training mode, zero whole channels of (N, C, D, H, W).

    Args:
        p: Probability that an element becomes 0.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Dropout3d(0.5).eval()(pc.ones(1, 2, 1, 1, 1)).flatten().tolist()
        [1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """In training mode, drop elements and keep mean and variance.

    See `plait.nn.functional.alpha_dropout`.

    Args:
        p: Probability that an element becomes 0.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.AlphaDropout(0.5).eval()(pc.ones(2)).flatten().tolist()
        [1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """In training mode, drop whole channels and keep mean and variance.

    See `plait.nn.functional.feature_alpha_dropout`.

    Args:
        p: Probability that an element becomes 0.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.FeatureAlphaDropout(0.5).eval()(pc.ones(1, 2, 1)).flatten().tolist()
        [1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
