"""`ParameterList` and `ParameterDict`: modules that hold parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

from plait_core import Tensor
from plait_nn._containers import position
from plait_nn._module import Module
from plait_nn._parameter import Parameter

__all__ = ["ParameterDict", "ParameterList"]

L = TypeVar("L", bound="ParameterList")


def _wrapped(value: Any) -> Any:
    """Return a plain tensor as a parameter, and other values as they are."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _line(name: str, value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"({name}): Object of type: {type(value).__name__}"
    size = "x".join(map(str, value.shape))
    kind = str(value.dtype).rpartition(".")[2]
    what = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"({name}): {what} containing: [{kind} of size {size}]"


class ParameterList(Module):
    """A list whose parameters are registered. Plain tensors become parameters.

    Other values are elements too, as attributes of the module.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> weights = nn.ParameterList([pc.ones(2), pc.zeros(3)])
        >>> [name for name, _ in weights.named_parameters()]
        ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(n)) for n in range(len(self))])

    @overload
    def __getitem__(self, idx: int) -> Any: ...

    @overload
    def __getitem__(self: L, idx: slice) -> L: ...

    def __getitem__(self: L, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return getattr(self, str(position(idx, len(self), type(self).__name__)))

    def __setitem__(self, idx: int, param: Any) -> None:
        name = str(position(idx, len(self), type(self).__name__))
        setattr(self, name, _wrapped(param))

    def __iadd__(self: L, parameters: Iterable[Any]) -> L:
        return self.extend(parameters)

    def append(self: L, value: Any) -> L:
        """Put a value at the end; return the list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self: L, values: Iterable[Any]) -> L:
        """Put several values at the end; return the list."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise TypeError(
                f"ParameterList: parameters must come as an iterable; got {type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_line(str(number), value) for number, value in enumerate(self))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict whose parameters are registered. Plain tensors become parameters.

    Other values are elements too, as attributes of the module. Keys are strings.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> scales = nn.ParameterDict({"in": pc.ones(2)})
        >>> scales["out"] = pc.ones(3)
        >>> list(scales)
        ['in', 'out']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _name(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._name(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, self._name(key), _wrapped(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._name(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Iterable[str]:
        """Return the keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return ``(key, value)`` pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """Return the values."""
        return (self[key] for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or `default` if there is none."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return a value; if there is none, `default`, which becomes it."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove a value and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last value and return its key and itself."""
        key, _ = self._keys.popitem()
        value = self[key]
        delattr(self, key)
        return key, value

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Return a dict of the same values.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> scales = nn.ParameterDict({"in": pc.ones(2)})
            >>> scales.copy()["in"] is scales["in"]
            True
        """
        return ParameterDict(dict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return another dict that has `default` under each key."""
        return ParameterDict(dict.fromkeys(keys, default))

    def update(self, parameters: Any) -> None:
        """Add values from a mapping or from ``(key, value)`` pairs; equal keys are replaced."""
        if isinstance(parameters, (Mapping, ParameterDict)):
            parameters = parameters.items()
        elif not isinstance(parameters, Iterable):
            raise TypeError(
                "ParameterDict: parameters must come as a mapping or as pairs; got "
                f"{type(parameters).__name__}"
            )
        for number, item in enumerate(parameters):
            if isinstance(item, (str, bytes)) or len(item) != 2:
                raise ValueError(f"ParameterDict: element {number} must be a (key, value) pair")
            self[item[0]] = item[1]

    def __or__(self, other: ParameterDict) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_line(name, value) for name, value in self.items())
