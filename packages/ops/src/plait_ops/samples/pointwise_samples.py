"""Samples and errors of all pointwise operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from plait_ops import promotion
from plait_ops.sampling import Sample, Sampler

if TYPE_CHECKING:
    from plait_ops.spec import ErrorFact, Pointwise

__all__ = ["NONFINITE", "error_facts", "predicate", "samples"]

NONFINITE = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30]
"""Inputs for tests of single numbers, and of functions with limits at infinity."""


def predicate(operator: Pointwise, reference: Callable[[Any], Any]) -> None:
    """Give a test of each element its reference, and samples of numbers that are special."""
    import numpy as np

    operator.reference(reference)

    @operator.samples
    def _(s: Sampler) -> Iterator[Sample]:
        for dtype in ("float32", "float64"):
            yield s(np.array(NONFINITE, dtype))


def _dtypes(operator: Pointwise) -> list[str]:
    required = ["float32", "float64", "int64", "uint8", "int16", "bool"]
    required += ["float16", "complex64", "complex128"]
    return [dtype for dtype in required if dtype in promotion.group(operator.dtypes)]


def samples(operator: Pointwise, s: Sampler) -> Iterator[Sample]:
    """Yield calls for any number of operands: layouts, 0-d, empty, broadcasting, dtypes,
    numbers.
    """
    low, high = operator.domain
    names = [argument.name for argument in operator.operands]
    optional = [argument.name for argument in operator.operands if argument.optional]

    def draw(i: int, *shape: int, dtype: str) -> Any:
        if names[i] in operator.conditions:
            return s.array(*shape, dtype="bool")
        return s.array(*shape, dtype=dtype, low=low, high=high)

    dtypes = _dtypes(operator)
    for dtype in dtypes:
        sample = s(*[draw(i, 2, 3, dtype=dtype) for i in range(len(names))])
        yield sample.without_gradient() if dtype == "float16" else sample
    yield from _apart(operator, s, draw, len(names))
    yield from _special_values(operator, s)
    dtypes = [dtype for dtype in dtypes if dtype not in _APART]
    first = dtypes[0]
    n = range(len(names))
    yield s(*[draw(i, dtype=first) for i in n])
    yield s(*[draw(i, 0, 3, dtype=first) for i in n])
    yield s(*[draw(i, 6, 4, dtype=first)[::2, ::-1].T for i in n])
    if len(names) > 1:
        shapes = [(2, 1, 3), (4, 1), (3,)]
        yield s(*[draw(i, *shapes[i % 3], dtype=first) for i in n])
        yield s(*[draw(i, *(() if i else (2, 3)), dtype=first) for i in n])
    if len(dtypes) > 1 and len(names) - len(operator.conditions) > 1:
        yield s(*[draw(i, 2, 3, dtype=dtypes[min(i, 1)]) for i in n])
        yield s(*[draw(i, 2, 3, dtype=dtypes[-1] if i else first) for i in n])
    yield from _numbers(operator, s, draw, first)
    if optional:
        yield s(*[None if names[i] in optional else draw(i, 2, 3, dtype=first) for i in n])


def _special_values(operator: Pointwise, s: Sampler) -> Iterator[Sample]:
    """Yield every pair of special values and extremes: nan, infinities, -0, subnormal numbers, and
    what makes integers wrap around; none if the reference does not support them (`special_values`
    is False).
    """
    import numpy as np

    if not operator.special_values:
        return
    group = promotion.group(operator.dtypes)
    low, high = operator.domain
    for dtype in ("float32", "float64", "int8", "int64", "uint8"):
        if dtype not in group or (operator.promote == "float" and "int" in dtype):
            continue
        kind = np.dtype(dtype)
        if kind.kind == "f":
            tiny = np.finfo(kind).smallest_subnormal
            values = [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 1.0, -1.0, low, high]
            inside = [x for x in values if not low > x and not x > high]
            selection = values if operator.domain == (-3.0, 3.0) else inside
        else:
            limits = np.iinfo(kind)
            selection = sorted({limits.min, limits.max, limits.max - 1, 0, 1, max(limits.min, -1)})
        grids = np.meshgrid(*[np.array(selection, kind)] * min(len(operator.operands), 2))
        flat = [grid.reshape(-1) for grid in grids]
        arrays = [flat[min(i, len(flat) - 1)] for i in range(len(operator.operands))]
        for i, argument in enumerate(operator.operands):
            if argument.name in operator.conditions:
                arrays[i] = np.arange(len(arrays[i])) % 3 == 0
        yield s(*arrays).without_gradient()


_APART = ("float16", *promotion.COMPLEX)


def _apart(operator: Pointwise, s: Sampler, draw: Any, n: int) -> Iterator[Sample]:
    """Yield calls on halves and complex numbers: long rows, strides, special values, numbers."""
    import numpy as np

    dtypes = [
        dtype for dtype in ("float16", "complex64") if dtype in promotion.group(operator.dtypes)
    ]
    for dtype in dtypes:
        yield s(*[draw(i, 300, dtype=dtype) for i in range(n)]).without_gradient()
        strided = s(*[draw(i, 40, 6, dtype=dtype)[::-2, ::2].T for i in range(n)])
        yield strided.without_gradient()
        if dtype != "float16":  # too coarse for finite differences
            yield s(*[draw(i, 8, 6, dtype=dtype)[::-2, ::2].T for i in range(n)])
        takes = [argument.type == "Tensor|Scalar" for argument in operator.operands]
        number = 1.5 if dtype == "float16" else 1.5 - 0.5j
        for k in range(n if n > 1 else 0):
            if takes[k]:
                drawn = [number if i == k else draw(i, 3, dtype=dtype) for i in range(n)]
                sample = s(*drawn)
                yield sample.without_gradient() if dtype == "float16" else sample
    if "complex64" in dtypes and n > 1 and not operator.conditions:
        mixed = [draw(i, 3, dtype="float64" if i else "complex64") for i in range(n)]
        yield s(*mixed)
    if "float16" in dtypes and not operator.conditions:
        low, high = operator.domain
        edges = np.array([6e-8, 6.1e-5, 65504, 1e-3, 0.0, -0.0, np.inf, np.nan], "float16")
        inside = edges[(edges >= low) & (edges <= high)]  # subnormal numbers and extremes
        if len(inside):
            yield s(*[inside] * n).without_gradient()


def _numbers(operator: Pointwise, s: Sampler, draw: Any, dtype: str) -> Iterator[Sample]:
    """Yield calls with a number for each operand that may be one."""
    low, high = operator.domain
    number = (
        2
        if dtype in promotion.INTEGER
        else True
        if dtype == "bool"
        else round((low + high) / 2 + 0.25, 3)
    )
    for k, argument in enumerate(operator.operands):
        if argument.type == "Tensor|Scalar" and len(operator.operands) > 1:
            drawn = [draw(i, 3, dtype=dtype) for i in range(len(operator.operands))]
            yield s(*[number if i == k else array for i, array in enumerate(drawn)])


def error_facts(operator: Pointwise) -> list[ErrorFact]:
    """Return errors that all pointwise operators must give."""
    from plait_ops.spec import ErrorFact

    n = len(operator.operands)
    good = (
        "float32"
        if operator.dtypes not in ("integral", "integer", "bool")
        else "bool"
        if operator.dtypes == "bool"
        else "int64"
    )
    names = [argument.name for argument in operator.operands]
    base = operator.schema.base

    def call(*shapes: tuple[int, ...], dtype: str = good) -> Any:
        return lambda s: s(
            *[
                s.array(*shape, dtype="bool" if names[i] in operator.conditions else dtype)
                for i, shape in enumerate(shapes)
            ]
        )

    facts = []
    if n > 1:
        shapes = [(2, 3), (4,), (4,)][:n]
        facts.append(
            ErrorFact(
                "ShapeError",
                call(*shapes),
                (base, "broadcast", names[0], names[1], "(2, 3)", "(4,)"),
            )
        )
    computed = next(name for name in names if name not in operator.conditions)
    if "complex64" not in promotion.group(operator.dtypes):
        facts.append(
            ErrorFact(
                "DTypeError", call(*[(2,)] * n, dtype="complex64"), (base, computed, "complex64")
            )
        )
    elif not facts:  # there is one argument, of any dtype, so the error is a second argument
        facts.append(ErrorFact("TypeError", lambda s: s(s.array(2), None, None), (base,)))
    if operator.dtypes in ("numeric", "arithmetic"):
        facts.append(
            ErrorFact("DTypeError", call(*[(2,)] * n, dtype="bool"), (base, computed, "bool"))
        )
    elif operator.dtypes in ("integral", "integer", "bool"):
        facts.append(
            ErrorFact("DTypeError", call(*[(2,)] * n, dtype="float32"), (base, computed, "float32"))
        )
    return facts
