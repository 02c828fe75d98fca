"""Large calls: the arrays of a sample are repeated along some of their dimensions.

Whether a large call is valid is known only after it ran. So `enlargements` yields several ways to
enlarge a call, in the order in which to try them, and `repeat` applies one of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from plait_ops.samples.drawing import draw
from plait_ops.sampling import Sample
from plait_ops.spec import Operator

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Enlargement", "as_dtype", "distinct_samples", "enlargements", "repeat"]

COLUMNS = 1024


@dataclasses.dataclass(frozen=True)
class Enlargement:
    """Which arrays of a call grow (True for each), and along which dimensions: "last", "first",
    "both" (to rows of some 1024), "square" (by the same factor) or "batch" (a new first one); or,
    in a call without arrays, the position of the argument that is multiplied.
    """

    arrays: tuple[bool, ...]
    dims: str


def distinct_samples(operator: Operator, count: int) -> list[Sample]:
    """Return samples of `operator` that differ in more than numbers, at most `count`."""
    results: dict[Any, Sample] = {}
    for sample in draw(operator):
        arrays = _arrays(sample)
        if any(x.size == 0 or x.dtype.kind == "c" or x.dtype.itemsize == 2 for x in arrays):
            continue
        if arrays and not any(x.ndim for x in arrays):
            continue
        names = operator.schema.bind(sample.args, sample.kwargs)
        kinds = {name: _kind(value) for name, value in names.items()}
        results.setdefault(repr(kinds), sample)
    return list(results.values())[:count]


def _arrays(sample: Sample) -> list[npt.NDArray[Any]]:
    arrays: list[npt.NDArray[Any]] = []

    def keep(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        arrays.append(x)
        return x

    sample.mapped(keep)
    return arrays


def _kind(value: Any) -> Any:
    """Return the kind of an argument: for a tensor or a float a word, else the value itself."""
    if hasattr(value, "ndim"):
        return "array" if value.ndim else "0-d"
    if isinstance(value, (list, tuple)):
        return [_kind(each) for each in value]
    return "number" if isinstance(value, (float, complex)) else value


def enlargements(sample: Sample) -> Iterator[Enlargement]:
    """Yield ways in which the call may grow, the most useful ones first."""
    arrays = _arrays(sample)
    every = (True,) * len(arrays)
    first = (True,) + (False,) * (len(arrays) - 1)
    if not arrays:
        for at, value in enumerate((*sample.args, *sample.kwargs.values())):
            numbers = value if isinstance(value, (list, tuple)) else [value]
            if numbers and all(type(each) is int and each > 0 for each in numbers):
                yield Enlargement((), str(at))
        return
    alike = tuple(x.shape == arrays[0].shape for x in arrays)
    if all(alike):
        yield from (Enlargement(every, dims) for dims in ("both", "last", "first"))
    yield Enlargement(first, "first")
    yield Enlargement(every, "square")
    yield from (
        Enlargement(choice, dims) for choice in (first, alike) for dims in ("last", "first")
    )
    yield from (Enlargement(every, dims) for dims in ("last", "first"))
    if all(x.ndim > 1 for x in arrays):
        yield Enlargement(every, "batch")


def repeat(sample: Sample, how: Enlargement, elements: int) -> Sample:
    """Return the call with about `elements` elements in its largest enlarged array.

    In a call without arrays the argument that says the size is enlarged.
    """
    import numpy as np

    arrays = _arrays(sample)
    if not arrays:
        return _multiplied(sample, int(how.dims), elements)
    most = max(x.size for x, grows in zip(arrays, how.arrays, strict=True) if grows)
    factor = max(1, elements // most)
    grow = iter(how.arrays)
    return sample.mapped(lambda x: _tiled(x, how.dims, factor) if next(grow) else np.array(x))


def _tiled(x: npt.NDArray[Any], dims: str, factor: int) -> npt.NDArray[Any]:
    import numpy as np

    if x.ndim == 0:
        return x.copy()
    if dims == "batch":
        return np.tile(x, (factor, *(1,) * x.ndim))
    if dims == "both" and x.ndim > 1:
        columns = min(factor, max(1, COLUMNS // x.shape[-1]))
        return np.tile(x, (factor // columns, *(1,) * (x.ndim - 2), columns))
    if dims == "square" and x.ndim > 1:
        side = max(1, round(factor**0.5))
        return np.tile(x, (*(1,) * (x.ndim - 2), side, side))
    last = dims != "first"
    return np.tile(x, factor) if last else np.tile(x, (factor, *(1,) * (x.ndim - 1)))


def _multiplied(sample: Sample, at: int, elements: int) -> Sample:
    """Return a call without arrays with its integer or its list of sizes at `at` enlarged."""
    import math

    values = [*sample.args, *sample.kwargs.values()]
    value = values[at]
    if isinstance(value, (list, tuple)):
        values[at] = [*value[:-1], max(1, elements * value[-1] // math.prod(value))]
    else:
        values[at] = max(value, elements)
    names = list(sample.kwargs)
    count = len(sample.args)
    return dataclasses.replace(
        sample, args=tuple(values[:count]), kwargs=dict(zip(names, values[count:], strict=True))
    )


def as_dtype(sample: Sample, convert: Callable[[Any, bool], Any]) -> Sample:
    """Return the call with `convert(array, chosen)` for each array; an array is chosen if it has
    the dtype of the first one.
    """
    arrays = _arrays(sample)
    first = arrays[0].dtype if arrays else None
    return sample.mapped(lambda x: convert(x, x.dtype == first))
