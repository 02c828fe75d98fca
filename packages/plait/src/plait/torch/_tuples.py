"""`torch.nn.modules.utils`: a number as a tuple of as many as there are dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

__all__ = ["_ntuple", "_pair", "_quadruple", "_single", "_triple"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns a sequence as a tuple, and one value n times.

    Example:
        >>> from plait.torch._tuples import _ntuple
        >>> _ntuple(2)(3), _ntuple(2)([1, 2])
        ((3, 3), (1, 2))
    """

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")
