"""Tensors as HTML, which notebooks show: a line of facts, and a small table of values."""

from __future__ import annotations

from html import escape
from typing import Any

from plait_core._core import Tensor
from plait_core._tensor import _repr

FULL = 10  # the longest dimension that is shown whole


def shows_own_text(cls: type[Any]) -> bool:
    """Return whether a class has a newer ``__repr__`` than ``_repr_html_``, as subclasses may."""
    for each in cls.__mro__:
        if "_repr_html_" in each.__dict__:
            return False
        if "__repr__" in each.__dict__:
            return True
    return False


def tensor_html(self: Tensor) -> str:
    """Return a line with shape, dtype, device, size and history, and a table of elements.

    Of a tensor with more than two dimensions the table has the first matrix. Dimensions of more
    than ten are cut as in the text of a tensor, so only the elements that are shown are read.
    """
    shape = tuple(self.shape)
    facts = [f"shape {shape}", self.dtype.name, str(self.device), _bytes_text(self)]
    node = self.grad_fn
    if node is not None:
        # a Function's context may have an attribute `name` of its own
        facts.append(f"grad_fn {type(node).name(node)}")
    elif self.requires_grad:
        facts.append("requires grad")
    line = escape(f"{type(self).__name__}: {', '.join(facts)}")
    if self.device.type == "meta" or self.numel() == 0:
        return f"<div>{line}</div>"
    data = self.data
    first = (0,) * max(len(shape) - 2, 0)
    if first:
        data = data[first]
        line += f"<br>the matrix at [{', '.join(map(str, first))}]:"
    return f"<div>{line}{_table(data)}</div>"


def _bytes_text(self: Tensor) -> str:
    size: float = self.numel() * self.element_size()
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


def _table(data: Tensor) -> str:
    shape = tuple(data.shape)
    items, write = _repr.shown_elements(data, [size > FULL for size in shape])
    rows = items if len(shape) == 2 else [items if len(shape) == 1 else [items]]
    lines = []
    if shape:
        names = _indices(shape[-1])
        corner = "<th></th>" if len(shape) == 2 else ""
        lines.append(corner + "".join(f"<th>{name}</th>" for name in names))
    for i, row in enumerate(rows):
        cells = ["&hellip;"] * len(_indices(shape[1])) if row is ... else map(_cell(write), row)
        head = f"<th>{_indices(shape[0])[i]}</th>" if len(shape) == 2 else ""
        lines.append(head + "".join(f"<td>{cell}</td>" for cell in cells))
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _cell(write: Any) -> Any:
    return lambda value: "&hellip;" if value is ... else escape(write(value).strip())


def _indices(size: int) -> list[str]:
    edge = _repr.edgeitems()
    if size <= max(FULL, 2 * edge):
        return [str(i) for i in range(size)]
    ends = [*range(edge), *range(size - edge, size)]
    return [*map(str, ends[:edge]), "&hellip;", *map(str, ends[edge:])]
