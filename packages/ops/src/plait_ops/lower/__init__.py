"""The translator: functions of a spec become bodies of C++ functions that call `cpp/words.hpp`.

What it knows: assignments, `if`, `while`, `for` over ranges and lists, `return`, arithmetic,
comparisons, conditional expressions, list comprehensions, f-strings in `check`, the words of
`plait_ops.words`, parts (functions marked `part`, translated where they are called), operator
calls and tensor arithmetic (not in shape functions). Everything else is an error with file and
line, at build time.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from plait_ops.lower.source import definition, visible
from plait_ops.lower.statements import Statements
from plait_ops.lower.types import declared, parameter, type_of
from plait_ops.spec import Operator, SpecError, Vjp

__all__ = ["decompose", "jvp", "shape", "used", "vjp"]

META = ("shape", "ndim", "dtype", "device", "strides")
META_WORDS = ("numel", "is_tensor", "is_number")


def _names(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def _parameters(operator: Operator, context: str, names: list[str]) -> dict[str, tuple[str, str]]:
    """Return type and C++ reading expression of each parameter of a spec's function."""
    call = "v" if context == "vjp" else "c"
    known = {
        argument.name: (type_of(argument), parameter(type_of(argument), f"{call}->in[{i}]"))
        for i, argument in enumerate(operator.schema.arguments)
    }
    n, plain = len(operator.schema.arguments), len(operator.schema.results) == 1
    if context == "jvp":  # arguments, their tangents, results
        for i, argument in enumerate(operator.schema.arguments):
            if argument.is_tensor and argument.type != "Tensor[]":
                known[f"d_{argument.name}"] = ("tensor?", f"as_tensor(c->in[{n + i}])")
        for i in range(len(operator.schema.results)):
            place = f"as_tensor(c->in[{2 * n + i}])"
            known.setdefault("result" if plain else f"result{i}", ("tensor", place))
    if context == "vjp":
        for i in range(len(operator.schema.results)):
            known["g" if plain else f"g{i}"] = ("tensor", f"v->gy[{i}]")
            # an argument that is called `result` keeps its name
            known.setdefault(
                "result" if plain else f"result{i}", ("tensor", f"as_tensor(v->out[{i}])")
            )
    missing = [name for name in names if name not in known]
    if missing:
        raise SpecError(
            f"{operator.file}: {operator.name}: {context} asks for `{missing[0]}`, which is "
            f"none of {list(known)}"
        )
    return {name: known[name] for name in names}


def _translate(
    operator: Operator, context: str, function: Callable[..., Any], inputs: tuple[str, ...] = ()
) -> str:
    node, path, first = definition(function)
    statements = Statements(operator, context, path, first, visible(function))
    statements.inputs = inputs
    parameters = _parameters(operator, context, _names(function))
    statements.variables = {name: kind for name, (kind, _) in parameters.items()}
    statements.body(node.body)
    statements.settle()
    lines = []
    for name, (kind, code) in parameters.items():
        if f"{name}_" in " ".join(statements.lines):
            reference = "&" if declared(kind) == "plait_value" else ""
            const = "const " if not declared(kind).endswith("*") else ""
            lines.append(f"  {const}{declared(kind)} {reference}{name}_ = {code};")
    return "\n".join(lines + statements.declarations() + statements.lines)


def shape(operator: Operator) -> str:
    """Return the C++ body of a shape function: it sees ``x`` (Scope) and ``c`` (plait_call)."""
    assert operator.shape_function is not None
    return _translate(operator, "shape", operator.shape_function)


def decompose(operator: Operator) -> str:
    """Return the C++ body of a decomposition: it sees ``x`` and ``c``."""
    assert operator.decompose_function is not None
    return _translate(operator, "decompose", operator.decompose_function)


def jvp(operator: Operator) -> str:
    """Return the C++ body of a forward derivative: it sees ``x`` and ``c``, whose inputs are the
    operator's, their tangents and its results.
    """
    assert operator.jvp_function is not None
    return _translate(operator, "jvp", operator.jvp_function)


def vjp(operator: Operator, each: Vjp) -> str:
    """Return the C++ body of a derivative: it sees ``x``, ``v`` (plait_vjp), and fills in ``gx``
    or ``list``.
    """
    return _translate(operator, "vjp", each.function, each.inputs)


def used(each: Vjp) -> dict[str, str]:
    """Return ``value`` or ``meta`` for each parameter of a derivative: whether its elements are
    read.
    """
    node, _, _ = definition(each.function)
    use = dict.fromkeys(_names(each.function), "meta")
    harmless: set[int] = set()
    for item in ast.walk(node):
        if isinstance(item, ast.Attribute) and item.attr in META:
            harmless.add(id(item.value))
        elif (
            isinstance(item, ast.Call)
            and isinstance(item.func, ast.Name)
            and item.func.id in META_WORDS
        ):
            harmless.update(id(arg) for arg in item.args)
        elif isinstance(item, ast.Compare) and isinstance(item.ops[0], (ast.Is, ast.IsNot)):
            harmless.add(id(item.left))
    for item in ast.walk(node):
        if isinstance(item, ast.Name) and item.id in use and id(item) not in harmless:
            use[item.id] = "value"
    for name in each.meta:
        use[name] = "meta"
    return use
