"""Expressions: from Python's syntax tree to the typed representation."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeGuard

from plait_ops import calls
from plait_ops.calls import Named
from plait_ops.lower import ir
from plait_ops.lower.conversions import BY_VALUE, NUMBERS, convert
from plait_ops.lower.source import Source
from plait_ops.schema import Argument
from plait_ops.spec import Operator, SpecError
from plait_ops.value_types import (
    BAG,
    BOOL,
    DEVICE,
    DTYPE,
    EMPTY,
    FLOAT,
    INT,
    INTS,
    LIST,
    NONE,
    OPERAND,
    OWNED,
    RESULTS,
    STR,
    TENSOR,
    TENSORS,
    Kind,
    Type,
)
from plait_ops.words import DType, Word

__all__ = ["BUILTINS", "FIELDS", "Context", "Expressions", "type_of"]

CONSTANTS: dict[type, Type] = {
    type(None): NONE,
    bool: BOOL,
    int: INT,
    float: FLOAT,
    str: STR,
    tuple: LIST,
}
ZERO, LAST = ir.Literal(0, INT), ir.Literal(2**63 - 1, INT)
ONE_TENSOR = (Kind.TENSOR, Kind.OWNED, Kind.OPERAND, Kind.HELD)
COMPUTED = (*ONE_TENSOR, Kind.SCALAR)  # types for which arithmetic is an operator call
ARITHMETIC = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
}
INTEGER_HELPERS = {  # Python's rounding, and an error where 64 bits are too few
    ast.Add: "plus",
    ast.Sub: "minus",
    ast.Mult: "times",
    ast.FloorDiv: "floor_div",
    ast.Mod: "floor_mod",
}
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
COMPARISON = {
    ast.Eq: ("==", "eq"),
    ast.NotEq: ("!=", "ne"),
    ast.Lt: ("<", "lt"),
    ast.LtE: ("<=", "le"),
    ast.Gt: (">", "gt"),
    ast.GtE: (">=", "ge"),
}
# The type of a conditional expression is the last of these that one of its branches has.
CHOICES = (
    Kind.BOOL,
    Kind.INT,
    Kind.FLOAT,
    Kind.STR,
    Kind.DTYPE,
    Kind.INTS,
    Kind.LIST,
    Kind.OPERAND,
    Kind.SCALAR,
    Kind.DEVICE,
)
FIELDS = {"shape": INTS, "strides": INTS, "ndim": INT, "dtype": DTYPE, "device": DEVICE}
ARGUMENTS = {
    "Tensor": Kind.TENSOR,
    "Tensor|Scalar": Kind.OPERAND,
    "Tensor[]": Kind.TENSORS,
    "Scalar": Kind.SCALAR,
    "int": Kind.INT,
    "float": Kind.FLOAT,
    "bool": Kind.BOOL,
    "str": Kind.STR,
    "dtype": Kind.DTYPE,
    "device": Kind.DEVICE,
    "int[]": Kind.INTS,
    "float[]": Kind.FLOATS,
    "Generator": Kind.GENERATOR,
}


def type_of(argument: Argument) -> Type:
    """Return the type of an argument of the schema in a spec's functions."""
    return Type(ARGUMENTS[argument.type], argument.optional)


def _is_list_of_tensors(type_: Type) -> bool:
    return type_ in (TENSORS, BAG)


Context = Literal["shape", "vjp", "jvp", "decompose", "cost"]
"""The kind of a function: shape, vjp, jvp, decompose or cost."""
WITHOUT_VALUES = {"shape": "a shape function", "cost": "a cost function"}


