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


def _as_parameter(value: Any, owner: str) -> Parameter:
    if isinstance(value, Parameter):
        return value
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{owner}: elements must be Parameters or Tensors; got {type(value).__name__}"
        )
    return Parameter(value)


def _line(name: str, parameter: Parameter) -> str:
    size = "x".join(map(str, parameter.shape))
    kind = str(parameter.dtype).rpartition(".")[2]
    return f"({name}): Parameter containing: [{kind} of size {size}]"


class ParameterList(Module):
    """A list of parameters that are registered. Plain tensors become parameters.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> weights = nn.ParameterList([pc.ones(2), pc.zeros(3)])
        >>> [name for name, _ in weights.named_parameters()]
        ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(list(self._parameters.values()))  # type: ignore[arg-type]

    @overload
    def __getitem__(self, index: int) -> Parameter: ...

    @overload
    def __getitem__(self: L, index: slice) -> L: ...

    def __getitem__(self: L, index: int | slice) -> Parameter | L:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return list(self)[position(index, len(self), type(self).__name__)]

    def __setitem__(self, index: int, value: Any) -> None:
        name = str(position(index, len(self), type(self).__name__))
        self._parameters[name] = _as_parameter(value, type(self).__name__)

    def __iadd__(self: L, values: Iterable[Any]) -> L:
        return self.extend(values)

    def append(self: L, value: Any) -> L:
        """Put a parameter at the end; return the list."""
        self.register_parameter(str(len(self)), _as_parameter(value, type(self).__name__))
        return self

    def extend(self: L, values: Iterable[Any]) -> L:
        """Put several parameters at the end; return the list."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise TypeError(
                f"ParameterList: parameters must come as an iterable; got {type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_line(str(number), value) for number, value in enumerate(self))


class ParameterDict(Module):
    """A dict of parameters that are registered. Plain tensors become parameters.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> scales = nn.ParameterDict({"in": pc.ones(2)})
        >>> scales["out"] = pc.ones(3)
        >>> list(scales)
        ['in', 'out']
    """

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Parameter:
        return self._parameters[key]  # type: ignore[return-value]

    def __setitem__(self, key: str, value: Any) -> None:
        self.register_parameter(key, _as_parameter(value, type(self).__name__))

    def __delitem__(self, key: str) -> None:
        del self._parameters[key]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, key: object) -> bool:
        return key in self._parameters

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._parameters.keys()

    def items(self) -> Iterable[tuple[str, Parameter]]:
        """Return ``(name, parameter)`` pairs."""
        return self._parameters.items()  # type: ignore[return-value]

    def values(self) -> Iterable[Parameter]:
        """Return the parameters."""
        return self._parameters.values()  # type: ignore[return-value]

    def pop(self, key: str) -> Parameter:
        """Remove a parameter and return it."""
        parameter = self[key]
        del self[key]
        return parameter

    def update(self, parameters: Mapping[str, Any]) -> None:
        """Add parameters from a mapping; equal names are replaced."""
        for key, value in parameters.items():
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_line(name, value) for name, value in self.items())
