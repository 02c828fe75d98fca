"""`torch._tensor_str`: the text of a tensor's elements, and how it is printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import plait
import plait_core._tensor._repr as _repr
from plait_core._tensor._repr import _options as PRINT_OPTS

__all__ = [
    "PRINT_OPTS",
    "_add_suffixes",
    "_str",
    "_str_intern",
    "_tensor_str",
    "get_printoptions",
    "printoptions",
    "set_printoptions",
]

set_printoptions = plait.set_printoptions
_OPTIONS = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")


def _tensor_str(self: Any, indent: int) -> str:
    """Return the elements as they are printed, without the name and the dtype around them.

    Example:
        >>> import plait
        >>> from plait_torch._tensor_str import _tensor_str
        >>> print(_tensor_str(plait.eye(2, dtype=plait.int64), 0))
        [[1, 0],
         [0, 1]]
    """
    elements = plait.as_tensor(self).detach()
    return str(_repr.text_of_elements(elements, indent))


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """Return the text with notes after it, and the bracket that ends it."""
    for suffix in suffixes:
        last = len(tensor_str) - tensor_str.rfind("\n") - 1
        own = force_newline or last + len(suffix) + 3 > PRINT_OPTS.linewidth
        tensor_str += (",\n" + " " * indent if own else ", ") + suffix
        force_newline = False
    return tensor_str + ")"


def _str_intern(inp: Any, *, tensor_contents: str | None = None) -> str:
    """Return the whole text, with another text in the place of the elements' if it is given.

    Example:
        >>> import plait
        >>> from plait_torch._tensor_str import _str_intern
        >>> _str_intern(plait.ones(2, dtype=plait.float64), tensor_contents="...")
        'tensor(..., dtype=float64)'
    """
    if tensor_contents is None:
        return repr(inp)
    plain = type(inp) in (plait.Tensor, plait.nn.Parameter)
    prefix = "tensor(" if plain else f"{type(inp).__name__}("
    suffixes = _repr.notes_of(inp)
    return _add_suffixes(prefix + tensor_contents, suffixes, len(prefix), False)


def _str(self: Any, *, tensor_contents: str | None = None) -> str:
    """Return the whole text, as `_str_intern` does."""
    return _str_intern(self, tensor_contents=tensor_contents)


def get_printoptions() -> dict[str, Any]:
    """Return the options of `set_printoptions`.

    Example:
        >>> from plait_torch._tensor_str import get_printoptions
        >>> get_printoptions()["precision"]
        4
    """
    return {name: getattr(PRINT_OPTS, name) for name in _OPTIONS}


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """A context manager that sets options of printing, as `set_printoptions` does.

    Example:
        >>> import plait
        >>> from plait_torch._tensor_str import printoptions
        >>> with printoptions(precision=2):
        ...     print(plait.tensor([0.125]))
        tensor([0.12])
    """
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)