class Expressions:
    """Translates expressions; `Statements` adds variables and control flow."""

    def __init__(self, operator: Operator, context: Context, source: Source) -> None:
        self.operator, self.context, self.source = operator, context, source
        self.scope: dict[str, ir.Variable] = {}

    # ---- errors and conversions ------------------------------------------------------------------
    def error(self, node: ast.AST, reason: str) -> SpecError:
        line = self.source.first_line + getattr(node, "lineno", 1) - 1
        return SpecError(f"{self.source.path}:{line}: {self.operator.name}: {reason}")

    def refuse(self, node: ast.AST) -> SpecError:
        return self.error(node, f"`{ast.unparse(node)}` cannot be translated")

    def as_type(self, node: ast.expr, target: Type) -> ir.Expression:
        """Translate and convert."""
        return self.convert(node, self.expression(node), target)

    def convert(self, node: ast.AST, value: ir.Expression, target: Type) -> ir.Expression:
        """Convert, or fail with the line of ``node``."""
        conversion = convert(value, target)
        if conversion is None:
            raise self.error(node, f"`{ast.unparse(node)}` is {value.type}, {target} is required")
        return conversion

    # ---- names and constants ---------------------------------------------------------------------
    def expression(self, node: ast.expr) -> ir.Expression:
        """Translate an expression: there is a method for each kind of node."""
        handler = getattr(self, "on_" + type(node).__name__, None)
        if handler is None:
            raise self.refuse(node)
        value: ir.Expression = handler(node)
        return value

    def on_Constant(self, node: ast.Constant) -> ir.Expression:
        return self._constant(node, node.value)

    def _constant(self, node: ast.AST, value: Any) -> ir.Literal:
        if type(value) not in CONSTANTS:
            raise self.error(node, f"no C++ for the constant {value!r}")
        return ir.Literal(value, CONSTANTS[type(value)])

    def on_Name(self, node: ast.Name) -> ir.Expression:
        if node.id in self.scope:
            return ir.Read(self.scope[node.id])
        value = self.source.names.get(node.id)
        if isinstance(value, DType):
            return ir.DTypeName(node.id)
        if isinstance(value, (int, float)):
            return self._constant(node, value)
        raise self.error(
            node, f"`{node.id}` is neither a variable, an argument, a word nor an operator"
        )

    def on_List(self, node: ast.List | ast.Tuple) -> ir.Expression:
        values = [self.expression(item) for item in node.elts]
        if not values:
            return ir.ListOf((), EMPTY)
        bag = any(value.type.kind in (*ONE_TENSOR, Kind.NONE) for value in values)
        type_ = OWNED if bag else INT
        items = tuple(self.convert(node, value, type_) for value in values)
        return ir.ListOf(items, BAG if bag else LIST)

    on_Tuple = on_List

    # ---- arithmetic ------------------------------------------------------------------------------
    def on_UnaryOp(self, node: ast.UnaryOp) -> ir.Expression:
        value = self.expression(node.operand)
        if isinstance(node.op, ast.Not):
            return ir.Not(self.convert(node.operand, value, BOOL))
        if not isinstance(node.op, ast.USub):
            raise self.refuse(node)
        if value.type == INT and not isinstance(node.operand, ast.Constant):
            return ir.Call("minus", (ZERO, value), INT)
        if value.type.kind in NUMBERS and not value.type.optional:
            return ir.Arithmetic(None, "-", value, value.type)
        if value.type.kind in ONE_TENSOR:
            return self.tensor_call(node, "neg", [value])
        raise self.refuse(node)

    def on_BinOp(self, node: ast.BinOp) -> ir.Expression:
        left, right = self.expression(node.left), self.expression(node.right)
        kinds = (left.type.kind, right.type.kind)
        if any(kind in COMPUTED for kind in kinds):
            name = ARITHMETIC.get(type(node.op))
            if name is None:
                raise self.refuse(node)
            return self.tensor_call(node, name, [left, right])
        if kinds[0] in (Kind.LIST, Kind.INTS):
            return self._list_arithmetic(node, left, right)
        if not all(kind in NUMBERS for kind in kinds):
            raise self.refuse(node)
        real = Kind.FLOAT in kinds or isinstance(node.op, ast.Div)
        type_ = FLOAT if real else INT
        a = self.convert(node.left, left, type_)
        b = self.convert(node.right, right, type_)
        if real and isinstance(node.op, ast.Pow):
            return ir.Call("pow", (a, b), FLOAT)
        if not real and type(node.op) in INTEGER_HELPERS:
            return ir.Call(INTEGER_HELPERS[type(node.op)], (a, b), INT)
        if type(node.op) not in SIGNS:
            raise self.refuse(node)
        return ir.Arithmetic(a, SIGNS[type(node.op)], b, type_)

    def _list_arithmetic(
        self, node: ast.BinOp, left: ir.Expression, right: ir.Expression
    ) -> ir.Expression:
        a = self.convert(node.left, left, INTS)
        if isinstance(node.op, ast.Add):
            return ir.Call("concat", (a, self.convert(node.right, right, INTS)), LIST)
        if isinstance(node.op, ast.Mult):
            return ir.Call("repeat", (a, self.convert(node.right, right, INT)), LIST)
        raise self.refuse(node)

    # ---- truth -----------------------------------------------------------------------------------
    def on_BoolOp(self, node: ast.BoolOp) -> ir.Expression:
        sign = "&&" if isinstance(node.op, ast.And) else "||"
        return ir.Logic(sign, tuple(self.as_type(value, BOOL) for value in node.values))

    def on_Compare(self, node: ast.Compare) -> ir.Expression:
        parts, left = [], node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            parts.append(self._compare(node, left, op, right))
            left = right
        if len(parts) == 1:
            return parts[0]
        return ir.Logic("&&", tuple(self.convert(node, part, BOOL) for part in parts))

    def _compare(self, node: ast.Compare, a: ast.expr, op: ast.cmpop, b: ast.expr) -> ir.Expression:
        left = self.expression(a)
        if isinstance(op, (ast.Is, ast.IsNot)):
            if not (isinstance(b, ast.Constant) and b.value is None):
                raise self.error(node, "`is` is for None only")
            return ir.IsNone(left) if isinstance(op, ast.Is) else ir.Not(ir.IsNone(left))
        if isinstance(op, (ast.In, ast.NotIn)):
            contained = self._contains(node, left, b)
            return contained if isinstance(op, ast.In) else ir.Not(contained)
        right = self.expression(b)
        sign, name = COMPARISON[type(op)]
        types = (left.type, right.type)
        if any(each.kind in COMPUTED and not each.optional for each in types):
            return self.tensor_call(node, name, [left, right])
        if all(each.kind in NUMBERS and each != BOOL.or_none for each in types):
            type_ = FLOAT if Kind.FLOAT in (left.type.kind, right.type.kind) else INT
            x, y = self.convert(a, left, type_), self.convert(b, right, type_)
            return ir.Arithmetic(x, sign, y, BOOL)
        for type_ in (STR, INTS, DTYPE):
            first, second = convert(left, type_), convert(right, type_)
            if sign in ("==", "!=") and first is not None and second is not None:
                same = ir.Call("equal", (first, second), BOOL)
                return same if sign == "==" else ir.Not(same)
        raise self.refuse(node)

    def _contains(self, node: ast.AST, left: ir.Expression, b: ast.expr) -> ir.Expression:
        if left.type in (STR, DTYPE) and isinstance(b, (ast.Tuple, ast.List)):
            items = (self.as_type(item, left.type) for item in b.elts)
            return ir.Logic("||", tuple(ir.Call("equal", (left, item), BOOL) for item in items))
        items_of, value = self.as_type(b, INTS), self.convert(node, left, INT)
        return ir.Call("contains", (items_of, value), BOOL)

    def on_IfExp(self, node: ast.IfExp) -> ir.Expression:
        a, b = self.expression(node.body), self.expression(node.orelse)
        either = {a.type.kind, b.type.kind}
        if either & {Kind.TENSOR, Kind.OWNED, Kind.HELD}:
            kinds = [Kind.OWNED]
        else:
            kinds = [kind for kind in reversed(CHOICES) if kind in either]
        for kind in kinds:
            x, y = convert(a, Type(kind)), convert(b, Type(kind))
            if x is not None and y is not None:
                return ir.Choice(self.as_type(node.test, BOOL), x, y)
        raise self.error(node, f"the branches are {a.type} and {b.type}")

    # ---- parts of values -------------------------------------------------------------------------
    def on_Attribute(self, node: ast.Attribute) -> ir.Expression:
        value = self.expression(node.value)
        tensor = convert(value, TENSOR)
        if tensor is None or value.type.kind is Kind.NONE or node.attr not in FIELDS:
            raise self.refuse(node)
        return ir.Field(tensor, node.attr, FIELDS[node.attr])

    def on_Subscript(self, node: ast.Subscript) -> ir.Expression:
        value = self.expression(node.value)
        if _is_list_of_tensors(value.type):
            return ir.Index(value, self.as_type(node.slice, INT), TENSOR)
        if value.type != LIST:
            value = self.convert(node.value, value, INTS)
        if not isinstance(node.slice, ast.Slice):
            return ir.Index(value, self.as_type(node.slice, INT), INT)
        lower, upper, step = node.slice.lower, node.slice.upper, node.slice.step
        if step is not None:
            if ast.unparse(node.slice) != "::-1":
                raise self.refuse(node)
            return ir.Call("backwards", (value,), LIST)
        low = self.as_type(lower, INT) if lower else ZERO
        high = self.as_type(upper, INT) if upper else LAST
        return ir.Call("part", (value, low, high), LIST)

    def on_JoinedStr(self, node: ast.JoinedStr) -> ir.Expression:
        pieces: list[ir.Expression] = []
        for value in node.values:
            if isinstance(value, ast.Constant):
                pieces.append(self._constant(value, value.value))
            elif isinstance(value, ast.FormattedValue) and value.format_spec is None:
                item = self.expression(value.value)
                pieces.append(self.convert(value.value, item, item.type.base))
            else:
                raise self.refuse(node)
        return ir.Text(tuple(pieces))

    # ---- calls -----------------------------------------------------------------------------------
    def on_Call(self, node: ast.Call) -> ir.Expression:
        name, target = self.called(node)
        if isinstance(target, Named):
            try:
                operator, in_place = target.operator, target.in_place
            except SpecError as why:
                raise self.error(node, str(why)) from None
            return self.operator_call(node, operator, in_place)
        if isinstance(target, Operator):
            return self.operator_call(node, target)
        word = self.called_word(node)
        if word is not None:
            return self.word_call(node, word)
        if target is not None and hasattr(target, "__part__"):
            return self.part_call(node, target)
        if target is None and name in BUILTINS:
            return BUILTINS[name](self, node)
        raise self.error(node, f"`{name}` is neither a word nor an operator")

    def called(self, node: ast.Call) -> tuple[str, Any]:
        """Return the name of the function that is called, and what the name stands for."""
        if self.is_operator(node.func):
            return node.func.attr, Named(node.func.attr)
        if not isinstance(node.func, ast.Name):
            raise self.refuse(node)
        return node.func.id, self.source.names.get(node.func.id)

    def is_operator(self, node: ast.expr) -> TypeGuard[ast.Attribute]:
        """Return whether the node is an attribute of `plait_ops.calls`: an operator's name."""
        module = node.value if isinstance(node, ast.Attribute) else None
        if not isinstance(module, ast.Name) or module.id in self.scope:
            return False
        return self.source.names.get(module.id) is calls

    def called_word(self, node: ast.expr) -> Word | None:
        """Return the word that is called, or None if the node is not a call of a word."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            return None
        return getattr(self.source.names.get(node.func.id), "__word__", None)

    def word_call(self, node: ast.Call, word: Word) -> ir.Expression:
        """Translate a call of a word in an expression."""
        if any(each.type.kind is Kind.TEXT for each in word.parameters):
            raise self.error(node, f"`{word.name}` is a statement")
        if word.makes_result:
            raise self.error(node, f"`{word.name}` is for what a shape function returns")
        if self.context == "cost" and word.on_call:
            raise self.error(node, f"`{word.name}` may fail, which a cost function cannot")
        type_ = OWNED if word.result == TENSOR else word.result
        arguments = self.word_arguments(node, word)
        return ir.Call(word.name, arguments, type_, word.on_call, word.reads_values)

    def word_arguments(self, node: ast.Call, word: Word) -> tuple[ir.Expression, ...]:
        """Translate the arguments of a word; omitted ones take their defaults."""
        parameters = word.parameters
        left_out = parameters[len(node.args) :]
        if (
            node.keywords
            or len(node.args) > len(parameters)
            or any(each.default is inspect.Parameter.empty for each in left_out)
        ):
            types = ", ".join(str(each.type) for each in parameters)
            raise self.error(node, f"`{word.name}` takes ({types})")
        arguments = [
            self._argument_position(arg)
            if each.type.kind is Kind.ARGUMENT
            else self.as_type(arg, each.type)
            for arg, each in zip(node.args, parameters, strict=False)
        ]
        return (*arguments, *(self._constant(node, each.default) for each in left_out))

    def _argument_position(self, node: ast.expr) -> ir.Expression:
        """Translate the name of an argument of the schema."""
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            raise self.refuse(node)
        return ir.Position(self.operator.schema.position(node.value))

    def part_call(self, node: ast.Call, function: Callable[..., Any]) -> ir.Expression:
        raise NotImplementedError("`Statements` knows what a body is")

    # ---- calls of operators ----------------------------------------------------------------------
    def tensor_call(self, node: ast.AST, name: str, values: list[ir.Expression]) -> ir.Expression:
        """Tensor arithmetic: the operator called ``name``."""
        if self.context in WITHOUT_VALUES:
            raise self.error(node, f"{WITHOUT_VALUES[self.context]} sees no values of tensors")
        arguments = tuple(self.convert(node, value, OPERAND) for value in values)
        return ir.OperatorCall(name, ir.Form.ONE, arguments, OWNED)

    def operator_call(
        self, node: ast.Call, operator: Operator, in_place: bool = False
    ) -> ir.Expression:
        """Translate the call of an operator; omitted arguments take their defaults."""
        if self.context in WITHOUT_VALUES:
            raise self.error(node, f"{WITHOUT_VALUES[self.context]} calls no operators")
        bound = self._bound(node, operator)
        arguments = operator.schema.arguments
        last = max((i for i, each in enumerate(arguments) if each.name in bound), default=-1)
        values: list[ir.Expression] = []
        for i, argument in enumerate(arguments):
            if argument.name in bound:
                values.append(self._operator_argument(bound[argument.name], type_of(argument)))
            elif not argument.has_default:
                raise self.error(node, f"`{argument.name}` of `{operator.schema.text}` is missing")
            elif i < last:
                values.append(ir.Default(operator.identifier, i))
        results = operator.schema.results
        if len(results) > 1:
            form, type_ = ir.Form.SEVERAL, RESULTS
        elif results and results[0].type == "Tensor[]":
            form, type_ = ir.Form.LIST, BAG
        else:
            form, type_ = (ir.Form.IN_PLACE if in_place else ir.Form.ONE), OWNED
        return ir.OperatorCall(operator.identifier, form, tuple(values), type_, len(results))

    def _bound(self, node: ast.Call, operator: Operator) -> dict[str, ast.expr]:
        """Return the arguments of a call by name."""
        arguments = operator.schema.arguments
        starred = any(isinstance(arg, ast.Starred) for arg in node.args)
        if starred or any(keyword.arg is None for keyword in node.keywords):
            raise self.refuse(node)
        if len(node.args) > len([each for each in arguments if not each.keyword_only]):
            raise self.error(node, f"too many arguments for `{operator.schema.text}`")
        bound = {each.name: arg for each, arg in zip(arguments, node.args, strict=False)}
        for keyword in node.keywords:
            operator.schema.argument(str(keyword.arg))
            bound[str(keyword.arg)] = keyword.value
        return bound

    def _operator_argument(self, node: ast.expr, type_: Type) -> ir.Expression:
        """Translate an argument of an operator call; None is passed on."""
        value, base = self.expression(node), type_.base
        if isinstance(node, ast.Constant) and node.value is None:
            return ir.Argument(value)
        if value.type == base.or_none and base.kind not in (*BY_VALUE, *ONE_TENSOR):
            return ir.Argument(value)
        return ir.Argument(self.convert(node, value, OPERAND if base == TENSOR else base))

    # ---- what Python has without import ----------------------------------------------------------
    def call_len(self, node: ast.Call) -> ir.Expression:
        """``len(list) -> int``: the number of items of a list of integers or tensors."""
        value = self.expression(node.args[0])
        type_ = TENSORS if _is_list_of_tensors(value.type) else INTS
        return ir.Call("size", (self.convert(node, value, type_),), INT)

    def call_list(self, node: ast.Call) -> ir.Expression:
        """``list(ints) -> list``: a mutable copy."""
        return ir.Convert(self.as_type(node.args[0], INTS), LIST)

    def call_tuple(self, node: ast.Call) -> ir.Expression:
        """``tuple(ints) -> ints``: the same integers, immutable."""
        return self.as_type(node.args[0], INTS)

    def call_sorted(self, node: ast.Call) -> ir.Expression:
        """``sorted(ints) -> list``: the integers in ascending order."""
        return ir.Call("sorted", (self.as_type(node.args[0], INTS),), LIST)

    def call_int(self, node: ast.Call) -> ir.Expression:
        """``int(number) -> int``: the number without its fraction."""
        value = self.expression(node.args[0])
        return ir.Cast(self.convert(node, value, value.type.base), INT)

    def call_float(self, node: ast.Call) -> ir.Expression:
        """``float(number) -> float``."""
        return self.as_type(node.args[0], FLOAT)

    def call_abs(self, node: ast.Call) -> ir.Expression:
        """``abs(int) -> int``."""
        return ir.Call("abs", (self.as_type(node.args[0], INT),), INT)

    def call_min(self, node: ast.Call) -> ir.Expression:
        """``min(a, b)``: the smaller of two numbers; a float if one of them is."""
        return self._extreme(node, "min")

    def call_max(self, node: ast.Call) -> ir.Expression:
        """``max(a, b)``: the larger of two numbers; a float if one of them is."""
        return self._extreme(node, "max")

    def _extreme(self, node: ast.Call, name: str) -> ir.Expression:
        values = [self.expression(arg) for arg in node.args]
        if len(values) != 2:
            raise self.refuse(node)
        type_ = FLOAT if any(value.type.kind is Kind.FLOAT for value in values) else INT
        return ir.Call(name, tuple(self.convert(node, each, type_) for each in values), type_)


BUILTINS: dict[str, Callable[[Expressions, ast.Call], ir.Expression]] = {
    "abs": Expressions.call_abs,
    "float": Expressions.call_float,
    "int": Expressions.call_int,
    "len": Expressions.call_len,
    "list": Expressions.call_list,
    "max": Expressions.call_max,
    "min": Expressions.call_min,
    "sorted": Expressions.call_sorted,
    "tuple": Expressions.call_tuple,
}
"""Functions of Python itself that specs may call; loops know range, reversed, enumerate, zip."""
