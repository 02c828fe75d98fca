"""The state of each parameter, by the parameter's identity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from plait_optim._arrays import sort_of

_MISSING: Any = object()


def whole_number(name: str, value: Any) -> int:
    """Return the whole number that the state ``name`` holds as a number or as a 0-d array."""
    number = int(value)
    if number != float(value):
        raise ValueError(f"the state {name!r} must be a whole number; got {value!r}")
    return number


def _key(param: Any) -> Any:
    """Return an array's identity. Other keys, such as texts, are equal by value."""
    return id(param) if sort_of(type(param)) is not None else (None, param)


class State(MutableMapping[Any, dict[str, Any]]):
    """A mapping from parameters to dictionaries that needs neither hashes nor equality of arrays.

    A new key gets an empty dictionary, as in PyTorch. Keys that are not arrays are for state that
    belongs to no parameter; they need a hash.
    """

    def __init__(self, items: Mapping[Any, dict[str, Any]] | None = None) -> None:
        pairs = () if items is None else items.items()
        self._items: dict[Any, tuple[Any, dict[str, Any]]] = {}
        self.__setstate__(list(pairs))

    def __getitem__(self, param: Any) -> dict[str, Any]:
        key = _key(param)
        item = self._items.get(key)
        if item is None:
            item = self._items[key] = (param, {})
        return item[1]

    def __setitem__(self, param: Any, value: dict[str, Any]) -> None:
        self._items[_key(param)] = (param, value)

    def __delitem__(self, param: Any) -> None:
        key = _key(param)
        if key not in self._items:
            raise KeyError(param)
        del self._items[key]

    # a mapping's own `get`, `setdefault` and `pop` would read a missing key, which makes one
    def get(self, param: Any, default: Any = None) -> Any:
        """Return the state of ``param``, or ``default`` without making any."""
        item = self._items.get(_key(param))
        return default if item is None else item[1]

    def setdefault(self, param: Any, default: Any = None) -> Any:
        """Return the state of ``param``, which becomes ``default`` if there is none."""
        return self._items.setdefault(_key(param), (param, default))[1]

    def pop(self, param: Any, default: Any = _MISSING) -> Any:
        """Remove the state of ``param`` and return it, or ``default`` if there is none.

        Raises:
            KeyError: There is no state and no default.
        """
        item = self._items.pop(_key(param), None)
        if item is None and default is _MISSING:
            raise KeyError(param)
        return default if item is None else item[1]

    def popitem(self) -> tuple[Any, Any]:
        """Remove the state that was made last, and return its key and it."""
        return self._items.popitem()[1]

    def __contains__(self, param: object) -> bool:
        return _key(param) in self._items

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
        self._items = {_key(param): (param, value) for param, value in pairs}
