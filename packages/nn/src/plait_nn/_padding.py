"""Padding as modules: constant, zero, reflection, replication, circular; 1 to 3 dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._layer import Layer
from plait_nn._module import Module


class _Pad(Layer):
    """Two numbers for every dimension, the last dimension first, and a mode of `functional.pad`."""

    padding: tuple[int, ...]
    _mode: str

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self._set_up(padding)

    def _set_up(self, padding: int | Sequence[int]) -> None:
        count = 2 * self._dims
        self.padding = (padding,) * count if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != count:
            raise ValueError(
                f"{type(self).__name__}: `padding` must be one int or {count}; got {self.padding}"
            )

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(self._check(input), self.padding, self._mode)

    def _check(self, input: Tensor) -> Tensor:
        if input.ndim not in (self._dims + 1, self._dims + 2) and self._mode != "constant":
            raise ValueError(
                f"{type(self).__name__}: `input` must have {self._dims + 1} or {self._dims + 2} "
                f"dimensions; got shape {tuple(input.shape)}"
            )
        return input

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad, fields="padding value"):
    value: float
    _mode = "constant"
    extra_repr = Layer.extra_repr

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        Module.__init__(self)
        self.value = value
        self._set_up(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPad(_Pad):
    _mode = "reflect"


class _ReplicationPad(_Pad):
    _mode = "replicate"


class _CircularPad(_Pad):
    _mode = "circular"


class ConstantPad1d(_ConstantPad, dims=1):
    """Put ``value`` on both sides of the last dimension.

    Args:
        padding: How many, or ``(left, right)``; below 0 it cuts.
        value: The elements put there.

    Raises:
        ValueError: There are more or fewer numbers.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 3)
        >>> nn.ConstantPad1d((2, 1), 9.0)(x).flatten().tolist()
        [9.0, 9.0, 1.0, 2.0, 3.0, 9.0]
    """


class ConstantPad2d(_ConstantPad, dims=2):
    """`ConstantPad1d` for the last two dimensions.

    ``padding`` is one number or ``(left, right, top, bottom)``.

    Args:
        padding: Elements on every side, one int, or two for each dimension from the last one on.
        value: The value of the new elements.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 3)
        >>> nn.ConstantPad2d((2, 1, 0, 0), 9.0)(x).flatten().tolist()
        [9.0, 9.0, 1.0, 2.0, 3.0, 9.0]
    """


class ConstantPad3d(_ConstantPad, dims=3):
    """`ConstantPad1d` for the last three dimensions.

    ``padding`` is one number or ``(left, right, top, bottom, front, back)``.

    Args:
        padding: Elements on every side, one int, or two for each dimension from the last one on.
        value: The value of the new elements.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 1, 3)
        >>> nn.ConstantPad3d((2, 1, 0, 0, 0, 0), 9.0)(x).flatten().tolist()
        [9.0, 9.0, 1.0, 2.0, 3.0, 9.0]
    """


class ZeroPad1d(_ZeroPad, dims=1):
    """Put 0 on both sides of the last dimension.

    Args:
        padding: How many, or ``(left, right)``; below 0 it cuts.

    Raises:
        ValueError: There are more or fewer numbers.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 3)
        >>> nn.ZeroPad1d((2, 1))(x).flatten().tolist()
        [0.0, 0.0, 1.0, 2.0, 3.0, 0.0]
    """


class ZeroPad2d(_ZeroPad, dims=2):
    """`ZeroPad1d` for the last two dimensions.

    ``padding`` is one number or ``(left, right, top, bottom)``.

    Args:
        padding: Elements on every side, one int, or two for each dimension from the last one on.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 3)
        >>> nn.ZeroPad2d((2, 1, 0, 0))(x).flatten().tolist()
        [0.0, 0.0, 1.0, 2.0, 3.0, 0.0]
    """


class ZeroPad3d(_ZeroPad, dims=3):
    """`ZeroPad1d` for the last three dimensions.

    ``padding`` is one number or ``(left, right, top, bottom, front, back)``.

    Args:
        padding: Elements on every side, one int, or two for each dimension from the last one on.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 1, 3)
        >>> nn.ZeroPad3d((2, 1, 0, 0, 0, 0))(x).flatten().tolist()
        [0.0, 0.0, 1.0, 2.0, 3.0, 0.0]
    """


class ReflectionPad1d(_ReflectionPad, dims=1):
    """Put the elements mirrored at the border on both sides of the last dimension.

    Args:
        padding: How many, or ``(left, right)``; below 0 it cuts.

    Raises:
        ValueError: There are more or fewer numbers, or the input has no place for them.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 3)
        >>> nn.ReflectionPad1d((2, 1))(x).flatten().tolist()
        [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]
    """


class ReflectionPad2d(_ReflectionPad, dims=2):
    """`ReflectionPad1d` for the last two dimensions.

    ``padding`` is one number or ``(left, right, top, bottom)``.

    Args:
        padding: Elements on every side, one int, or two for each dimension from the last one on.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 3)
        >>> nn.ReflectionPad2d((2, 1, 0, 0))(x).flatten().tolist()
        [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]
    """


class ReflectionPad3d(_ReflectionPad, dims=3):
    """`ReflectionPad1d` for the last three dimensions.

    ``padding`` is one number or ``(left, right, top, bottom, front, back)``.

    Args:
        padding: Elements on every side, one int, or two for each dimension from the last one on.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 1, 3)
        >>> nn.ReflectionPad3d((2, 1, 0, 0, 0, 0))(x).flatten().tolist()
        [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]
    """


class ReplicationPad1d(_ReplicationPad, dims=1):
    """Put the elements at the border on both sides of the last dimension.

    Args:
        padding: How many, or ``(left, right)``; below 0 it cuts.

    Raises:
        ValueError: There are more or fewer numbers.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 3)
        >>> nn.ReplicationPad1d((2, 1))(x).flatten().tolist()
        [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]
    """


class ReplicationPad2d(_ReplicationPad, dims=2):
    """`ReplicationPad1d` for the last two dimensions.

    ``padding`` is one number or ``(left, right, top, bottom)``.

    Args:
        padding: Elements on every side, one int, or two for each dimension from the last one on.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 3)
        >>> nn.ReplicationPad2d((2, 1, 0, 0))(x).flatten().tolist()
        [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]
    """


class ReplicationPad3d(_ReplicationPad, dims=3):
    """`ReplicationPad1d` for the last three dimensions.

    ``padding`` is one number or ``(left, right, top, bottom, front, back)``.

    Args:
        padding: Elements on every side, one int, or two for each dimension from the last one on.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 1, 3)
        >>> nn.ReplicationPad3d((2, 1, 0, 0, 0, 0))(x).flatten().tolist()
        [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]
    """


class CircularPad1d(_CircularPad, dims=1):
    """Put the elements of the other end on both sides of the last dimension.

    Args:
        padding: How many, or ``(left, right)``; below 0 it cuts.

    Raises:
        ValueError: There are more or fewer numbers, or the input has no place for them.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 3)
        >>> nn.CircularPad1d((2, 1))(x).flatten().tolist()
        [2.0, 3.0, 1.0, 2.0, 3.0, 1.0]
    """


class CircularPad2d(_CircularPad, dims=2):
    """`CircularPad1d` for the last two dimensions.

    ``padding`` is one number or ``(left, right, top, bottom)``.

    Args:
        padding: Elements on every side, one int, or two for each dimension from the last one on.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 3)
        >>> nn.CircularPad2d((2, 1, 0, 0))(x).flatten().tolist()
        [2.0, 3.0, 1.0, 2.0, 3.0, 1.0]
    """


class CircularPad3d(_CircularPad, dims=3):
    """`CircularPad1d` for the last three dimensions.

    ``padding`` is one number or ``(left, right, top, bottom, front, back)``.

    Args:
        padding: Elements on every side, one int, or two for each dimension from the last one on.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 1, 3)
        >>> nn.CircularPad3d((2, 1, 0, 0, 0, 0))(x).flatten().tolist()
        [2.0, 3.0, 1.0, 2.0, 3.0, 1.0]
    """
