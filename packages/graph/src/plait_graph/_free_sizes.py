"""Which sizes of the arguments are free: the argument `dynamic` of `compile` and `export`."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import plait_abi
import plait_core as pc
import plait_nn
from plait_graph._size_expressions import check_names

__all__ = ["Dim", "FreeSizes"]

_LARGEST = 2**31


@dataclasses.dataclass(frozen=True)
class Dim:
    """A size that stays free in a graph, with its range.

    Args:
        name: the size's name: letters, digits and underscores.
        min: the least value that a call may have; None: the least for which the recordings hold,
            1 or 2.
        max: the greatest one.

    Example:
        >>> from plait_graph import Dim
        >>> Dim("batch", min=1, max=64)
        Dim(name='batch', min=1, max=64)
    """

    name: str
    min: int | None = None
    max: int = _LARGEST

    def __post_init__(self) -> None:
        check_names({self.name: None})
        least = 0 if self.min is None else self.min
        if type(least) is not int or type(self.max) is not int or not 0 <= least <= self.max:
            raise plait_abi.ArgumentError(
                f"Dim: `min` and `max` must be ints with 0 <= min <= max, got {self.min} and "
                f"{self.max}"
            )
        if self.max >= 2**63:
            raise plait_abi.ArgumentError(f"Dim: `max` must be below 2**63, got {self.max}")


def _arguments_by_name(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments by the names of the function's parameters, as far as they have one."""
    target = function.forward if isinstance(function, plait_nn.Module) else function
    try:
        bound = inspect.signature(target).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {}
    return {**bound, **kwargs}


class FreeSizes:
    """The free dimensions of the tensors that a function gets.

    Args:
        dynamic: `True`, or what each argument has free, by its name or its position: a dict from
            dimensions to names or to `Dim`, a sequence with an entry for each dimension, or for
            containers a container of them.
        caller: the public function, for errors.
    """

    def __init__(self, dynamic: Any, caller: str) -> None:
        self._dynamic, self._caller = dynamic, caller
        self.dims: dict[str, Dim] = {}
        if dynamic is not True and not isinstance(dynamic, (Mapping, list, tuple)):
            raise self._error(f"must be True, a dict or a sequence, got {dynamic!r}")

    @property
    def is_found_by_calls(self) -> bool:
        """Whether those sizes are free that differ between calls."""
        return self._dynamic is True

    def _error(self, text: str) -> plait_abi.ArgumentError:
        return plait_abi.ArgumentError(f"{self._caller}: `dynamic` {text}")

    def of(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[int, dict[int, str]]:
        """Return the names of free dimensions of tensor arguments, by the tensors' id."""
        named = _arguments_by_name(function, args, kwargs)
        result: dict[int, dict[int, str]] = {}
        if isinstance(self._dynamic, Mapping):
            for key, spec in self._dynamic.items():
                is_position = type(key) is int and 0 <= key < len(args)
                if not is_position and key not in named:
                    raise self._error(
                        f"names {key!r}; there are {len(args)} positions and the arguments "
                        f"{', '.join(named)}"
                    )
                value = args[key] if is_position else named[key]
                self._add(value, spec, f"argument {key}", result)
            return result
        values = [*args, *kwargs.values()]
        if len(self._dynamic) != len(values):
            raise self._error(
                f"has {len(self._dynamic)} entries, the function got {len(values)} arguments"
            )
        for at, (value, spec) in enumerate(zip(values, self._dynamic, strict=True)):
            self._add(value, spec, f"argument {at}", result)
        return result

    def _add(self, value: Any, spec: Any, where: str, result: dict[int, dict[int, str]]) -> None:
        if spec is None:
            return
        if isinstance(value, pc.Tensor):
            result.setdefault(id(value), {}).update(self._of_tensor(value, spec, where))
            return
        if isinstance(value, Mapping) and isinstance(spec, Mapping):
            for key in value:
                self._add(value[key], spec.get(key), f"{where}[{key!r}]", result)
            return
        are_sequences = isinstance(value, (list, tuple)) and isinstance(spec, (list, tuple))
        if are_sequences and len(value) == len(spec):
            for i, (item, part) in enumerate(zip(value, spec, strict=True)):
                self._add(item, part, f"{where}[{i}]", result)
            return
        raise self._error(f"for {where} does not fit the argument, a {type(value).__name__}")

    def _of_tensor(self, tensor: Any, spec: Any, where: str) -> dict[int, str]:
        if not isinstance(spec, (Mapping, list, tuple)) or (
            not isinstance(spec, Mapping) and len(spec) != tensor.ndim
        ):
            raise self._error(
                f"for {where}, a tensor {list(tensor.shape)}, must be a dict or an entry for each "
                f"dimension, got {spec!r}"
            )
        pairs = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
        result: dict[int, str] = {}
        for at, entry in pairs:
            if entry is None:
                continue
            if type(at) is not int or not -tensor.ndim <= at < tensor.ndim:
                raise self._error(f"for {where}, a tensor {list(tensor.shape)}, has dimension {at}")
            dim = Dim(entry) if isinstance(entry, str) else entry
            if not isinstance(dim, Dim):
                raise self._error(f"for {where} must have names or Dim, got {entry!r}")
            known = self.dims.setdefault(dim.name, dim)
            if known != dim and isinstance(entry, Dim):
                if known != Dim(dim.name):
                    raise self._error(f"has two ranges for {dim.name}")
                self.dims[dim.name] = dim
            result[at % tensor.ndim] = dim.name
        return result
