"""The standard's inspection functions."""

from __future__ import annotations

from typing import Any

from plait_abi import binding
from plait_core._core import get_default_dtype
from plait_core.array_api._data_types import kinds, promote

__all__ = ["__array_namespace_info__"]


class Info:
    """The devices, dtypes and capabilities of this library."""

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities: boolean indexing, shapes that depend on data, number of
        dimensions.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> binding.device:
        """Return the device of new arrays."""
        return binding.device("cpu")

    def default_dtypes(self, *, device: Any = None) -> dict[str, binding.dtype]:
        """Return the dtypes of new arrays for each kind of number."""
        real = get_default_dtype()
        return {
            "real floating": real,
            "complex floating": promote(real, binding.dtype("complex64")),
            "integral": binding.dtype("int64"),
            "indexing": binding.dtype("int64"),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, binding.dtype]:
        """Return the dtypes of a kind, or of several, by their names."""
        if kind is None:
            names: tuple[str, ...] = (*kinds["bool"], *kinds["numeric"])
        elif isinstance(kind, tuple):
            return {name: d for each in kind for name, d in self.dtypes(kind=each).items()}
        elif kind in kinds:
            names = kinds[kind]
        else:
            raise ValueError(f"dtypes: `kind` must be one of {sorted(kinds)}, got {kind!r}")
        return {name: binding.dtype(name) for name in names}

    def devices(self) -> list[binding.device]:
        """Return the devices that arrays with elements can be on."""
        return [binding.device("cpu")]


def __array_namespace_info__() -> Info:  # noqa: N807
    """Return the inspection object of this library."""
    return Info()
