"""Samples and errors of all reductions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from plait_ops import promotion
from plait_ops.sampling import Sample, Sampler

if TYPE_CHECKING:
    from plait_ops.spec import ErrorFact, Reduction

__all__ = ["error_facts", "samples"]


def _dims(operator: Reduction) -> list[Any]:
    """Return values of `dim` for a shape of three dimensions."""
    argument = next((a for a in operator.schema.arguments if a.name == "dim"), None)
    if argument is None:
        return []
    single: list[Any] = [0, -1, 1]
    if argument.type == "int[]":
        single = [(0,), (-1,), (0, 2), (1, 2, 0), ()]
    return single + ([None] if argument.optional else [])


def samples(operator: Reduction, s: Sampler) -> Iterator[Sample]:
    """Yield calls over dims, layouts, dtypes, 0-d and empty tensors."""
    names = [argument.name for argument in operator.schema.arguments]
    dims = _dims(operator)
    group = promotion.group(operator.dtypes)
    dtypes = [d for d in ("float32", "float64", "int64", "uint8", "bool") if d in group]
    required = "dim" in names and not operator.schema.argument("dim").has_default
    rest = (dims[0],) if required else ()
    for dtype in dtypes:
        yield s(s.array(3, 4, dtype=dtype), *rest)
    for separate in ("float16", "complex64", "complex128"):
        if separate in group:
            sample = s(s.array(3, 4, dtype=separate), *rest)
            yield sample.without_gradient() if separate == "float16" else sample
            long = s.array(20, 600, dtype=separate, low=-1, high=1)[::-2].T
            yield s(long, *rest).without_gradient()
    first = dtypes[0]
    draw = s.distinct if first.startswith("float") else s.array
    for dim in dims:
        yield s(draw(2, 3, 4, dtype=first), dim)
        if "keepdim" in names:
            yield s(draw(2, 3, 4, dtype=first), dim, keepdim=True)
    yield s(draw(6, 8, dtype=first)[::-2, ::2].T, *rest)
    zero = (
        (-1,)
        if required and operator.schema.argument("dim").type == "int"
        else ((),)
        if required
        else ()
    )
    yield s(draw(dtype=first), *zero)
    if operator.identity:
        yield s(s.array(0, 3, dtype=first), *rest)
        yield s(s.array(2, 0, dtype=first), *rest)
    if "dtype" in names:
        yield s(s.array(2, 3, dtype="float32"), *rest, dtype="float64")
        yield s(s.array(2, 3, dtype="int16"), *rest, dtype="float32")


def error_facts(operator: Reduction) -> list[ErrorFact]:
    """Return errors that all reductions must give."""
    from plait_ops.spec import ErrorFact

    base = operator.schema.base
    argument = next((a for a in operator.schema.arguments if a.name == "dim"), None)
    is_list = argument is not None and argument.type == "int[]"
    good = "bool" if operator.dtypes == "bool" else "float32"
    rest: tuple[Any, ...] = ()
    if argument is not None and not argument.has_default:
        rest = ((0,),) if is_list else (0,)
    facts = []
    if "complex64" not in promotion.group(operator.dtypes):
        facts.append(
            ErrorFact(
                "DTypeError",
                lambda s: s(s.array(3, dtype="complex64"), *rest),
                (base, "self", "complex64"),
            )
        )
    if operator.dtypes in ("floating", "inexact"):
        facts.append(
            ErrorFact(
                "DTypeError", lambda s: s(s.array(3, dtype="int64"), *rest), (base, "self", "int64")
            )
        )
    if argument is not None:
        bad: Any = (0, 2) if is_list else 2
        facts.append(
            ErrorFact(
                "IndexError",
                lambda s: s(s.array(2, 3, dtype=good), bad),
                (base, "dim", "(2, 3)", "2"),
            )
        )
        below: Any = (-3,) if is_list else -3
        facts.append(
            ErrorFact(
                "IndexError",
                lambda s: s(s.array(2, 3, dtype=good), below),
                (base, "dim", "(2, 3)", "-3"),
            )
        )
    if is_list:
        facts.append(
            ErrorFact(
                "ValueError",
                lambda s: s(s.array(2, 3, dtype=good), (1, -1)),
                (base, "dim", "(1, -1)"),
            )
        )
    if not operator.identity:
        facts.append(
            ErrorFact(
                "IndexError",
                lambda s: s(s.array(0, 3, dtype=good), *rest),
                (base, "self", "(0, 3)"),
            )
        )
    return facts
