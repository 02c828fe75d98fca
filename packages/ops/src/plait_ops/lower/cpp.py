"""The printer: from the intermediate representation to C++. It makes no decisions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from plait_ops.lower import ir
from plait_ops.lower.conversions import BY_VALUE, CONVERSIONS, NUMBERS
from plait_ops.value_types import Kind, Type

__all__ = ["SPELLINGS", "function", "literal"]

SPELLINGS = {
    Kind.INT: "int64_t",
    Kind.FLOAT: "double",
    Kind.BOOL: "bool",
    Kind.STR: "const char *",
    Kind.DTYPE: "DType",
    Kind.DEVICE: "plait_value",
    Kind.SCALAR: "plait_value",
    Kind.OPERAND: "plait_value",
    Kind.HELD: "Held",
    Kind.GENERATOR: "plait_value",
    Kind.INTS: "Ints",
    Kind.LIST: "Dims",
    Kind.TENSOR: "plait_tensor *",
    Kind.OWNED: "Tensor",
    Kind.TENSORS: "Tensors",
    Kind.BAG: "Bag",
    Kind.NONE: "void",
}
NULLABLE = (*BY_VALUE, Kind.TENSOR, Kind.STR)  # None is among the values of the C++ type
FIELDS = {
    "shape": "shape_of({})",
    "strides": "strides_of({})",
    "ndim": "int64_t(({})->dl.ndim)",
    "dtype": "({})->dl.dtype",
    "device": "value(({})->dl.device)",
}
FAILURES = {
    "ShapeError": "PLAIT_SHAPE_ERROR",
    "DTypeError": "PLAIT_DTYPE_ERROR",
    "ValueError": "PLAIT_VALUE_ERROR",
    "IndexError": "PLAIT_INDEX_ERROR",
    "TypeError": "PLAIT_TYPE_ERROR",
    "NotImplementedError": "PLAIT_NOT_IMPLEMENTED",
    "RuntimeError": "PLAIT_ERROR",
    "LinAlgError": "PLAIT_LINALG_ERROR",
}
SOURCES = {  # the C++ expressions that parameters are read from
    ir.Source.CALL: "c->in[{}]",
    ir.Source.VJP: "v->in[{}]",
    ir.Source.GRADIENT: "v->gy[{}]",
    ir.Source.RESULT: "v->out[{}]",
    ir.Source.OUTPUT: "made(c->out[{}])",
    ir.Source.FORM: "value(c->form == PLAIT_INPLACE)",
}
FORMS = {
    ir.Form.ONE: "run",
    ir.Form.IN_PLACE: "run_in_place",
    ir.Form.LIST: "run_list",
    ir.Form.SEVERAL: "run_all",
    ir.Form.LAST: "give_last",
}
STANDARD = {  # helpers from the standard library
    "abs": "std::abs",
    "max": "std::max<{}>",
    "min": "std::min<{}>",
    "pow": "std::pow",
}
UNSETTLED = (Kind.EMPTY, Kind.RESULT)  # helpers for lists that have no C++ variable
INDEX = "i"  # names of variables end in _, so this name is free


# ---- types and constants -------------------------------------------------------------------------
def declared(type_: Type) -> str:
    """Return the C++ type of a variable."""
    text = SPELLINGS[type_.kind]
    return f"std::optional<{text}>" if type_.optional and type_.kind not in NULLABLE else text


def literal(value: object) -> str:
    """Return a Python constant in C++."""
    if value is None:
        return "none()"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return "INT64_MAX" if value == 2**63 - 1 else f"int64_t({value})"
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            text = "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
            return f"double({text})"
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, tuple):
        return "Dims{" + ", ".join(str(int(item)) for item in value) + "}"
    raise TypeError(f"no C++ for the constant {value!r}")


def _absent(type_: Type) -> str:
    """Return the C++ expression of None for ``wanted``."""
    if type_.kind in BY_VALUE:
        return "none()"
    constants = {Kind.OWNED: "Tensor()", Kind.TENSOR: "nullptr", Kind.STR: "nullptr"}
    return constants.get(type_.kind, "std::nullopt")


# ---- expressions ---------------------------------------------------------------------------------
def expression(node: ir.Expression) -> str:
    """Return an expression in C++."""
    return EXPRESSIONS[type(node)](node)


def _list(nodes: Sequence[ir.Expression]) -> str:
    return ", ".join(expression(node) for node in nodes)


def _name(variable: ir.Variable) -> str:
    return f"{variable.name}_"


def _convert(node: ir.Convert) -> str:
    have, value = node.value.type, node.value
    if have.kind is Kind.NONE:
        return _absent(node.type)
    if have == node.type:  # a list that began empty
        return expression(value)
    if have.kind in NUMBERS and node.type.kind in BY_VALUE:
        return f"value({SPELLINGS[have.kind]}({expression(value)}))"
    return CONVERSIONS[have, node.type].format(expression(value))


def _present(node: ir.Present) -> str:
    text = expression(node.value)
    return text if node.type.kind in NULLABLE else f"(*{text})"


def _argument(node: ir.Argument) -> str:
    """Print an expression that makes a plait_value."""
    have, text = node.value.type, expression(node.value)
    if have.kind in (*BY_VALUE, Kind.NONE):
        return text
    if have.optional:
        return f"value_or_none({text})"
    if have.kind is Kind.INT:
        return f"value(int64_t({text}))"
    maker = {Kind.INTS: "ints_value", Kind.TENSORS: "tensors_value"}.get(have.kind, "value")
    return f"{maker}({text})"


def _not(node: ir.Not) -> str:
    text = expression(node.value)
    return f"!{text}" if isinstance(node.value, (ir.Call, ir.IsNone)) else f"!({text})"


def _arithmetic(node: ir.Arithmetic) -> str:
    right = expression(node.right)
    if node.left is None:
        return f"({node.sign}{right})"
    return f"({expression(node.left)} {node.sign} {right})"


def _list_of(node: ir.ListOf) -> str:
    if node.type.kind is Kind.BAG:
        return f"Bag({{{_list(node.items)}}})"
    return f"Dims{{{_list(node.items)}}}" if node.items else "Dims()"


def _is_string(node: ir.Expression) -> bool:
    return isinstance(node, ir.Literal) and isinstance(node.value, str)


def _text(node: ir.Text) -> str:
    pieces = (
        expression(piece) if _is_string(piece) else f"show({expression(piece)})"
        for piece in node.pieces
    )
    return " + ".join(["std::string()", *pieces])


def _call(node: ir.Call) -> str:
    arguments = [expression(argument) for argument in node.arguments]
    if node.function == "size":
        return f"{arguments[0]}.size()"
    name = STANDARD.get(node.function, node.function).format(SPELLINGS.get(node.type.kind))
    return f"{name}({', '.join((['x'] if node.on_call else []) + arguments)})"


def _move(node: ir.Move) -> str:
    text = f"std::move({expression(node.value)})"
    return f"Tensor({text})" if node.type.kind is Kind.OWNED else text


def _operator_call(node: ir.OperatorCall) -> str:
    """Print a call. C++ keeps temporaries to the end of a statement, so a call of calls,
    or of a tensor that is moved out of its variable, is a function: what its arguments take is free
    when it returns.
    """
    spare = f", {sum(1 << each for each in node.spare):#x}" if node.spare else ""
    text = f"{FORMS[node.form]}(x, Op::{node.operator}, {{{_list(node.arguments)}}}{spare})"
    nested = any(isinstance(each, (ir.OperatorCall, ir.Move)) for each in ir.walk(node.arguments))
    if node.form is ir.Form.ONE and nested:
        return f"[&] {{ return {text}; }}()"
    return text


def _comprehension(node: ir.Comprehension) -> str:
    conditions = "".join(
        f"if (!({expression(condition)})) continue; " for condition in node.conditions
    )
    head = " ".join(line.strip() for line in _loop(node.head, 0))
    body = f"{conditions}made_.push({expression(node.element)});"
    return f"[&] {{ {declared(node.type)} made_; {head} {body} }} return made_; }}()"


def _part_call(node: ir.PartCall) -> str:
    """Print a lambda that takes its arguments as they are."""
    body = " ".join(line.strip() for line in _body(node.function))
    used = {id(each.variable) for each in ir.walk(node.function.body) if isinstance(each, ir.Read)}
    parameters = ", ".join(
        f"auto &&{_name(each.variable)}" if id(each.variable) in used else "auto &&"
        for each in node.function.parameters
    )
    result = declared(node.function.result)
    return f"[&]({parameters}) -> {result} {{ {body} }}({_list(node.arguments)})"


EXPRESSIONS: dict[type, Callable[[Any], str]] = {
    ir.Literal: lambda node: literal(node.value),
    ir.Position: lambda node: str(node.value),
    ir.DTypeName: lambda node: f"dtype::{node.name}",
    ir.Read: lambda node: _name(node.variable),
    ir.Convert: _convert,
    ir.Cast: lambda node: f"{SPELLINGS[node.type.kind]}({expression(node.value)})",
    ir.Present: _present,
    ir.Argument: _argument,
    ir.Move: _move,
    ir.Not: _not,
    ir.IsNone: lambda node: f"is_none({expression(node.value)})",
    ir.Logic: lambda node: f"({f' {node.sign} '.join(map(expression, node.values))})",
    ir.Arithmetic: _arithmetic,
    ir.Choice: lambda node: (
        f"({expression(node.test)} ? {expression(node.a)} : {expression(node.b)})"
    ),
    ir.ListOf: _list_of,
    ir.Index: lambda node: f"{expression(node.list)}[{expression(node.at)}]",
    ir.Field: lambda node: FIELDS[node.name].format(expression(node.tensor)),
    ir.Text: _text,
    ir.Call: _call,
    ir.OperatorCall: _operator_call,
    ir.Default: lambda node: f"standard(Op::{node.operator}, {node.position})",
    ir.Comprehension: _comprehension,
    ir.PartCall: _part_call,
}


# ---- statements ----------------------------------------------------------------------------------
def _block(nodes: Sequence[ir.Statement], depth: int) -> list[str]:
    return [line for node in nodes for line in STATEMENTS[type(node)](node, depth)]


def _line(text: Callable[[Any], str]) -> Callable[[Any, int], list[str]]:
    """Return the printer of a statement of one line."""
    return lambda node, depth: ["  " * depth + text(node) + ";"]


def _assign(node: ir.Assign, depth: int) -> list[str]:
    if node.variable.type.kind in UNSETTLED:
        return []
    empty = isinstance(node.value, ir.ListOf) and not node.value.items
    value = "{}" if empty else expression(node.value)
    return [f"{'  ' * depth}{_name(node.variable)} = {value};"]


def _if(node: ir.If, depth: int) -> list[str]:
    indent = "  " * depth
    lines = [f"{indent}if ({expression(node.test)}) {{", *_block(node.body, depth + 1)]
    if node.orelse:
        lines += [f"{indent}}} else {{", *_block(node.orelse, depth + 1)]
    return [*lines, f"{indent}}}"]


def _while(node: ir.While, depth: int) -> list[str]:
    indent = "  " * depth
    head = f"{indent}while ({expression(node.test)}) {{"
    return [head, *_block(node.body, depth + 1), f"{indent}}}"]


def _for(node: ir.For, depth: int) -> list[str]:
    return [*_loop(node.head, depth), *_block(node.body, depth + 1), "  " * depth + "}"]


def _loop(head: ir.LoopHead, depth: int) -> list[str]:
    """Return the lines that open a loop and declare its variables."""
    indent = "  " * depth
    if isinstance(head, ir.Range):
        name, low, high = _name(head.variable), expression(head.low), expression(head.high)
        if head.backwards:
            return [f"{indent}for (int64_t {name} = {high} - 1; {name} >= {low}; {name}--) {{"]
        end = f"end_{name}"
        steps = f"int64_t {name} = {low}, {end} = {high}; {name} < {end}; {name}++"
        return [f"{indent}for ({steps}) {{"]
    lists = [expression(each) for each in head.lists]
    steps = f"int64_t {INDEX} = 0; {INDEX} < {lists[0]}.size(); {INDEX}++"
    if head.backwards:
        steps = f"int64_t {INDEX} = {lists[0]}.size() - 1; {INDEX} >= 0; {INDEX}--"
    lines = [f"{indent}for ({steps}) {{"]
    if head.counter is not None:
        lines.append(f"{indent}  int64_t {_name(head.counter)} = {INDEX};")
    for text, item in zip(lists, head.items, strict=True):
        if item is not None:
            kind = "plait_tensor *" if item.type.kind is Kind.TENSOR else f"{declared(item.type)} "
            lines.append(f"{indent}  {kind}{_name(item)} = {text}[{INDEX}];")
    return lines


def _fail(node: ir.Fail) -> str:
    failure = f"fail(x, {FAILURES[node.kind]}, {expression(node.message)})"
    return f"if (!({expression(node.condition)})) {failure}"


def _unpack(node: ir.Unpack) -> str:
    targets = ", ".join(f"&{_name(variable)}" for variable in node.variables)
    return f"{expression(node.call)}.into({{{targets}}})"


STATEMENTS: dict[type, Callable[[Any, int], list[str]]] = {
    ir.Assign: _assign,
    ir.AssignItem: _line(lambda node: f"{expression(node.item)} = {expression(node.value)}"),
    ir.Unpack: _line(_unpack),
    ir.Push: _line(lambda node: f"{_name(node.list)}.push({expression(node.value)})"),
    ir.Do: _line(lambda node: expression(node.call)),
    ir.Fail: _line(_fail),
    ir.If: _if,
    ir.While: _while,
    ir.For: _for,
    ir.Break: _line(lambda node: "break"),
    ir.Continue: _line(lambda node: "continue"),
    ir.Release: _line(lambda node: f"{_name(node.variable)} = Tensor()"),
    ir.Return: _line(
        lambda node: "return" if node.value is None else f"return {expression(node.value)}"
    ),
    ir.GiveCost: _line(lambda node: f"cost = {{{_list(node.counts)}}}"),
    ir.GiveGradient: _line(lambda node: f"gx[{node.position}] = {expression(node.value)}"),
    ir.GiveGradients: _line(lambda node: f"list = {expression(node.value)}"),
}


# ---- functions -----------------------------------------------------------------------------------
def _parameter(parameter: ir.Parameter) -> str:
    """Return the line that reads a parameter."""
    type_, value = parameter.variable.type, SOURCES[parameter.source].format(parameter.position)
    if type_.kind not in BY_VALUE and parameter.source is not ir.Source.GRADIENT:
        prefix = "maybe" if type_.optional and type_.kind not in NULLABLE else "as"
        value = f"{prefix}_{type_.kind.text}({value})"
    text = declared(type_)
    reference = "&" if type_.kind in BY_VALUE else ""
    const = "" if text.endswith("*") else "const "
    return f"  {const}{text} {reference}{_name(parameter.variable)} = {value};"


def _body(function: ir.Function) -> list[str]:
    """Return the lines that declare the variables, and the statements."""
    zero = (Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.STR, Kind.DTYPE)
    lines = []
    for each in function.locals:
        if each.type.kind not in UNSETTLED:
            initial = "{}" if each.type.kind in zero and not each.type.optional else ""
            lines.append(f"  {declared(each.type)} {_name(each)}{initial};")
    return lines + _block(function.body, 1)


def function(node: ir.Function) -> str:
    """Return the body of the C++ function: it reads the parameters that it uses."""
    used = {id(each.variable) for each in ir.walk(node.body) if isinstance(each, ir.Read)}
    read = [_parameter(each) for each in node.parameters if id(each.variable) in used]
    return "\n".join(read + _body(node))
