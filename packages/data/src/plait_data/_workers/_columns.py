"""Columns: many plain values stored in a few arrays."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

_DEEPEST = 8
_ATOMS = (str, bytes, int, float, complex, bool, type(None))


class Column(Protocol):
    """Values by position."""

    def get(self, position: int) -> Any: ...


class Numbers:
    """Ints of 64 bits, floats or bools."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values = values

    def get(self, position: int) -> Any:
        return self.values.item(position)


class Texts:
    """Strings or bytes, concatenated, with their offsets."""

    def __init__(self, content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> None:
        self.content = content
        self.starts = starts

    def get(self, position: int) -> Any:
        return str(self.part(position), "utf-8", "surrogatepass")

    def part(self, position: int) -> memoryview:
        starts = self.starts
        return self.content.data[starts.item(position) : starts.item(position + 1)]


class Blobs(Texts):
    """Bytes objects."""

    def get(self, position: int) -> Any:
        return bytes(self.part(position))


class Pickles(Texts):
    """Plain values of any shape: mappings, lists, None among numbers."""

    def get(self, position: int) -> Any:
        return pickle.loads(self.part(position))


class Arrays(Texts):
    """NumPy arrays of one dtype and number of dimensions; items are views."""

    def __init__(
        self, content: Any, starts: Any, shapes: npt.NDArray[np.int64], dtype: np.dtype[Any]
    ) -> None:
        super().__init__(content, starts)
        self.shapes = shapes
        self.dtype = dtype

    def get(self, position: int) -> Any:
        shape = self.shapes[position].tolist()
        start, end = self.starts.item(position), self.starts.item(position + 1)
        return self.content[start:end].view(self.dtype).reshape(shape)


class Rows:
    """Tuples of one length, a column each position."""

    def __init__(self, columns: list[Any]) -> None:
        self.columns = columns

    def get(self, position: int) -> Any:
        return tuple(column.get(position) for column in self.columns)


def column_of(values: Sequence[Any]) -> Any:
    """The values as a column, or None if one is not plain data (or all are None)."""
    kinds = set(map(type, values))
    if len(kinds) == 1:
        kind = kinds.pop()
        if kind in (int, float, bool):
            column = _numbers(values, kind)
            if column is not None:
                return column
        elif kind is str:
            return _texts(values)
        elif kind is bytes:
            return Blobs(*_joined(values))
        elif kind is np.ndarray:
            return _arrays(values)
        elif kind is tuple and (rows := _rows(values)) is not None:
            return rows
        elif kind is type(None):
            return None  # a list to be filled
    if all(_is_plain(value, _DEEPEST) for value in values):
        return Pickles(*_joined([pickle.dumps(value, 5) for value in values]))
    return None


def _numbers(values: Sequence[Any], kind: type) -> Numbers | None:
    dtype = {int: np.int64, float: np.float64, bool: np.bool_}[kind]
    try:
        return Numbers(np.fromiter(values, dtype, len(values)))
    except OverflowError:
        return None


def _texts(values: Sequence[str]) -> Texts:
    whole = "".join(values)
    if whole.isascii():
        return Texts(np.frombuffer(whole.encode(), np.uint8), _starts(map(len, values)))
    return Texts(*_joined([value.encode("utf-8", "surrogatepass") for value in values]))


def _joined(values: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    return np.frombuffer(b"".join(values), np.uint8), _starts(map(len, values))


def _starts(lengths: Any) -> npt.NDArray[np.int64]:
    return np.fromiter(accumulate(chain((0,), lengths)), np.int64)


def _arrays(values: Sequence[Any]) -> Arrays | None:
    first = values[0]
    if first.dtype.hasobject or any(
        value.dtype != first.dtype or value.ndim != first.ndim for value in values
    ):
        return None
    flat = [np.ascontiguousarray(value).reshape(-1).view(np.uint8) for value in values]
    shapes = np.array([value.shape for value in values], np.int64)
    starts = _starts(value.nbytes for value in values)
    return Arrays(np.concatenate(flat), starts, shapes, first.dtype)


def _rows(values: Sequence[Any]) -> Rows | None:
    if len(set(map(len, values))) != 1 or not values[0]:
        return None
    columns = []
    for position in range(len(values[0])):
        # Not zip(*values): a call with a million arguments takes ten times as long.
        column = column_of([value[position] for value in values])
        if column is None or isinstance(column, (Pickles, Arrays)):
            return None
        columns.append(column)
    return Rows(columns)


def _is_plain(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind in _ATOMS:
        return True
    if depth == 0:
        return False
    if kind in (list, tuple):
        return all(_is_plain(item, depth - 1) for item in value)
    if kind is dict:
        return all(
            _is_plain(key, depth - 1) and _is_plain(item, depth - 1) for key, item in value.items()
        )
    return False
