"""Sample calls: arrays drawn with a fixed seed, in shapes and layouts that are error-prone for
kernels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Sample", "Sampler", "copy_layout"]


@dataclasses.dataclass
class Sample:
    """One call. NumPy arrays stand for tensors, wherever they are in `args` and `kwargs`.

    `tolerance` scales the tolerance of comparisons; `gradient` says whether derivatives are checked
    at this point (not at kinks and ties).
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tolerance: float = 1.0
    gradient: bool = True

    def mapped(self, function: Callable[[Any], Any]) -> Sample:
        """Return the call with `function` applied to every array in it."""
        return dataclasses.replace(
            self, args=_map(function, self.args), kwargs=_map(function, self.kwargs)
        )

    def copied(self) -> Sample:
        """Return the call with copies of its arrays, in the same layouts."""
        return self.mapped(copy_layout)

    def without_gradient(self) -> Sample:
        """Return the same call, excluded from gradient checks."""
        return dataclasses.replace(self, gradient=False)

    def numbers(self) -> list[float]:
        """Return the floats among the arguments, and small integers, without those in lists."""
        return [
            float(value)
            for value in (*self.args, *self.kwargs.values())
            if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 100
        ]

    def ordinary(self) -> Sample | None:
        """Return the call of a pointwise operator for those of its numbers that are neither huge
        nor tiny, with its derivative checked; None if there are none.
        """
        import numpy as np

        arrays: list[npt.NDArray[Any]] = []

        def keep(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
            arrays.append(x)
            return x

        self.mapped(keep)
        if len({x.shape for x in arrays}) != 1:
            return None
        sizes = [np.abs(x) for x in arrays]
        usable = np.logical_and.reduce([(x == 0) | ((x > 1e-3) & (x < 1e3)) for x in sizes])
        if not usable.any():
            return None
        return dataclasses.replace(self.mapped(lambda x: x[usable]), gradient=True)

    def loosely(self, factor: float) -> Sample:
        """Return the same call with a tolerance that is `factor` times wider."""
        return dataclasses.replace(self, tolerance=factor)


def _map(function: Callable[[Any], Any], value: Any) -> Any:
    import numpy as np

    if isinstance(value, np.ndarray):
        return function(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_map(function, item) for item in value)
    if isinstance(value, dict):
        return {key: _map(function, item) for key, item in value.items()}
    return value


def copy_layout(array: npt.NDArray[Any], dtype: str | None = None) -> npt.NDArray[Any]:
    """Copy an array, as another `dtype` if one is given, with its strides: order, gaps, signs and
    zeros.
    """
    import numpy as np

    if array.size == 0:
        return np.array(array, dtype)
    steps = [step // array.itemsize for step in array.strides]
    low = sum((n - 1) * step for n, step in zip(array.shape, steps, strict=True) if step < 0)
    high = sum((n - 1) * step for n, step in zip(array.shape, steps, strict=True) if step > 0)
    room = np.zeros(high - low + 1, dtype or array.dtype)
    copy: npt.NDArray[Any] = np.lib.stride_tricks.as_strided(
        room[-low:], array.shape, [step * room.itemsize for step in steps]
    )
    copy[...] = array
    return copy


class Sampler:
    """Draws arrays; calling it makes a `Sample`."""

    def __init__(self, seed: int = 0) -> None:
        import numpy as np

        self.np = np
        self.rng = np.random.default_rng(seed)

    def __call__(self, *args: Any, **kwargs: Any) -> Sample:
        return Sample(args, kwargs)

    def array(
        self, *shape: int, dtype: str = "float32", low: float = -3.0, high: float = 3.0
    ) -> npt.NDArray[Any]:
        """Draw numbers of ``[low, high)``; integers within the range of the dtype, True or False
        for bool.
        """
        kind = self.np.dtype(dtype)
        if kind.kind == "b":
            return self.np.asarray(self.rng.integers(0, 2, shape) > 0)
        if kind.kind in "iu":
            first = max(int(low * 3), int(self.np.iinfo(kind).min))
            return self.np.asarray(
                self.rng.integers(first, max(int(high * 3), first + 2), shape)
            ).astype(kind)
        values = self.rng.random(shape) * (high - low) + low
        if kind.kind == "c":
            values = values + 1j * (self.rng.random(shape) * (high - low) + low)
        return self.np.asarray(values).astype(kind)

    def indices(
        self, size: int, *shape: int, dtype: str = "int64", negative: bool = False
    ) -> npt.NDArray[Any]:
        """Draw indices into a dimension of ``size`` elements."""
        return self.np.asarray(self.rng.integers(-size if negative else 0, size, shape)).astype(
            dtype
        )

    def distinct(self, *shape: int, dtype: str = "float32") -> npt.NDArray[Any]:
        """Draw a permutation of 0, 1, ... scaled around 0: no two elements are equal, none is 0."""
        n = int(self.np.prod(shape, dtype="int64"))
        return ((self.rng.permutation(n) - n / 2 + 0.25) / 2).reshape(shape).astype(dtype)

    def strided(
        self, *shape: int, dtype: str = "float32", low: float = -3.0, high: float = 3.0
    ) -> npt.NDArray[Any]:
        """Draw an array whose elements are not adjacent: every other one, dimensions reversed."""
        wide = self.array(*[2 * size for size in reversed(shape)], dtype=dtype, low=low, high=high)
        view: npt.NDArray[Any] = wide[tuple(slice(None, None, 2) for _ in shape)].T
        return view

    def backwards(self, *shape: int, dtype: str = "float32") -> npt.NDArray[Any]:
        """Draw an array with negative strides in every dimension."""
        return self.array(*shape, dtype=dtype)[tuple(slice(None, None, -1) for _ in shape)]

    def expanded(self, *shape: int, dtype: str = "float32") -> npt.NDArray[Any]:
        """Draw an array whose first dimension has stride 0."""
        return self.np.broadcast_to(self.array(*shape[1:], dtype=dtype), shape)
