"""Datasets and loaders as HTML, which notebooks show. No sample is read for it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any


class Shown:
    """The base class of objects that notebooks show as a table; subclasses define ``_facts``.

    A subclass with a ``__repr__`` of its own is shown by that.
    """

    def _facts(self) -> Iterable[tuple[str, str]]:
        """Yield the rows of the table: a name and a text."""
        return [("samples", _size(self))]

    def _repr_html_(self) -> str | None:
        if type(self).__repr__ is not object.__repr__:
            return None
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in self._facts()
        )
        return f"<div>{escape(type(self).__name__)}<table>{rows}</table></div>"


def _size(of: Any) -> str:
    try:
        return str(len(of))
    except (TypeError, NotImplementedError):  # streams often have no length
        return "not known"


def name_and_size(dataset: Any) -> str:
    """Return the class of a dataset and the number of its samples, if that is known."""
    size = _size(dataset)
    samples = f"{size} samples" if size.isdigit() else f"number of samples {size}"
    return f"{type(dataset).__name__}, {samples}"


def array_text(array: Any) -> str:
    """Return class, shape and dtype of an array, as far as it has them."""
    shape = getattr(array, "shape", None)
    size = f"{len(array)} elements" if shape is None else f"shape {tuple(shape)}"
    dtype = getattr(array, "dtype", None)
    return ", ".join([type(array).__name__, size, *([] if dtype is None else [str(dtype)])])
