"""Padding at the borders."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plait_abi import operator
from plait_core import Tensor

_pad: Callable[..., Tensor] = operator("pad")


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Put elements before and after each of the last dimensions.

    Args:
        input: Any tensor.
        pad: Two ints for every dimension, the last dimension first: ``(left, right, top, bottom)``.
            Negative ones cut elements off: before the padding in mode "circular", else after it.
        mode: "constant", "reflect" (the border not repeated), "replicate" or "circular".
        value: The elements of mode "constant"; None is 0.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.pad(pc.tensor([1.0, 2.0, 3.0]), (2, 1), mode="reflect").tolist()
        [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]
    """
    return _pad(input, pad, mode, 0 if value is None else value)
