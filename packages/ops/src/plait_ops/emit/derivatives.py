"""The table of derivatives: the origin of each operator's reverse and forward derivative."""

from __future__ import annotations

from collections.abc import Sequence

from plait_ops import lower
from plait_ops.promotion import group
from plait_ops.spec import Operator, Pointwise, View

__all__ = ["emit", "forward", "is_constant", "reverse"]

CONSTANT = ("integral", "integer", "bool")  # groups of dtypes that have no derivatives


def is_constant(operator: Operator) -> bool:
    """Return whether the derivative of an operator is zero or undefined everywhere.

    Of one with a decomposition: whether its definition says that all results are truth values or
    integers.
    """
    if operator.vjps or operator.kind == "composite" or isinstance(operator, View):
        return False
    if operator.decompose_function is None and (
        operator.unpredictable
        or not any(argument.is_tensor for argument in operator.schema.arguments)
    ):
        return True
    return (
        operator.dtypes in CONSTANT
        or getattr(operator, "promote", "") == "bool"
        or getattr(operator, "result", "") in ("bool", "int64")
        or _makes_integers(operator)
    )


def _makes_integers(operator: Operator) -> bool:
    """Return whether the shape function names the dtype of each result, none with derivatives."""
    if operator.shape_function is None:
        return False
    dtypes = lower.result_dtypes(lower.shape(operator))
    return bool(dtypes) and dtypes <= set(group("integral"))


def reverse(operator: Operator) -> str:
    """Return the origin of the vector-Jacobian product."""
    if operator.vjps:
        return "spec"
    if isinstance(operator, View):
        return "cut" if operator.cut else "view"
    if is_constant(operator):
        return "constant"
    return "parts" if operator.decompose_function is not None else "none"


def forward(operator: Operator) -> str:
    """Return the origin of the Jacobian-vector product (docs/design/0009)."""
    origin = reverse(operator)
    if origin != "spec":
        return origin
    if isinstance(operator, View):
        return "view"
    if operator.jvp_function is not None:
        return "spec"
    return "diagonal" if isinstance(operator, Pointwise) else "transposition"


def emit(operators: Sequence[Operator]) -> dict[str, str]:
    """Return the page, by name."""
    rows = [
        f"| `{operator.name}` | {reverse(operator)} | {forward(operator)} |"
        for operator in sorted(operators, key=lambda operator: operator.name)
    ]
    counts: dict[str, int] = {}
    for operator in operators:
        counts[forward(operator)] = counts.get(forward(operator), 0) + 1
    summary = ", ".join(f"{name} {n}" for name, n in sorted(counts.items()))
    return {
        "derivatives.md": f"{HEAD}\nForward mode: {summary}.\n\n{TABLE}" + "\n".join(rows) + "\n"
    }


HEAD = """# Derivatives of the operators

This table shows where the derivatives of each operator come from. If an operator has none, asking
for it is an error that names the operator.

- **spec**: a formula in the operator's spec.
- **diagonal**: the operator is pointwise, so for real numbers the formula of the reverse mode also
  computes tangents (for complex numbers: transposition).
- **transposition**: the formula of the reverse mode is linear in the gradient, and a backward pass
  through it gives the forward mode; it costs about as much as two reverse derivatives.
- **view**: the place of the view in its base, in both modes.
- **cut**: the result is a constant by definition.
- **parts**: the operator consists of other operators, which are differentiated.
- **constant**: small changes of the inputs do not change the result: integers, truth values, random
  numbers.
- **none**: there is no derivative.
"""
TABLE = "| Operator | Reverse | Forward |\n| --- | --- | --- |\n"
