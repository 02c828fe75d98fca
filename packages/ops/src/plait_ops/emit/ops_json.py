"""ops.json: the operators as data, for bindings to other languages and for tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from plait_ops.emit.register import flags
from plait_ops.schema import Argument
from plait_ops.spec import Operator, Pointwise

__all__ = ["emit"]


def _argument(argument: Argument) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": argument.name, "type": argument.type}
    for key in (
        "second",
        "optional",
        "optional_items",
        "writes",
        "alias",
        "keyword_only",
        "varargs",
        "length",
    ):
        if getattr(argument, key):
            entry[key] = getattr(argument, key)
    if argument.has_default:
        default = argument.default
        entry["default"] = (
            repr(default)
            if isinstance(default, float) and abs(default) == float("inf")
            else default
        )
    return entry


def _operator(operator: Operator) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": operator.name,
        "schema": operator.schema.text,
        "kind": operator.kind,
        "dtypes": operator.dtypes,
        "flags": [flag.removeprefix("PLAIT_OP_").lower() for flag in flags(operator)],
        "differentiable": list(operator.differentiable),
        "arguments": [_argument(argument) for argument in operator.schema.arguments],
        "results": [
            {"type": r.type, "alias": r.alias, "writes": r.writes, "name": r.name}
            for r in operator.schema.results
        ],
        "internal": operator.internal,
        "doc": operator.doc,
    }
    if isinstance(operator, Pointwise):
        entry["promote"] = operator.promote
    if operator.lapack:
        entry["lapack"] = True
    if operator.libm:
        entry["libm"] = operator.libm
    if operator.batching:
        entry["batching"] = operator.batching
    if operator.sharding:
        entry["sharding"] = operator.sharding
    if operator.kernel:
        entry["kernel"] = operator.kernel
    return entry


def emit(operators: Sequence[Operator]) -> dict[str, str]:
    """Return the file by name."""
    table = {"operators": [_operator(operator) for operator in operators]}
    return {"ops.json": json.dumps(table, indent=1, ensure_ascii=False) + "\n"}
