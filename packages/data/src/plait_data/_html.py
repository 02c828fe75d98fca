"""Datasets and loaders as text, and as HTML for notebooks. No sample is read for it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any


class Shown:
    """The base class of objects whose text, and table in notebooks, tell their sizes; subclasses
    define ``_facts``.

    A notebook shows a subclass with a ``__repr__`` of its own by that.
    """

    def __repr__(self) -> str:
        try:
            facts = "; ".join(f"{name}: {text}" for name, text in self._facts())
        except Exception:  # half-constructed objects, of which debuggers show the text
            facts = "not initialized"
        return f"<{type(self).__name__} {facts}>"

    def _facts(self) -> Iterable[tuple[str, str]]:
        """Yield the rows of the table: a name and a text."""
        return [("samples", size_text(self))]

    def _repr_html_(self) -> str | None:
        if type(self).__repr__ is not Shown.__repr__:
            return None
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in self._facts()
        )
        return f"<div>{escape(type(self).__name__)}<table>{rows}</table></div>"


def size_text(of: Any) -> str:
    """Return the length of an object, or that it is not known."""
    try:
        return str(len(of))
    except Exception:  # streams often have no length, and a program's own __len__ may fail
        return "not known"


def name_and_size(dataset: Any) -> str:
    """Return the class of a dataset and the number of its samples, if that is known."""
    size = size_text(dataset)
    samples = f"{size} samples" if size.isdigit() else f"number of samples {size}"
    return f"{type(dataset).__name__}, {samples}"


def array_text(array: Any) -> str:
    """Return class, shape and dtype of an array, as far as it has them."""
    shape = getattr(array, "shape", None)
    size = f"{len(array)} elements" if shape is None else f"shape {tuple(shape)}"
    dtype = getattr(array, "dtype", None)
    return ", ".join([type(array).__name__, size, *([] if dtype is None else [str(dtype)])])
