"""`torch.nn.modules.utils`: numbers as tuples, one for each dimension; names without a prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

__all__ = [
    "_ntuple",
    "_pair",
    "_quadruple",
    "_reverse_repeat_tuple",
    "_size_2_t",
    "_size_3_t",
    "_single",
    "_triple",
    "consume_prefix_in_state_dict_if_present",
]


# one size for each dimension, or one for all
_size_2_t = int | tuple[int, int]
_size_3_t = int | tuple[int, int, int]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns a sequence as a tuple, and one value n times.

    Example:
        >>> from plait_torch._tuples import _ntuple
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


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """Return the elements from the last to the first, each n times.

    Example:
        >>> from plait_torch._tuples import _reverse_repeat_tuple
        >>> _reverse_repeat_tuple((1, 2), 2)
        (2, 2, 1, 1)
    """
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove a prefix of the names of a state, in place, such as that of `DataParallel`.

    Example:
        >>> from plait_torch._tuples import consume_prefix_in_state_dict_if_present
        >>> state = {"module.weight": 1, "bias": 2}
        >>> consume_prefix_in_state_dict_if_present(state, "module.")
        >>> state
        {'weight': 1, 'bias': 2}
    """
    for names in (state_dict, getattr(state_dict, "_metadata", None)):
        if names is None:
            continue
        items = [(_without(name, prefix), value) for name, value in names.items()]
        names.clear()
        names.update(items)


def _without(name: str, prefix: str) -> str:
    # the metadata also has the names of modules: "module" becomes ""
    return "" if name == prefix.rstrip(".") else name.removeprefix(prefix)
