"""Comparisons of sizes in decompositions and derivatives: who records a call is told of them.

What a decomposition calls may depend on sizes, as of a pooling whose windows fit or do not fit. A
recording that is to serve for other sizes too has to know what was compared.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from plait_ops.lower import ir
from plait_ops.lower.lifetimes import mapped
from plait_ops.value_types import INT, INTS, LIST

__all__ = ["tell_comparisons"]

_NAMES = {
    "==": "is_equal",
    "!=": "is_different",
    "<": "is_less",
    "<=": "is_at_most",
    ">": "is_greater",
    ">=": "is_at_least",
}
_DIVISIONS = {"floor_div": "told_quotient", "floor_mod": "told_rest"}
_CALLS = {"min": "smaller", "max": "larger", "equal": "are_equal"}


def tell_comparisons(function: ir.Function) -> ir.Function:
    """Return the function with calls of functions of ``comparisons.hpp``, which compare ints."""
    return dataclasses.replace(function, body=mapped(function.body, _told))


def _told_division(node: Any, before: Any) -> Any:
    """Return a call that tells of a division, whose result may be the same by chance."""
    if isinstance(node, ir.Call) and node.function in _DIVISIONS:
        return dataclasses.replace(node, function=_DIVISIONS[node.function])
    return node


def _told(node: Any, before: Any) -> Any:
    if isinstance(node, ir.Arithmetic) and node.sign in _NAMES and node.left is not None:
        if node.left.type == INT and node.right.type == INT:
            operands = mapped((node.left, node.right), _told_division)
            return ir.Call(_NAMES[node.sign], operands, node.type)
        return node
    if not isinstance(node, ir.Call) or node.function not in _CALLS:
        return node
    are_sizes = all(each.type in (INT, INTS, LIST) for each in node.arguments)
    return dataclasses.replace(node, function=_CALLS[node.function]) if are_sizes else node
