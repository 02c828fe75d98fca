"""The paragraphs that pointwise operators and reductions share, from the fields of their specs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait_ops.spec import Pointwise, Reduction

__all__ = ["pointwise", "reduction"]

GROUP_TEXT = {
    "any": "all dtypes",
    "all": "bool, integers and floating-point dtypes",
    "arithmetic": "integers, floating-point and complex dtypes",
    "numeric": "integers and floating-point dtypes",
    "inexact": "floating-point and complex dtypes",
    "floating": "floating-point dtypes",
    "integral": "bool and integers",
    "integer": "integers",
    "bool": "bool",
}


def pointwise(operator: Pointwise) -> str:
    """Return the paragraphs on shapes, dtypes and errors."""
    names = [f"`{argument.name}`" for argument in operator.operands]
    computed = [f"`{a.name}`" for a in operator.operands if a.name not in operator.conditions]
    common = (
        "the dtype of `self`"
        if computed == ["`self`"]
        else f"the dtype to which {' and '.join(computed)} promote"
    )
    shapes = "Shape: the result has the shape of `self`."
    if len(names) > 1:
        shapes = (
            f"Shapes: {', '.join(names)} broadcast; the result has the shape they broadcast to."
        )
    dtypes = {
        "same": f"Dtypes: {GROUP_TEXT[operator.dtypes]}; the result has {common}.",
        "float": f"Dtypes: {GROUP_TEXT[operator.dtypes]}; the result has {common}, or float32 "
        "where that is bool or an integer.",
        "bool": f"Dtypes: {GROUP_TEXT[operator.dtypes]}; the result is bool.",
        "number": f"Dtypes: {GROUP_TEXT[operator.dtypes]}; the result has {common}, or int64 "
        "where that is bool.",
        "first": f"Dtypes: {GROUP_TEXT[operator.dtypes]}; the result has the dtype of "
        f"{computed[0]}, which the others are cast to.",
    }[operator.promote]
    if operator.real:
        dtypes = dtypes.removesuffix(".") + "; of complex numbers, the real dtype of their parts."
    if operator.conditions:
        dtypes += f" {' and '.join(f'`{name}`' for name in operator.conditions)} must be bool."
    raises = "Raises: DTypeError for other dtypes."
    if len(names) > 1:
        raises = "Raises: ShapeError if the shapes do not broadcast, DTypeError for other dtypes."
    return f"\n\n{shapes}\n{dtypes}\n{raises}"


def reduction(operator: Reduction) -> str:
    """Return the paragraphs on shapes, dtypes and errors."""
    names = [argument.name for argument in operator.schema.arguments]
    shapes = "Shape: the result is 0-d."
    if "dim" in names:
        shapes = "Shape: `dim` names what is reduced (None or an empty list: everything)"
        shapes += "; with `keepdim` it stays with size 1." if "keepdim" in names else "."
    dtypes = (
        f"Dtypes: {GROUP_TEXT[operator.dtypes]}; "
        + {
            "same": "the result has the dtype of `self`",
            "sum": "bool and integers give int64, others their own dtype",
            "float": "the result has the dtype of `self`",
            "real": "the result has the dtype of `self`, of complex numbers that of their parts",
            "bool": "the result is bool",
            "int64": "the result is int64",
        }[operator.result]
    )
    dtypes += "; `dtype` is cast to first." if "dtype" in names else "."
    raises = "Raises: DTypeError for other dtypes"
    if "dim" in names:
        raises += ", IndexError for a `dim` out of range, ValueError for a repeated one"
    if not operator.identity:
        raises += ", ShapeError for an empty reduction"
    return f"\n\n{shapes}\n{dtypes}\n{raises}."
