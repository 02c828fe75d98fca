"""functions_<n>.cpp: the translated shape functions, derivatives and decompositions.

A spec file's operators stay in one unit, chosen by the file's name, so that a change recompiles one
unit.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from plait_ops import lower
from plait_ops.schema import Argument
from plait_ops.spec import Operator, Pointwise, Reduction, SpecError, Vjp

__all__ = ["NAMESPACE", "emit", "functions_of"]

NAMESPACE = "generated::"
UNITS = 8


def functions_of(operator: Operator) -> dict[str, str]:
    """Return the C++ functions by their field of plait_op_def."""
    names = {}
    if operator.shape_function is not None:
        names["shape"] = f"{NAMESPACE}shape_{operator.identifier}"
    elif isinstance(operator, Pointwise):
        names["shape"] = "pointwise_shape"
    elif isinstance(operator, Reduction):
        names["shape"] = "reduction_shape"
    elif operator.decompose_function is None:
        raise SpecError(
            f"{operator.file}: {operator.name}: a shape function or a decomposition is required"
        )
    if operator.vjps:
        names["saves"] = f"{NAMESPACE}saves_{operator.identifier}"
        names["vjp"] = f"{NAMESPACE}vjp_{operator.identifier}"
    if operator.jvp_function is not None:
        names["jvp"] = f"{NAMESPACE}jvp_{operator.identifier}"
    if operator.decompose_function is not None:
        names["decompose"] = f"{NAMESPACE}decompose_{operator.identifier}"
    return names


def _position(operator: Operator, name: str) -> int | None:
    """Return the bit position of an argument, or None where a list before it moves it."""
    position = 0
    for argument in operator.schema.arguments:
        if argument.name == name:
            return position
        if argument.type == "Tensor[]":
            return None
        position += argument.is_tensor
    raise SpecError(f"{operator.name}: no argument `{name}`")


def _bits(operator: Operator, argument: Argument, call: str) -> str:
    """Return the C++ expression of the bits that `argument` has in this call; 0 where it holds no
    tensor.
    """
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
    """Return the bits in a plait_vjp, where tensors that were not saved are missing."""
    parts = []
    for name in each.inputs:
        position = _position(operator, name)
        argument = operator.schema.argument(name)
        if position is not None and argument.type != "Tensor[]":
            parts.append(f"{1 << position:#x}u")
        else:
            parts.append(f"bits_of(v->op, v->in, {operator.schema.position(name)})")
    return " | ".join(parts)


def _saves(operator: Operator) -> str:
    lines = [
        f"plait_needs saves_{operator.identifier}(const plait_call *c, uint64_t need) {{",
        "  plait_needs n{};",
    ]
    results = operator.schema.results
    for each in operator.vjps:
        use = lower.used(each)
        lines.append(f"  if (need & ({_mask(operator, each, 'c')})) {{")
        for name, how in use.items():
            if name.startswith("result") and name not in {
                a.name for a in operator.schema.arguments
            }:
                if how == "meta":
                    raise SpecError(
                        f"{operator.file}: {operator.name}: read `g`'s shape and dtype, not "
                        f"`{name}`'s"
                    )
                lines.append(
                    f"    n.out |= {1 << (0 if len(results) == 1 else int(name[6:])):#x}u;"
                )
            elif not (name == "g" or (name[0] == "g" and name[1:].isdigit())):
                argument = operator.schema.argument(name)
                if argument.is_tensor:
                    lines.append(
                        f"    n.{'in' if how == 'value' else 'meta'} |= "
                        f"{_bits(operator, argument, 'c')};"
                    )
        lines.append("  }")
    if isinstance(operator, Pointwise):
        lines.append("  n.meta |= broadcast_bits(c, need);")
    lines += ["  n.meta &= ~n.in;", "  return n;", "}"]
    text = "\n".join(lines)
    return (
        text if "c->" in text or "(c," in text else text.replace("plait_call *c,", "plait_call *,")
    )


def _refusals(operator: Operator) -> list[str]:
    """Return the lines that fail for a gradient that nobody wrote: silence would be a wrong one."""
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


def _gradients(operator: Operator) -> str:
    parts, calls = [], []
    for k, each in enumerate(operator.vjps):
        name = f"gradient_{operator.identifier}_{k}"
        body = lower.vjp(operator, each)
        vjp = "v" if "v->" in body else ""
        gx = "gx" if "gx[" in body else ""
        bag = "list" if "list = " in body else ""
        scope = "x" if "(x," in body else ""
        parts.append(
            f"void {name}(const Scope &{scope}, const plait_vjp *{vjp}, Tensor *{gx}, Bag "
            f"&{bag}) {{\n{body}\n}}"
        )
        calls.append(f"  if (v->need & ({_mask_in_vjp(operator, each)})) {{")
        calls.append(
            f"    Tensor gx[{len(each.inputs)}];\n    Bag list;\n    {name}(x, v, gx, list);"
        )
        for i, input_name in enumerate(each.inputs):
            argument = operator.schema.argument(input_name)
            at = operator.schema.position(input_name)
            position = _position(operator, input_name)
            if argument.type == "Tensor[]":
                calls.append(f"    give_gradients(v, position_of(v->op, v->in, {at}), list);")
                continue
            place = str(position) if position is not None else f"position_of(v->op, v->in, {at})"
            wanted = f"v->need & bit({place})"
            value = f"gx[{i}]"
            if isinstance(operator, Pointwise):
                value = f"reduce_to(x, std::move(gx[{i}]), v->in[{at}])"
            calls.append(f"    if ({wanted}) v->gx[{place}] = {value}.release();")
        calls.append("  }")
    calls += _refusals(operator)
    body = "\n".join(calls)
    parts.append(
        f"void gradients_{operator.identifier}(const Scope &x, plait_vjp *v) {{\n{body}\n}}"
    )
    return "\n".join(parts)


def _public(operator: Operator, kind: str, inner: str) -> str:
    argument = "plait_vjp *v" if kind == "vjp" else "plait_call *c"
    guard = "guarded_vjp" if kind == "vjp" else "guarded"
    head = f"plait_status {kind}_{operator.identifier}({argument})"
    return f"{head} {{ return {guard}<{inner}>({argument[-1]}); }}"


def _operator(operator: Operator) -> tuple[list[str], list[str]]:
    """Return internal and exported functions."""
    inside, outside = [], []
    functions = functions_of(operator)
    for kind, translate in (
        ("shape", lower.shape),
        ("jvp", lower.jvp),
        ("decompose", lower.decompose),
    ):
        if functions.get(kind, "").startswith(NAMESPACE):
            body = translate(operator)
            call = "c" if "c->" in body else ""
            scope = "x" if "(x," in body else ""
            inside.append(
                f"void {kind}_{operator.identifier}_body(const Scope &{scope}, plait_call "
                f"*{call}) {{\n{body}\n}}"
            )
            inner = f"{kind}_{operator.identifier}_body"
            if kind == "decompose" and functions.get("shape", "").startswith(NAMESPACE):
                inner = f"shape_{operator.identifier}_body, {inner}"
            outside.append(_public(operator, kind, inner))
    if operator.vjps:
        inside.append(_gradients(operator))
        outside.append(_saves(operator))
        outside.append(_public(operator, "vjp", f"gradients_{operator.identifier}"))
    return inside, outside


def emit(operators: Sequence[Operator]) -> dict[str, str]:
    """Return the units by name."""
    units: list[tuple[list[str], list[str]]] = [([], []) for _ in range(UNITS)]
    for operator in operators:
        unit = units[zlib.crc32(operator.family.encode()) % UNITS]
        for mine, more in zip(unit, _operator(operator), strict=True):
            mine.extend(more)
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
