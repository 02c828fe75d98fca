"""The base of normalising layers: a weight and a bias, or neither."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_nn import init
from plait_nn._module import Module
from plait_nn._parameter import Parameter

__all__ = ["Affine"]


class Affine(Module):
    """A module that multiplies by a weight and adds a bias, if it has them."""

    weight: Parameter | None
    bias: Parameter | None

    def _add_affine(
        self, shape: int | tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        for name, present in (("weight", weight), ("bias", bias)):
            empty = pc.empty(shape, device=device, dtype=dtype) if present else None
            self.register_parameter(name, None if empty is None else Parameter(empty))

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)
