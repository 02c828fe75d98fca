"""The state of each parameter, by the parameter's identity."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

__all__ = ["State"]


class State(MutableMapping[Any, dict[str, Any]]):
    """A mapping from parameters to dictionaries that needs neither hashes nor equality of arrays.

    A new parameter gets an empty dictionary, as in PyTorch.
    """

    def __init__(self) -> None:
        self._items: dict[int, tuple[Any, dict[str, Any]]] = {}

    def __getitem__(self, param: Any) -> dict[str, Any]:
        item = self._items.get(id(param))
        if item is None:
            item = self._items[id(param)] = (param, {})
        return item[1]

    def __setitem__(self, param: Any, value: dict[str, Any]) -> None:
        self._items[id(param)] = (param, value)

    def __delitem__(self, param: Any) -> None:
        if id(param) not in self._items:
            raise KeyError(param)
        del self._items[id(param)]

    def __contains__(self, param: object) -> bool:
        return id(param) in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter([param for param, _ in self._items.values()])

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"State({list(self._items.values())!r})"

    def of(self, params: list[Any]) -> list[dict[str, Any]]:
        """Return the dictionaries of all ``params``."""
        items = self._items
        try:
            return [items[id(param)][1] for param in params]
        except KeyError:
            return [self[param] for param in params]

    # pickles and deep copies contain the pairs, as identities change
    def __getstate__(self) -> list[tuple[Any, dict[str, Any]]]:
        return list(self._items.values())

    def __setstate__(self, pairs: list[tuple[Any, dict[str, Any]]]) -> None:
        self._items = {id(param): (param, value) for param, value in pairs}
