"""Where a module keeps its members of one kind: a dict that the module's attributes follow.

Members are also ordinary instance attributes, so that reading ``self.weight`` or ``self.conv1``
costs a plain attribute lookup instead of a call of ``__getattr__`` (400 ns each on CPython 3.11).
A write to the dict itself, as in ``module._parameters["weight"] = p``, must then reach the
attribute too: that is what this class is for.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

__all__ = ["Registry"]

V = TypeVar("V")
_MISSING = object()


class Registry(dict[str, V]):
    """Members by name; every change is repeated on the owner's ``__dict__``.

    The owner is known weakly, so that a module is freed the moment its last reference goes. A copy
    or a pickle of a registry is a plain dict: `Module.__setstate__` makes registries of it again.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: object, members: Mapping[str, V] | None = None) -> None:
        super().__init__()
        self._owner = weakref.ref(owner)
        if members:
            self.update(members)

    def _attributes(self) -> dict[str, Any]:
        owner = self._owner()
        return {} if owner is None else owner.__dict__

    def __setitem__(self, name: str, value: V) -> None:
        super().__setitem__(name, value)
        self._attributes()[name] = value

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._attributes().pop(name, None)

    def pop(self, name: str, default: Any = _MISSING) -> Any:
        if name not in self:
            if default is _MISSING:
                raise KeyError(name)
            return default
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, V]:
        name, value = super().popitem()
        self._attributes().pop(name, None)
        return name, value

    def clear(self) -> None:
        for name in list(self):
            del self[name]

    def update(  # type: ignore[override]
        self, members: Mapping[str, V] | Iterable[tuple[str, V]] = (), /, **more: V
    ) -> None:
        for name, value in dict(members, **more).items():
            self[name] = value

    def setdefault(self, name: str, default: V) -> V:
        if name not in self:
            self[name] = default
        return self[name]

    def __ior__(self, members: Any) -> Registry[V]:  # type: ignore[override,misc]
        self.update(members)
        return self

    def copy(self) -> dict[str, V]:
        return dict(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return dict, (dict(self),)
