"""How the NumPy reference of a pointwise operator runs: operands promoted, its result cast once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait_ops import promotion

if TYPE_CHECKING:
    from plait_ops.spec import Pointwise, Reference

__all__ = ["compute_dtype", "run_pointwise"]


def compute_dtype(operator: Pointwise, values: dict[str, Any]) -> str:
    """Return the dtype that the operator computes in."""
    computed = [each.name for each in operator.operands if each.name not in operator.conditions]
    dtype = promotion.of_operands(values[name] for name in computed if values[name] is not None)
    if operator.promote == "first":
        return str(values[computed[0]].dtype)
    if operator.promote == "number" and dtype == "bool":
        return "int64"
    return (
        promotion.DEFAULT
        if operator.promote == "float" and promotion.category(dtype) < 2
        else dtype
    )


def run_pointwise(operator: Pointwise, reference: Reference, values: dict[str, Any]) -> Any:
    """Promote and cast the operands, run `reference`, cast its result: of float16 too, once."""
    import numpy as np

    dtype = compute_dtype(operator, values)
    inner = "float32" if dtype == "float16" else dtype
    conditions = operator.conditions
    arguments = [
        np.asarray(values[argument.name]).astype(inner)
        if argument.is_tensor
        and argument.name not in conditions
        and values[argument.name] is not None
        else values[argument.name]
        for argument in operator.schema.arguments
    ]
    with np.errstate(all="ignore"):
        made = reference(*arguments)
        made_dtype = promotion.real_dtype(dtype) if operator.real else dtype
        return np.asarray(made).astype("bool" if operator.promote == "bool" else made_dtype)
