"""The test cases: the samples of every operator with a kernel of its own."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample
from plait_ops.spec import Operator


@dataclasses.dataclass(frozen=True)
class Case:
    """One sample call of one operator."""

    operator: Operator
    number: int
    sample: Sample

    def __str__(self) -> str:
        return f"{self.operator.name}-{self.number}"

    def fresh(self) -> Sample:
        """Return the sample with copies of its arrays, in their layouts."""
        return dataclasses.replace(
            self.sample,
            args=map_arrays(copy_layout, self.sample.args),
            kwargs=map_arrays(copy_layout, self.sample.kwargs),
        )


def map_arrays(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply `function` to every NumPy array within tuples, lists and dicts."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return function(value)
    if isinstance(value, (tuple, list)):
        return type(value)(map_arrays(function, item) for item in value)
    if isinstance(value, dict):
        return {key: map_arrays(function, item) for key, item in value.items()}
    return copy.copy(value)


def copy_layout(array: Any) -> Any:
    """Copy an array so that its strides keep their signs and zeros."""
    import numpy as np

    if 0 in array.strides and array.size:  # expanded dimensions are kept
        first = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)
        return np.broadcast_to(array[first].copy(order="K"), array.shape)
    if array.ndim == 0:
        return array.copy()
    flipped = tuple(
        slice(None, None, -1) if stride < 0 else slice(None) for stride in array.strides
    )
    return array[flipped].copy(order="K")[flipped]


def cases(names: set[str] | None = None, *, unpredictable: bool = False) -> Iterator[Case]:
    """Yield the cases of the operators called `names`, or of all that have kernels of their own.

    Args:
        names: operators; composites, and views, only where they are named.
        unpredictable: those of which only shapes and dtypes are known, in place of all others.
    """
    for operator in specs.all():
        if operator.unpredictable != unpredictable:
            continue
        if operator.kind in ("view", "composite") if names is None else operator.name not in names:
            continue
        for number, sample in enumerate(draw(operator)):
            yield Case(operator, number, sample)
