"""Maxima over windows at pseudorandom distances, as modules."""

from __future__ import annotations

from typing import Any

from plait_core import Tensor
from plait_nn._looked_up import LookedUp
from plait_nn._module import Module
from plait_nn.functional._sizes import Sizes

__all__ = ["FractionalMaxPool2d", "FractionalMaxPool3d"]


class _FractionalMaxPool(Module):
    _function: Any
    _dims: int

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(
                f"{name}: one of `output_size` and `output_ratio` must be given; "
                f"got {output_size} and {output_ratio}"
            )
        self.kernel_size = self._each(kernel_size)
        self.return_indices = return_indices
        self.output_size = None if output_size is None else self._each(output_size)
        self.output_ratio = None if output_ratio is None else self._each(output_ratio)
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"{name}: `output_ratio` must be in (0, 1); got {output_ratio}")
        self.register_buffer("_random_samples", _random_samples)

    def _each(self, given: Any) -> tuple[Any, ...]:
        return tuple(given) if isinstance(given, (tuple, list)) else (given,) * self._dims

    def forward(self, input: Tensor) -> Any:
        return type(self)._function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Take maxima of images (N, C, H, W) or (C, H, W) over windows at pseudorandom distances.

    `plait_nn.functional.fractional_max_pool2d` has the formula.

    Args:
        kernel_size: The windows' size.
        output_size: The number of windows; or
        output_ratio: the number of windows as a fraction of the input's size.
        return_indices: Also return the index of each maximum in H x W.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.FractionalMaxPool2d(3, output_size=(13, 12))(pc.randn(2, 4, 50, 32)).shape)
        (2, 4, 13, 12)
    """

    _function = LookedUp("fractional_max_pool2d")
    _dims = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Take maxima of volumes (N, C, D, H, W) or (C, D, H, W); see `FractionalMaxPool2d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.FractionalMaxPool3d(2, output_ratio=0.5)(pc.randn(1, 2, 8, 6, 4)).shape)
        (1, 2, 4, 3, 2)
    """

    _function = LookedUp("fractional_max_pool3d")
    _dims = 3
