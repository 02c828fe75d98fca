"""functions_<n>.cpp: the translated shape functions, derivatives, decompositions and costs.

A spec file's operators stay in one unit, chosen by the file's name, so that a change recompiles one
unit.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from plait_ops import lower
from plait_ops.emit.derivatives import is_constant
from plait_ops.lower import ir
from plait_ops.schema import Argument
from plait_ops.spec import Operator, Pointwise, Reduction, SpecError, Vjp

__all__ = ["emit", "functions_of", "own_functions"]

NAMESPACE = "generated::"
UNITS = 8


def own_functions(operator: Operator) -> dict[str, str]:
    """Return the C++ functions that are emitted for an operator, by their field of plait_op_def."""
    has = {
        "shape": operator.shape_function is not None,
        "saves": bool(operator.vjps),
        "vjp": bool(operator.vjps),
        "jvp": operator.jvp_function is not None,
        "decompose": operator.decompose_function is not None,
        "cost": operator.cost_function is not None,
    }
    return {name: f"{name}_{operator.identifier}" for name, emitted in has.items() if emitted}


def functions_of(operator: Operator) -> dict[str, str]:
    """Return the C++ functions of an operator by their field of plait_op_def: its own, and those
    that operators of its kind share.
    """
    names = {field: NAMESPACE + name for field, name in own_functions(operator).items()}
    if "decompose" in names and operator.kind != "composite" and is_constant(operator):
        names |= {"saves": "saves_nothing", "vjp": "no_derivative"}
    if "shape" not in names:
        if isinstance(operator, Pointwise):
            names["shape"] = "pointwise_shape"
        elif isinstance(operator, Reduction):
            names["shape"] = "reduction_shape"
        elif "decompose" not in names:
            raise SpecError(
                f"{operator.file}: {operator.name}: a shape function or a decomposition is required"
            )
    return names


def _position(operator: Operator, name: str) -> int | None:
    """Return the bit position of an argument, or None if a list before it makes it variable."""
    position = 0
    for argument in operator.schema.arguments:
        if argument.name == name:
            return position
        if argument.type == "Tensor[]":
            return None
        position += argument.is_tensor
    raise SpecError(f"{operator.name}: no argument `{name}`")


def _bits(operator: Operator, argument: Argument, call: str) -> str:
    """Return the C++ expression of the bits of `argument` in this call, 0 if it has no tensor."""
    at = operator.schema.position(argument.name)
    position = _position(operator, argument.name)
    if position is None or argument.type == "Tensor[]":
        return f"bits_of({call}->op, {call}->in, {at})"
    if argument.type == "Tensor" and not argument.optional:
        return f"{1 << position:#x}u"
    return f"(is_tensor({call}->in[{at}]) ? {1 << position:#x}u : 0u)"


def _mask(operator: Operator, each: Vjp, call: str) -> str:
    return " | ".join(_bits(operator, operator.schema.argument(name), call) for name in each.inputs)


def _mask_in_vjp(operator: Operator, each: Vjp) -> str:
    """Return the bits of `argument` in a plait_vjp, which lacks tensors that were not saved."""
    parts = []
    for name in each.inputs:
        position = _position(operator, name)
        argument = operator.schema.argument(name)
        if position is not None and argument.type != "Tensor[]":
            parts.append(f"{1 << position:#x}u")
        else:
            parts.append(f"bits_of(v->op, v->in, {operator.schema.position(name)})")
    return " | ".join(parts)


def _saves(operator: Operator, derivatives: Sequence[ir.Function]) -> str:
    """Return the C++ function that says what derivatives read: elements, or shape and dtype."""
    lines = [
        f"void saves_{operator.identifier}([[maybe_unused]] const plait_call *c, "
        "uint64_t need, plait_needs *n) {"
    ]
    for each, derivative in zip(operator.vjps, derivatives, strict=True):
        read = lower.reads_values(derivative) - set(each.meta)
        results = {p.variable.name for p in derivative.parameters if p.source is ir.Source.RESULT}
        lines.append(f"  if (need & ({_mask(operator, each, 'c')})) {{")
        for parameter in derivative.parameters:
            name = parameter.variable.name
            if parameter.source is ir.Source.RESULT:
                if name not in read:
                    raise SpecError(
                        f"{operator.file}: {operator.name}: read `g`'s shape and dtype, not "
                        f"`{name}`'s"
                    )
                lines.append(f"    n->out |= {1 << parameter.position:#x}u;")
            elif parameter.source is ir.Source.VJP:
                argument = operator.schema.arguments[parameter.position]
                if argument.is_tensor:
                    field = "in" if name in read else "meta"
                    lines.append(f"    n->{field} |= {_bits(operator, argument, 'c')};")
        if operator.widens and results:  # halves compute them again
            tensors = [argument for argument in operator.schema.arguments if argument.is_tensor]
            lines += [f"    n->in |= {_bits(operator, each, 'c')};" for each in tensors]
        lines.append("  }")
    if isinstance(operator, Pointwise):
        lines.append("  n->meta |= broadcast_bits(c, need);")
    return "\n".join([*lines, "  n->meta &= ~n->in;", "}"])


def _refusals(operator: Operator) -> list[str]:
    """Return the lines that raise an error for gradients without a formula."""
    covered = {*operator.differentiable, *operator.constants, *getattr(operator, "conditions", ())}
    lines = []
    for argument in operator.schema.arguments:
        position = _position(operator, argument.name)
        if (
            argument.is_tensor
            and argument.type != "Tensor[]"
            and argument.name not in covered
            and position is not None
        ):
            text = f"there is no derivative for `{argument.name}`; give it detached"
            lines.append(
                f"  if (v->need & {1 << position:#x}u) fail(x, PLAIT_NOT_IMPLEMENTED, "
                f"{json.dumps(text)});"
            )
    return lines


def _gradients(operator: Operator, derivatives: Sequence[ir.Function]) -> str:
    """Return the derivatives and the function that calls those that are needed."""
    parts, calls = [], []
    for k, (each, derivative) in enumerate(zip(operator.vjps, derivatives, strict=True)):
        name = f"gradient_{operator.identifier}_{k}"
        parts.append(
            f"void {name}([[maybe_unused]] const Scope &x, [[maybe_unused]] const plait_vjp *v, "
            "[[maybe_unused]] Tensor *gx, [[maybe_unused]] Bag &list) "
            f"{{\n{lower.to_cpp(derivative)}\n}}"
        )
        calls.append(f"  if (v->need & ({_mask_in_vjp(operator, each)})) {{")
        calls.append(
            f"    Tensor gx[{len(each.inputs)}];\n    Bag list;\n    {name}(x, v, gx, list);"
        )
        calls += [_hand_over(operator, i, input_name) for i, input_name in enumerate(each.inputs)]
        calls.append("  }")
    calls += _refusals(operator)
    body = "\n".join(calls)
    parts.append(
        f"void gradients_{operator.identifier}(const Scope &x, plait_vjp *v) {{\n{body}\n}}"
    )
    return "\n".join(parts)


def _hand_over(operator: Operator, i: int, name: str) -> str:
    """Return the line that gives the gradient of an input to the engine."""
    at, position = operator.schema.position(name), _position(operator, name)
    if operator.schema.argument(name).type == "Tensor[]":
        return f"    give_gradients(v, position_of(v->op, v->in, {at}), list);"
    index = str(position) if position is not None else f"position_of(v->op, v->in, {at})"
    value = f"gx[{i}]"
    if isinstance(operator, Pointwise):
        value = f"reduce_to(x, std::move(gx[{i}]), v->in[{at}])"
    return f"    if (v->need & bit({index})) v->gx[{index}] = {value}.release();"


def _public(operator: Operator, kind: str, inner: str) -> str:
    guard, type_, name = ("guarded", "plait_call", "c")
    if kind == "vjp":
        guard, type_, name = ("guarded_vjp", "plait_vjp", "v")
    head = f"plait_status {kind}_{operator.identifier}({type_} *{name})"
    return f"{head} {{ return {guard}<{inner}>({name}); }}"


def _operator(operator: Operator) -> tuple[list[str], list[str]]:
    """Return internal and exported functions."""
    inside, outside = [], []
    functions = own_functions(operator)
    for kind, translate in (
        ("shape", lower.shape),
        ("jvp", lower.jvp),
        ("decompose", lower.decompose),
    ):
        if kind in functions:
            inner = f"{kind}_{operator.identifier}_body"
            inside.append(
                f"void {inner}([[maybe_unused]] const Scope &x, [[maybe_unused]] plait_call *c) "
                f"{{\n{lower.to_cpp(translate(operator))}\n}}"
            )
            if kind == "decompose" and isinstance(operator, Pointwise):
                inner = f"promoted<{inner}>"
            elif kind == "decompose" and operator.widens:
                inner = f"widened<{inner}, plait_call>"
            if kind == "decompose" and "shape" in functions:
                inner = f"shape_{operator.identifier}_body, {inner}"
            outside.append(_public(operator, kind, inner))
    if "cost" in functions:
        name = functions["cost"]
        inside.append(
            f"void {name}_body([[maybe_unused]] const plait_call *c, Cost &cost) "
            f"{{\n{lower.to_cpp(lower.cost(operator))}\n}}"
        )
        outside.append(
            f"void {name}(const plait_call *c, plait_cost *out) "
            f"{{ guarded_cost<{name}_body>(c, out); }}"
        )
    if operator.vjps:
        derivatives = [lower.vjp(operator, each) for each in operator.vjps]
        inside.append(_gradients(operator, derivatives))
        outside.append(_saves(operator, derivatives))
        inner = f"gradients_{operator.identifier}"
        outside.append(
            _public(operator, "vjp", f"widened<{inner}, plait_vjp>" if operator.widens else inner)
        )
    return inside, outside


def emit(operators: Sequence[Operator]) -> dict[str, str]:
    """Return the units by name."""
    units: list[tuple[list[str], list[str]]] = [([], []) for _ in range(UNITS)]
    for operator in operators:
        unit = units[zlib.crc32(operator.family.encode()) % UNITS]
        for functions, more in zip(unit, _operator(operator), strict=True):
            functions.extend(more)
    files = {}
    for i, (inside, outside) in enumerate(units):
        files[f"functions_{i}.cpp"] = (
            '// Generated by plait_ops.emit.functions.\n#include "wrappers.hpp"\n\nnamespace '
            "plait::ops::generated {\n"
            + "namespace {\n\n"
            + "\n\n".join(inside)
            + "\n\n}  // namespace\n\n"
            + "\n\n".join(outside)
            + "\n\n}  // namespace plait::ops::generated\n"
        )
    return files
