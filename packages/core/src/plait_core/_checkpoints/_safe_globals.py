"""The classes and functions that a file may refer to: `safe_globals` of `load`."""

from __future__ import annotations

import sys
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable, Iterable
from typing import Any

# modules whose names are refused although they are listed
BLOCKED = frozenset({"sys", "os", "posix", "nt"})


def full_name(module: str, name: str) -> tuple[str, str]:
    """Return a module and a name of it as Python 3 calls them: files may use Python 2's names."""
    if (module, name) in NAME_MAPPING:
        return NAME_MAPPING[(module, name)]
    return IMPORT_MAPPING.get(module, module), name


class SafeGlobals:
    """Listed classes and functions, which a file may refer to, call and fill with state.

    Args:
        objects: classes, functions, or pairs of an object and the name that files give it.
        elsewhere: a function of module and name that returns a candidate, which counts only if it
            is one of the listed objects; None: there is none.
    """

    def __init__(
        self, objects: Iterable[Any] = (), elsewhere: Callable[[str, str], Any] | None = None
    ) -> None:
        self._names: dict[str, Any] = {}
        for value in objects:
            name, result = _named(value)
            self._names[name] = result
        # `_names` refers to the objects, so that no other object gets the same id
        self._listed = {id(value) for value in self._names.values()}
        self._elsewhere = elsewhere

    def __bool__(self) -> bool:
        return bool(self._names)

    def lists(self, value: Any) -> bool:
        """Return whether an object is listed."""
        return id(value) in self._listed

    def find(self, module: str, name: str) -> Any:
        """Return the listed object that a file means, or None. Nothing is imported.

        A name is a listed one, or one under which a module that is imported already holds a
        listed object.
        """
        module, name = full_name(module, name)
        if not self._names or module in BLOCKED:
            return None
        result = self._names.get(f"{module}.{name}")
        if result is not None:
            return result
        candidates = [_lookup(module, name)]
        if self._elsewhere is not None:
            candidates.append(self._elsewhere(module, name))
        return next((each for each in candidates if self.lists(each)), None)


def _named(value: Any) -> tuple[str, Any]:
    if isinstance(value, tuple):
        if len(value) != 2:
            raise ValueError(
                f"load: `safe_globals` takes pairs (object, name), got a tuple of {len(value)}"
            )
        if type(value[1]) is not str:
            raise TypeError(
                "load: the name in a pair of `safe_globals` must be a str, got "
                f"{type(value[1]).__name__}"
            )
        return value[1], value[0]
    try:
        return f"{value.__module__}.{value.__qualname__}", value
    except AttributeError:
        raise TypeError(
            "load: `safe_globals` takes classes, functions and pairs (object, name), got a "
            f"{type(value).__name__}"
        ) from None


def _lookup(module: str, name: str) -> Any:
    """Return the object of an imported module with a dotted name, without running code."""
    result: Any = sys.modules.get(module)
    for part in name.split("."):
        result = getattr(result, "__dict__", {}).get(part)
    return result
