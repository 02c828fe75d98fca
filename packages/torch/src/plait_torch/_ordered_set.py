"""`torch.utils._ordered_set`: a set that keeps the order in which its elements came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import Any, TypeVar

__all__ = ["OrderedSet"]

T = TypeVar("T")


class OrderedSet(MutableSet[T]):
    """A set whose iteration has the order of insertion.

    Example:
        >>> from plait_torch._ordered_set import OrderedSet
        >>> list(OrderedSet("cab") | OrderedSet("abd"))
        ['c', 'a', 'b', 'd']
    """

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._elements = dict.fromkeys(iterable or ())

    def __contains__(self, elem: object) -> bool:
        return elem in self._elements

    def __iter__(self) -> Iterator[T]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self)})"

    def add(self, elem: T) -> None:
        """Put an element at the end, if it is not there."""
        self._elements[elem] = None

    def discard(self, elem: T) -> None:
        """Remove an element, if it is there."""
        self._elements.pop(elem, None)

    def update(self, *others: Iterable[T]) -> None:
        """Add the elements of other collections."""
        for other in others:
            self._elements.update(dict.fromkeys(other))

    def copy(self) -> OrderedSet[T]:
        """Return another set with these elements."""
        return OrderedSet(self)

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """Return the elements of this set and of others."""
        result = self.copy()
        result.update(*others)
        return result

    def difference(self, *others: Iterable[Any]) -> OrderedSet[T]:
        """Return the elements that no other collection has."""
        away = {each for other in others for each in other}
        return OrderedSet(each for each in self if each not in away)

    def intersection(self, *others: Iterable[Any]) -> OrderedSet[T]:
        """Return the elements that all other collections have."""
        sets = [set(other) for other in others]
        return OrderedSet(each for each in self if all(each in other for other in sets))
