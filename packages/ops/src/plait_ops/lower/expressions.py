"""Expressions: from a Python AST node to a C++ expression with a type."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from plait_ops.calls import Named
from plait_ops.lower.types import Typed, coerce, literal, type_of
from plait_ops.spec import Operator, SpecError
from plait_ops.words import DType

__all__ = ["Expressions"]

TENSORS = ("tensor", "owned", "tensor?", "operand", "operand?", "held")
NUMBERS = ("int", "float", "bool")
ARITHMETIC = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
}
COMPARISON = {
    ast.Eq: ("==", "eq"),
    ast.NotEq: ("!=", "ne"),
    ast.Lt: ("<", "lt"),
    ast.LtE: ("<=", "le"),
    ast.Gt: (">", "gt"),
    ast.GtE: (">=", "ge"),
}
KINDS = {
    "ShapeError": "PLAIT_SHAPE_ERROR",
    "DTypeError": "PLAIT_DTYPE_ERROR",
    "ValueError": "PLAIT_VALUE_ERROR",
    "IndexError": "PLAIT_INDEX_ERROR",
    "TypeError": "PLAIT_TYPE_ERROR",
    "NotImplementedError": "PLAIT_NOT_IMPLEMENTED",
    "RuntimeError": "PLAIT_ERROR",
}


class Expressions:
    """Translates expressions; `Statements` adds variables and control flow."""

    context: str
    globals: dict[str, Any]

    def __init__(self, operator: Operator, path: str, first_line: int) -> None:
        self.operator, self.path, self.first_line = operator, path, first_line
        self.variables: dict[str, str] = {}

    # ---- errors and coercion ---------------------------------------------------------------------
    def error(self, node: ast.AST, why: str) -> SpecError:
        line = self.first_line + getattr(node, "lineno", 1) - 1
        return SpecError(f"{self.path}:{line}: {self.operator.name}: {why}")

    def refuse(self, node: ast.AST) -> SpecError:
        return self.error(node, f"`{ast.unparse(node)}` cannot be translated")

    def as_type(self, node: ast.expr, wanted: str) -> str:
        """Translate and coerce."""
        return self.coerced(node, self.expression(node), wanted)

    def coerced(self, node: ast.AST, value: Typed, wanted: str) -> str:
        code = coerce(value, wanted)
        if code is None:
            raise self.error(node, f"`{ast.unparse(node)}` is {value.type}, {wanted} is required")
        return code

    # ---- the switch ------------------------------------------------------------------------------
    def expression(self, node: ast.expr) -> Typed:
        handler: Callable[[Any], Typed] | None = getattr(self, "on_" + type(node).__name__, None)
        if handler is None:
            raise self.refuse(node)
        return handler(node)

    def on_Constant(self, node: ast.Constant) -> Typed:
        try:
            return literal(node.value)
        except TypeError as why:
            raise self.error(node, str(why)) from None

    def on_Name(self, node: ast.Name) -> Typed:
        if node.id in self.variables:
            return Typed(node.id + "_", self.variables[node.id])
        value = self.globals.get(node.id)
        if isinstance(value, DType):
            return Typed(f"dtype::{node.id}", "dtype")
        if isinstance(value, (int, float)):
            return literal(value)
        raise self.error(
            node, f"`{node.id}` is neither a variable, an argument, a word nor an operator"
        )

    def on_List(self, node: ast.List | ast.Tuple) -> Typed:
        values = [self.expression(item) for item in node.elts]
        if any(value.type in TENSORS or value.type in ("none",) for value in values):
            items = ", ".join(self.coerced(node, value, "owned") for value in values)
            return Typed(f"Bag({{{items}}})", "bag")
        items = ", ".join(self.coerced(node, value, "int") for value in values)
        return Typed(f"Dims{{{items}}}" if items else "Dims()", "list" if values else "empty")

    on_Tuple = on_List

    def on_UnaryOp(self, node: ast.UnaryOp) -> Typed:
        value = self.expression(node.operand)
        if isinstance(node.op, ast.Not):
            return Typed(f"!({self.coerced(node.operand, value, 'bool')})", "bool")
        constant = isinstance(node.operand, ast.Constant)
        if isinstance(node.op, ast.USub) and value.type == "int" and not constant:
            return Typed(f"minus(0, {value.code})", "int")
        if isinstance(node.op, ast.USub) and value.type in NUMBERS:
            return Typed(f"(-{value.code})", value.type)
        if isinstance(node.op, ast.USub) and value.type in TENSORS:
            return self.tensor_call(node, "neg", [value])
        raise self.refuse(node)

    def on_BinOp(self, node: ast.BinOp) -> Typed:
        left, right = self.expression(node.left), self.expression(node.right)
        types = (left.type.rstrip("?"), right.type.rstrip("?"))
        if any(t in ("tensor", "owned", "operand", "scalar", "held") for t in types):
            name = ARITHMETIC.get(type(node.op))
            if name is None:
                raise self.refuse(node)
            return self.tensor_call(node, name, [left, right])
        if types[0] in ("list", "ints"):
            return self._list_arithmetic(node, left, right)
        if not all(t in NUMBERS for t in types):
            raise self.refuse(node)
        wanted = "float" if "float" in types or isinstance(node.op, ast.Div) else "int"
        a, b = self.coerced(node.left, left, wanted), self.coerced(node.right, right, wanted)
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and wanted == "int":
            return Typed(
                f"{'floor_div' if isinstance(node.op, ast.FloorDiv) else 'floor_mod'}({a}, {b})",
                "int",
            )
        if isinstance(node.op, ast.Pow) and wanted == "float":
            return Typed(f"std::pow({a}, {b})", "float")
        name = {ast.Add: "plus", ast.Sub: "minus", ast.Mult: "times"}.get(type(node.op))
        if name is not None and wanted == "int":
            return Typed(f"{name}({a}, {b})", "int")
        sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}.get(type(node.op))
        if sign is None:
            raise self.refuse(node)
        return Typed(f"({a} {sign} {b})", wanted)

    def _list_arithmetic(self, node: ast.BinOp, left: Typed, right: Typed) -> Typed:
        a = self.coerced(node.left, left, "ints")
        if isinstance(node.op, ast.Add):
            return Typed(f"concat({a}, {self.coerced(node.right, right, 'ints')})", "list")
        if isinstance(node.op, ast.Mult):
            return Typed(f"repeat({a}, {self.coerced(node.right, right, 'int')})", "list")
        raise self.refuse(node)

    def on_BoolOp(self, node: ast.BoolOp) -> Typed:
        sign = " && " if isinstance(node.op, ast.And) else " || "
        return Typed(
            "(" + sign.join(self.as_type(value, "bool") for value in node.values) + ")", "bool"
        )

    def on_Compare(self, node: ast.Compare) -> Typed:
        parts, left = [], node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            parts.append(self._compare(node, left, op, right))
            left = right
        if len(parts) == 1:
            return parts[0]
        return Typed(
            "(" + " && ".join(self.coerced(node, part, "bool") for part in parts) + ")", "bool"
        )

    def _compare(self, node: ast.Compare, a: ast.expr, op: ast.cmpop, b: ast.expr) -> Typed:
        left = self.expression(a)
        if isinstance(op, (ast.Is, ast.IsNot)):
            if not (isinstance(b, ast.Constant) and b.value is None):
                raise self.error(node, "`is` is for None only")
            return Typed(
                ("is_none(" if isinstance(op, ast.Is) else "!is_none(") + left.code + ")", "bool"
            )
        if isinstance(op, (ast.In, ast.NotIn)):
            code = self._contains(node, left, b)
            return Typed(code if isinstance(op, ast.In) else f"!{code}", "bool")
        right = self.expression(b)
        sign, name = COMPARISON[type(op)]
        types = {left.type, right.type}
        if types & {"tensor", "owned", "operand", "scalar", "held"}:
            return self.tensor_call(node, name, [left, right])
        if types <= set(NUMBERS) | {"int?", "float?"}:
            wanted = "float" if types & {"float", "float?"} else "int"
            return Typed(
                f"({self.coerced(a, left, wanted)} {sign} {self.coerced(b, right, wanted)})", "bool"
            )
        for kind in ("str", "ints", "dtype"):
            if (
                sign in ("==", "!=")
                and coerce(left, kind) is not None
                and coerce(right, kind) is not None
            ):
                negate = "" if sign == "==" else "!"
                return Typed(f"{negate}equal({coerce(left, kind)}, {coerce(right, kind)})", "bool")
        raise self.refuse(node)

    def _contains(self, node: ast.AST, left: Typed, b: ast.expr) -> str:
        if left.type in ("str", "dtype") and isinstance(b, (ast.Tuple, ast.List)):
            tests = [f"equal({left.code}, {self.as_type(item, left.type)})" for item in b.elts]
            return "(" + " || ".join(tests) + ")"
        return f"contains({self.as_type(b, 'ints')}, {self.coerced(node, left, 'int')})"

    def on_IfExp(self, node: ast.IfExp) -> Typed:
        a, b = self.expression(node.body), self.expression(node.orelse)
        order = (
            "bool",
            "int",
            "float",
            "str",
            "dtype",
            "ints",
            "list",
            "operand",
            "scalar",
            "device",
        )
        owned = ("tensor", "owned", "tensor?", "held")
        if a.type in owned or b.type in owned:
            kinds: tuple[str, ...] = ("owned",)
        else:
            kinds = tuple(
                kind for kind in order if kind in (a.type.rstrip("?"), b.type.rstrip("?"))
            )
        for kind in (
            "list" if set(kinds) == {"ints", "list"} else kind for kind in reversed(kinds)
        ):
            x, y = coerce(a, kind), coerce(b, kind)
            if x is not None and y is not None:
                return Typed(f"({self.as_type(node.test, 'bool')} ? {x} : {y})", kind)
        raise self.error(node, f"the branches are {a.type} and {b.type}")

    def on_Attribute(self, node: ast.Attribute) -> Typed:
        value = self.expression(node.value)
        code = coerce(value, "tensor")
        if code is None or value.type == "none":
            raise self.refuse(node)
        known = {
            "shape": ("shape_of({})", "ints"),
            "strides": ("strides_of({})", "ints"),
            "ndim": ("int64_t(({})->dl.ndim)", "int"),
            "dtype": ("({})->dl.dtype", "dtype"),
            "device": ("value(({})->dl.device)", "device"),
        }
        if node.attr not in known:
            raise self.refuse(node)
        template, kind = known[node.attr]
        return Typed(template.format(code), kind)

    def on_Subscript(self, node: ast.Subscript) -> Typed:
        value = self.expression(node.value)
        if value.type in ("tensors", "bag"):
            return Typed(f"{value.code}[{self.as_type(node.slice, 'int')}]", "tensor")
        code = self.coerced(node.value, value, value.type if value.type == "list" else "ints")
        if not isinstance(node.slice, ast.Slice):
            return Typed(f"{code}[{self.as_type(node.slice, 'int')}]", "int")
        if node.slice.step is not None:
            if ast.unparse(node.slice) == "::-1":
                return Typed(f"backwards({code})", "list")
            raise self.refuse(node)
        low = self.as_type(node.slice.lower, "int") if node.slice.lower else "0"
        high = self.as_type(node.slice.upper, "int") if node.slice.upper else "INT64_MAX"
        return Typed(f"part({code}, {low}, {high})", "list")

    def on_JoinedStr(self, node: ast.JoinedStr) -> Typed:
        pieces = ["std::string()"]
        for value in node.values:
            if isinstance(value, ast.Constant):
                pieces.append(literal(value.value).code)
            elif isinstance(value, ast.FormattedValue) and value.format_spec is None:
                item = self.expression(value.value)
                pieces.append(f"show({self.coerced(value.value, item, item.type.rstrip('?'))})")
            else:
                raise self.refuse(node)
        return Typed(" + ".join(pieces), "text")

    def on_ListComp(self, node: ast.ListComp) -> Typed:
        raise self.refuse(node)  # Statements knows loops

    # ---- calls -----------------------------------------------------------------------------------
    def on_Call(self, node: ast.Call) -> Typed:
        if not isinstance(node.func, ast.Name):
            raise self.refuse(node)
        name = node.func.id
        target = self.globals.get(name)
        in_place = False
        named = target
        if isinstance(named, Named):
            try:
                target, in_place = named.operator, named.in_place
            except SpecError as why:
                raise self.error(node, str(why)) from None
        if isinstance(target, Operator):
            return self.operator_call(node, target, in_place)
        if target is not None and hasattr(target, "__word__"):
            return self.word_call(node, target.__name__, str(target.__word__))
        if target is not None and hasattr(target, "__part__"):
            return self.part_call(node, target)
        builtin = getattr(self, "call_" + name, None)
        if target is None and builtin is not None:
            made: Typed = builtin(node)
            return made
        raise self.error(node, f"`{name}` is neither a word nor an operator")

    def part_call(self, node: ast.Call, function: Callable[..., Any]) -> Typed:
        raise self.refuse(node)  # Statements knows variables

    def word_call(self, node: ast.Call, name: str, signature: str) -> Typed:
        if name == "check":
            raise self.error(node, "`check` is a statement")
        if signature.startswith("@result"):
            raise self.error(node, f"`{name}` is for what a shape function returns")
        arguments, _, kind = signature.partition(" -> ")
        on_call, types = arguments.startswith("@"), arguments.removeprefix("@").split()
        if node.keywords or len(node.args) != len(types):
            raise self.error(node, f"`{name}` takes ({', '.join(types)})")
        codes = [self.as_type(arg, wanted) for arg, wanted in zip(node.args, types, strict=True)]
        made = "owned" if kind == "tensor" else kind
        return Typed(f"{name}({', '.join((['x'] if on_call else []) + codes)})", made)

    def tensor_call(self, node: ast.AST, name: str, values: list[Typed]) -> Typed:
        """Tensor arithmetic: the operator called ``name``."""
        if self.context == "shape":
            raise self.error(node, "a shape function sees no values of tensors")
        codes = [self.coerced(node, value, "operand") for value in values]
        return Typed(f"run(x, Op::{name}, {{{', '.join(codes)}}})", "owned")

    def operator_call(self, node: ast.Call, operator: Operator, in_place: bool = False) -> Typed:
        if self.context == "shape":
            raise self.error(node, "a shape function calls no operators")
        given: dict[str, ast.expr] = {}
        arguments = operator.schema.arguments
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(
            k.arg is None for k in node.keywords
        ):
            raise self.refuse(node)
        for argument, value in zip(arguments, node.args, strict=False):
            given[argument.name] = value
        if len(node.args) > len([a for a in arguments if not a.keyword_only]):
            raise self.error(node, f"too many arguments for `{operator.schema.text}`")
        for keyword in node.keywords:
            operator.schema.argument(str(keyword.arg))
            given[str(keyword.arg)] = keyword.value
        last = max((i for i, a in enumerate(arguments) if a.name in given), default=-1)
        codes = []
        for i, argument in enumerate(arguments):
            if argument.name in given:
                codes.append(self._argument(given[argument.name], type_of(argument)))
            elif not argument.has_default:
                raise self.error(node, f"`{argument.name}` of `{operator.schema.text}` is missing")
            elif i < last:
                codes.append(f"standard(Op::{operator.identifier}, {i})")
        results = operator.schema.results
        call = f"(x, Op::{operator.identifier}, {{{', '.join(codes)}}})"
        if len(results) > 1:
            return Typed(f"run_all{call}", f"results{len(results)}")
        if results and results[0].type == "Tensor[]":
            return Typed(f"run_list{call}", "bag")
        return Typed(f"{'run_in_place' if in_place else 'run'}{call}", "owned")

    def _argument(self, node: ast.expr, wanted: str) -> str:
        """Translate an argument of an operator call into a plait_value."""
        if isinstance(node, ast.Constant) and node.value is None:
            return "none()"
        base = wanted.removesuffix("?")
        value = self.expression(node)
        if value.type == base + "?" and base in ("int", "float", "dtype", "ints", "str"):
            return f"value_or_none({value.code})"
        if base in ("tensor", "operand", "scalar", "device", "generator"):
            return self.coerced(node, value, "operand" if base == "tensor" else base)
        if base == "ints":
            return f"ints_value({self.coerced(node, value, 'ints')})"
        if base == "tensors":
            return f"tensors_value({self.coerced(node, value, 'tensors')})"
        code = self.coerced(node, value, base)
        return f"value(int64_t({code}))" if base == "int" else f"value({code})"

    # ---- builtins --------------------------------------------------------------------------------
    def call_len(self, node: ast.Call) -> Typed:
        value = self.expression(node.args[0])
        wanted = "tensors" if value.type in ("tensors", "bag") else "ints"
        return Typed(f"{self.coerced(node, value, wanted)}.size()", "int")

    def call_list(self, node: ast.Call) -> Typed:
        return Typed(f"Dims({self.as_type(node.args[0], 'ints')})", "list")

    def call_tuple(self, node: ast.Call) -> Typed:
        return Typed(self.as_type(node.args[0], "ints"), "ints")

    def call_sorted(self, node: ast.Call) -> Typed:
        return Typed(f"sorted({self.as_type(node.args[0], 'ints')})", "list")

    def call_int(self, node: ast.Call) -> Typed:
        value = self.expression(node.args[0])
        return Typed(f"int64_t({self.coerced(node, value, value.type.rstrip('?'))})", "int")

    def call_float(self, node: ast.Call) -> Typed:
        return Typed(self.as_type(node.args[0], "float"), "float")

    def call_abs(self, node: ast.Call) -> Typed:
        return Typed(f"std::abs({self.as_type(node.args[0], 'int')})", "int")

    def _extreme(self, node: ast.Call, name: str) -> Typed:
        types = [self.expression(arg).type.rstrip("?") for arg in node.args]
        kind = "float" if "float" in types else "int"
        cpp = "double" if kind == "float" else "int64_t"
        a, b = (self.as_type(arg, kind) for arg in node.args)
        return Typed(f"std::{name}<{cpp}>({a}, {b})", kind)

    def call_min(self, node: ast.Call) -> Typed:
        return self._extreme(node, "min")

    def call_max(self, node: ast.Call) -> Typed:
        return self._extreme(node, "max")
