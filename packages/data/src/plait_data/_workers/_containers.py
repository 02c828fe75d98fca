"""Lists, tuples and dicts of plain data in memory that all workers share."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plait_data._workers._columns import Blobs, Numbers, Texts, column_of

LEAST = 10_000  # items; a copy of fewer is small


class SharedTuple(Sequence[Any]):
    """A large tuple of a dataset, in a worker: reads from memory that all workers share.

    Every access makes a new item object. Slices are plain tuples. Equal to a tuple with its items.
    """

    _plain: type = tuple

    def __init__(self, column: Any, size: int) -> None:
        self._column = column
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._plain(map(self._column.get, range(*index.indices(self._size))))
        position = index.__index__()
        if position < 0:
            position += self._size
        if not 0 <= position < self._size:
            raise IndexError(f"index must be in [{-self._size}, {self._size}); got {index}")
        return self._column.get(position)

    def __iter__(self) -> Iterator[Any]:
        return map(self._column.get, range(self._size))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, tuple, SharedTuple)) or not self._compares_with(other):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def _compares_with(self, other: object) -> bool:
        return isinstance(other, (self._plain, type(self)))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __add__(self, other: Any) -> Any:
        return self._plain(self) + self._plain(other)

    def __radd__(self, other: Any) -> Any:
        return self._plain(other) + self._plain(self)

    def __mul__(self, count: int) -> Any:
        return self._plain(self) * count

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if isinstance(self._column, Numbers):
            return np.array(self._column.values, dtype=dtype)
        return np.array(self._plain(self), dtype=dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._plain(self[:3])!r}..., {len(self)} items)"


class SharedList(SharedTuple, MutableSequence[Any]):
    """A large list of a dataset, in a worker. A write makes it a list of this worker's own."""

    _plain = list
    __hash__ = None  # type: ignore[assignment]

    def _own(self) -> list[Any]:
        if not isinstance(self._column, _Own):
            self._column = _Own(list(self))
        return self._column.items

    def _resized(self) -> None:
        self._size = len(self._own())

    def __setitem__(self, index: Any, value: Any) -> None:
        self._own()[index] = value
        self._resized()

    def __delitem__(self, index: Any) -> None:
        del self._own()[index]
        self._resized()

    def __iadd__(self, other: Iterable[Any]) -> SharedList:  # type: ignore[misc]
        self.extend(other)
        return self

    def insert(self, index: int, value: Any) -> None:
        self._own().insert(index, value)
        self._resized()

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        self._own().sort(key=key, reverse=reverse)

    def copy(self) -> list[Any]:
        return list(self)


class _Own:
    """The items of a list that was written to."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def get(self, position: int) -> Any:
        return self.items[position]


class SharedDict(MutableMapping[Any, Any]):
    """A large dict of a dataset, in a worker. A write makes it a dict of this worker's own."""

    def __init__(self, keys: Any, values: Any, hashes: Any, order: Any) -> None:
        self._keys, self._values = keys, values
        self._hashes, self._order = hashes, order
        self._own: dict[Any, Any] | None = None

    def _position(self, key: Any) -> int:
        sought = _hash_like(self._keys, key)
        if sought is None:
            raise KeyError(key)
        at = int(np.searchsorted(self._hashes, sought))
        while at < len(self._hashes) and self._hashes.item(at) == sought:
            position: int = self._order.item(at)
            if self._keys.get(position) == key:
                return position
            at += 1
        raise KeyError(key)

    def __getitem__(self, key: Any) -> Any:
        if self._own is not None:
            return self._own[key]
        return self._values.get(self._position(key))

    def __len__(self) -> int:
        return len(self._hashes) if self._own is None else len(self._own)

    def __iter__(self) -> Iterator[Any]:
        if self._own is not None:
            return iter(self._own)
        return map(self._keys.get, range(len(self._hashes)))

    def _written(self) -> dict[Any, Any]:
        if self._own is None:
            self._own = dict(zip(self, map(self._values.get, range(len(self))), strict=True))
        return self._own

    def __setitem__(self, key: Any, value: Any) -> None:
        self._written()[key] = value

    def __delitem__(self, key: Any) -> None:
        del self._written()[key]

    def copy(self) -> dict[Any, Any]:
        return dict(self)

    def __or__(self, other: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**self, **other}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} items)"


def _hash_like(keys: Any, key: Any) -> int | None:
    """The hash of ``key`` in a column of keys; None if the key cannot be in it."""
    if isinstance(keys, Numbers):
        if isinstance(key, (float, np.floating)) and float(key).is_integer():
            key = int(key)
        fits = isinstance(key, (int, np.integer)) and -(2**63) <= key < 2**63
        return int(key) if fits else None
    if isinstance(keys, Blobs):
        return zlib.crc32(key) if isinstance(key, bytes) else None
    if not isinstance(key, str):
        return None
    return zlib.crc32(key.encode("utf-8", "surrogatepass"))


def shared(value: Any) -> Any:
    """The shared form of a large list, tuple or dict; None to pickle it as it is."""
    kind = type(value)
    if kind not in (list, tuple, dict) or len(value) < LEAST:
        return None
    if kind is dict:
        return _shared_dict(value)
    column = column_of(value)
    if column is None:
        return None
    return (SharedList if kind is list else SharedTuple)(column, len(value))


def _shared_dict(value: dict[Any, Any]) -> SharedDict | None:
    # keys must have one type, as 1, 1.0 and True are equal keys of a dict
    if {*map(type, value)} not in ({int}, {str}, {bytes}):
        return None
    keys = column_of(list(value))
    values = column_of(list(value.values()))
    if values is None or not isinstance(keys, (Numbers, Texts)):
        return None
    hashes = np.array([_hash_like(keys, key) for key in value], np.int64)
    order = np.argsort(hashes, kind="stable")
    return SharedDict(keys, values, hashes[order], order)
