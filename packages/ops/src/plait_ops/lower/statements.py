"""Statements: variables, conditions, loops, and what the three kinds of function return."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from plait_ops.lower.expressions import KINDS, Expressions
from plait_ops.lower.source import definition, visible
from plait_ops.lower.types import CPP, Typed, coerce, declared
from plait_ops.spec import Operator

__all__ = ["Statements"]

EMPTY = "//empty "
OWNED = {"ints": "list", "tensor": "owned", "tensor?": "owned", "tensors": "bag"}


class Statements(Expressions):
    """Translates one function body; `context` is shape, vjp or decompose."""

    def __init__(
        self, operator: Operator, context: str, path: str, first_line: int, names: dict[str, Any]
    ) -> None:
        super().__init__(operator, path, first_line)
        self.context, self.globals = context, names
        self.lines: list[str] = []
        self.locals: dict[str, str] = {}
        self.inputs: tuple[str, ...] = ()
        self.depth = 1

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def settle(self) -> None:
        """Turn the marks of empty lists into assignments."""
        lines = []
        for line in self.lines:
            before, mark, name = line.partition(EMPTY)
            if not mark:
                lines.append(line)
            elif self.locals[name] not in ("empty", "made"):
                lines.append(f"{before}{name}_ = {{}};")
        self.lines = lines

    def declarations(self) -> list[str]:
        """Return the lines that declare the variables."""
        lines = []
        for name, kind in self.locals.items():
            if kind not in ("empty", "made"):
                initial = "{}" if kind in ("int", "float", "bool", "str", "dtype") else ""
                lines.append(f"  {declared(kind)} {name}_{initial};")
        return lines

    def body(self, statements: list[ast.stmt]) -> None:
        for node in statements:
            handler = getattr(self, "on_" + type(node).__name__, None)
            if handler is None:
                raise self.refuse(node)
            handler(node)

    def block(self, statements: list[ast.stmt]) -> None:
        self.depth += 1
        self.body(statements)
        self.depth -= 1

    # ---- variables -------------------------------------------------------------------------------
    def assign(self, node: ast.AST, name: str, value: Typed) -> None:
        kind = OWNED.get(value.type, value.type)
        have = self.variables.get(name)
        if have is None or (have == "empty" and kind != "empty"):
            if kind in ("text", "none", "made"):
                raise self.error(node, f"`{name}` cannot hold {kind}")
            self.variables[name] = self.locals[name] = have = kind
        if have == "empty" or (kind == "empty" and have == "made"):
            self.emit(
                f"{EMPTY}{name}"
            )  # becomes an assignment once it is known what the list holds
            return
        if kind == "empty":
            value = Typed("{}", have)
        if name not in self.locals:
            raise self.error(node, f"the argument `{name}` cannot be assigned; use another name")
        self.emit(f"{name}_ = {self.coerced(node, value, have)};")

    def on_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.refuse(node)
        target = node.targets[0]
        if isinstance(target, ast.Name):
            self.assign(node, target.id, self.expression(node.value))
        elif isinstance(target, ast.Subscript):
            place = self.expression(target)
            if place.type != "int":
                raise self.refuse(node)
            self.emit(f"{place.code} = {self.as_type(node.value, 'int')};")
        elif isinstance(target, ast.Tuple):
            self._unpack(node, list(target.elts), node.value)
        else:
            raise self.refuse(node)

    def _unpack(self, node: ast.Assign, targets: list[ast.expr], value: ast.expr) -> None:
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if len(names) != len(targets):
            raise self.refuse(node)
        if isinstance(value, ast.Tuple) and len(value.elts) == len(names):
            for name, item in zip(names, value.elts, strict=True):
                self.assign(node, name, self.expression(item))
            return
        made = self.expression(value)
        if made.type == f"results{len(names)}":
            for name in names:
                self.variables[name] = self.locals[name] = "owned"
            self.emit(f"{made.code}.into({{{', '.join(f'&{name}_' for name in names)}}});")
        elif coerce(made, "ints") is not None:
            for i, name in enumerate(names):
                self.assign(node, name, Typed(f"{self.coerced(value, made, 'ints')}[{i}]", "int"))
        else:
            raise self.refuse(node)

    def on_AugAssign(self, node: ast.AugAssign) -> None:
        source = ast.copy_location(ast.BinOp(_read(node.target), node.op, node.value), node)
        self.on_Assign(ast.copy_location(ast.Assign([node.target], source), node))

    def on_AnnAssign(self, node: ast.AnnAssign) -> None:
        """``out: list[int] = []`` is read like ``out = []``."""
        if node.value is None:
            raise self.refuse(node)
        self.on_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    # ---- control flow ----------------------------------------------------------------------------
    def on_If(self, node: ast.If) -> None:
        self.emit(f"if ({self.as_type(node.test, 'bool')}) {{")
        self.block(node.body)
        if node.orelse:
            self.emit("} else {")
            self.block(node.orelse)
        self.emit("}")

    def on_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.refuse(node)
        self.emit(f"while ({self.as_type(node.test, 'bool')}) {{")
        self.block(node.body)
        self.emit("}")

    def on_For(self, node: ast.For) -> None:
        if node.orelse:
            raise self.refuse(node)
        bound = self.loop(node.target, node.iter)
        self.block(node.body)
        self.emit("}")
        for name in bound:
            self.variables.pop(name, None)

    def loop(self, target: ast.expr, source: ast.expr) -> list[str]:
        """Open a C++ loop; return the names it binds."""
        call = (
            source.func.id
            if isinstance(source, ast.Call) and isinstance(source.func, ast.Name)
            else ""
        )
        args = source.args if isinstance(source, ast.Call) else []
        if call == "range" or (call == "reversed" and ast.unparse(args[0]).startswith("range(")):
            bounds = (
                args if isinstance(source, ast.Call) and call == "range" else _arguments(args[0])
            )
            return self._range(target, bounds, call == "reversed")
        names = [
            item.id
            for item in (target.elts if isinstance(target, ast.Tuple) else [target])
            if isinstance(item, ast.Name)
        ]
        index = f"i{len(self.lines)}_"
        lists = args if call in ("enumerate", "zip", "reversed") else [source]
        wanted = len(lists) + (call == "enumerate")
        if len(names) != wanted:
            raise self.refuse(source)
        values = [self.expression(item) for item in lists]
        bags = [value.type in ("tensors", "bag") for value in values]
        codes = [
            value.code if bag else self.coerced(source, value, "ints")
            for value, bag in zip(values, bags, strict=True)
        ]
        order = f"int64_t {index} = 0; {index} < {codes[0]}.size(); {index}++"
        if call == "reversed":
            order = f"int64_t {index} = {codes[0]}.size() - 1; {index} >= 0; {index}--"
        self.emit(f"for ({order}) {{")
        if call == "enumerate":
            self._bind(names.pop(0), "int", index)
        for name, code, bag in zip(names, codes, bags, strict=True):
            self._bind(name, "tensor" if bag else "int", f"{code}[{index}]")
        return [item.id for item in ast.walk(target) if isinstance(item, ast.Name)]

    def _bind(self, name: str, kind: str, code: str) -> None:
        if name == "_":
            return
        self.variables[name] = kind
        self.lines.append(
            "  " * (self.depth + 1)
            + f"{declared(kind)}{'' if kind == 'tensor' else ' '}{name}_ = {code};"
        )

    def _range(self, target: ast.expr, args: list[ast.expr], backwards: bool) -> list[str]:
        if not isinstance(target, ast.Name) or len(args) > 2:
            raise self.refuse(target)
        bounds = [self.as_type(arg, "int") for arg in args]
        low, high = bounds if len(bounds) == 2 else ("int64_t(0)", bounds[0])
        name = target.id + "_"
        if backwards:
            self.emit(f"for (int64_t {name} = {high} - 1; {name} >= {low}; {name}--) {{")
        else:
            self.emit(
                f"for (int64_t {name} = {low}, end_{name} = {high}; {name} < end_{name}; "
                f"{name}++) {{"
            )
        self.variables[target.id] = "int"
        return [target.id]

    def on_ListComp(self, node: ast.ListComp) -> Typed:
        if len(node.generators) != 1:
            raise self.refuse(node)
        generator = node.generators[0]
        outer, self.lines, depth = self.lines, [], self.depth
        bound = self.loop(generator.target, generator.iter)
        value = self.expression(node.elt)
        bag = value.type in ("owned", "tensor", "held")
        push = f"made_.push({self.coerced(node.elt, value, 'owned' if bag else 'int')});"
        for test in generator.ifs:
            self.emit(f"if (!({self.as_type(test, 'bool')})) continue;")
        inner, self.lines, self.depth = self.lines, outer, depth
        for name in bound:
            self.variables.pop(name, None)
        kind = "Bag" if bag else "Dims"
        text = " ".join(line.strip() for line in inner)
        return Typed(
            f"[&] {{ {kind} made_; {text} {push} }} return made_; }}()", "bag" if bag else "list"
        )

    def on_Break(self, node: ast.Break) -> None:
        self.emit("break;")

    def on_Continue(self, node: ast.Continue) -> None:
        self.emit("continue;")

    def on_Pass(self, node: ast.Pass) -> None:
        pass

    # ---- calls for their effect ------------------------------------------------------------------
    def on_Expr(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return  # a docstring
        if not isinstance(value, ast.Call):
            raise self.refuse(node)
        if isinstance(value.func, ast.Attribute):
            self._list_method(value, value.func)
        elif isinstance(value.func, ast.Name) and value.func.id == "check":
            self._check(value)
        elif isinstance(value.func, ast.Name) and value.func.id == "cast_argument":
            name = value.args[0]
            if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
                raise self.refuse(node)
            at = self.operator.schema.position(name.value)
            self.emit(f"cast_argument(x, {at}, {self.as_type(value.args[1], 'dtype')});")
        else:
            self.emit(self.expression(value).code + ";")

    def _check(self, node: ast.Call) -> None:
        kind = (
            node.args[2].value
            if len(node.args) > 2 and isinstance(node.args[2], ast.Constant)
            else "ShapeError"
        )
        if len(node.args) not in (2, 3) or node.keywords or kind not in KINDS:
            raise self.error(
                node, f"check(condition, text, kind) where kind is one of {', '.join(KINDS)}"
            )
        message = self.as_type(node.args[1], "text")
        self.emit(
            f"if (!({self.as_type(node.args[0], 'bool')})) fail(x, {KINDS[str(kind)]}, {message});"
        )

    def _list_method(self, node: ast.Call, method: ast.Attribute) -> None:
        if not isinstance(method.value, ast.Name) or method.value.id not in self.locals:
            raise self.refuse(node)
        name = method.value.id
        if method.attr == "append" and len(node.args) == 1:
            if self.variables[name] in ("empty", "made") and self._is_made(node.args[0]):
                self.variables[name] = self.locals[name] = "made"
                self.make(node.args[0], 0)
                return
            value = self.expression(node.args[0])
            bag = value.type in ("owned", "tensor", "tensor?", "operand", "held", "none")
            if self.variables[name] == "empty":
                self.variables[name] = self.locals[name] = "bag" if bag else "list"
            wanted = "owned" if self.variables[name] == "bag" else "int"
            self.emit(f"{name}_.push({self.coerced(node, value, wanted)});")
        elif method.attr in ("insert", "pop") and self.variables[name] == "list":
            arguments = ", ".join(self.as_type(arg, "int") for arg in node.args)
            self.emit(f"{method.attr}({name}_, {arguments});")
        else:
            raise self.refuse(node)

    # ---- parts -----------------------------------------------------------------------------------
    def part_call(self, node: ast.Call, function: Callable[..., Any]) -> Typed:
        """Translate a part where it is called: a lambda with the types of the arguments."""
        parameters = inspect.signature(function).parameters.values()
        written = [ast.unparse(item) for item in (*node.args, *node.keywords)]
        if node.keywords or len(node.args) != len(parameters):
            raise self.error(
                node, f"`{function.__name__}` takes {len(parameters)} arguments; got {written}"
            )
        tree, path, first = definition(function)
        inner = Part(self.operator, self.context, path, first, visible(function))
        values = [self.expression(argument) for argument in node.args]
        inner.variables = {p.name: v.type for p, v in zip(parameters, values, strict=True)}
        names = list(inner.variables)
        inner.body(tree.body)
        arguments = ", ".join(value.code for value in values)
        return Typed(f"{inner.lambda_(names)}({arguments})", inner.kind)

    # ---- returning -------------------------------------------------------------------------------
    def _is_made(self, node: ast.expr) -> bool:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            return False
        return str(getattr(self.globals.get(node.func.id), "__word__", "")).startswith("@result")

    def make(self, node: ast.expr, index: int) -> None:
        """Emit the call that makes a result of a shape function."""
        if isinstance(node, ast.IfExp):
            self.emit(f"if ({self.as_type(node.test, 'bool')}) {{")
            self.make(node.body, index)
            self.emit("} else {")
            self.make(node.orelse, index)
            self.emit("}")
            return
        if not isinstance(node, ast.Call) or not self._is_made(node):
            if (
                index < len(self.operator.schema.results)
                and self.operator.schema.results[index].writes
            ):
                return  # the runtime hands back the written argument
            raise self.error(
                node, "a shape function returns result(...), result_as(...) or view(...)"
            )
        assert isinstance(node.func, ast.Name)
        name = self.globals[node.func.id].__name__
        types = (
            str(self.globals[node.func.id].__word__)
            .removeprefix("@result ")
            .partition(" -> ")[0]
            .split()
        )
        args = [self.as_type(arg, wanted) for arg, wanted in zip(node.args, types, strict=False)]
        if name == "view" and len(args) == 3:
            args.append("0")
        if len(args) != len(types) or node.keywords:
            raise self.error(node, f"`{name}` takes ({', '.join(types)})")
        self.emit(f"{name}(x, {index}, {', '.join(args)});")

    def on_Return(self, node: ast.Return) -> None:
        items = (
            node.value.elts
            if isinstance(node.value, ast.Tuple)
            else [node.value]
            if node.value
            else []
        )
        made = isinstance(node.value, ast.Name) and self.variables.get(node.value.id) in (
            "made",
            "empty",
        )
        for i, item in enumerate(items):
            if self.context == "shape" and made:
                continue
            if self.context == "shape":
                self.make(item, i)
            elif self.context == "vjp":
                self._return_gradient(item, i)
            else:
                self._return_value(item, i, len(items))
        self.emit("return;")

    def _return_gradient(self, item: ast.expr, i: int) -> None:
        if i >= len(self.inputs):
            raise self.error(
                item, f"{len(self.inputs)} gradients are asked for: {', '.join(self.inputs)}"
            )
        if self.operator.schema.argument(self.inputs[i]).type == "Tensor[]":
            code = self.as_type(item, "bag")
            self.emit(f"list = {f'std::move({code})' if isinstance(item, ast.Name) else code};")
        else:
            self.emit(f"gx[{i}] = {self.as_type(item, 'owned')};")

    def _return_value(self, item: ast.expr, i: int, n: int) -> None:
        value = self.expression(item)
        results = self.operator.schema.results
        if value.type.startswith("results") and n == 1:
            self.emit(f"give(x, {value.code});")
        elif i < len(results) and results[i].type == "Tensor[]":
            self.emit(f"give_list(x, {i}, {self.coerced(item, value, 'bag')});")
        else:
            self.emit(f"give(x, {i}, {self.coerced(item, value, 'owned')});")


class Part(Statements):
    """Translates the body of a part, which returns a value like any function."""

    def __init__(
        self, operator: Operator, context: str, path: str, first_line: int, names: dict[str, Any]
    ) -> None:
        super().__init__(operator, context, path, first_line, names)
        self.kind = "none"

    def on_Return(self, node: ast.Return) -> None:
        if node.value is None:
            self.emit("return;")
            return
        value = self.expression(node.value)
        kind = OWNED.get(value.type, value.type)
        if kind not in CPP or self.kind not in ("none", kind):
            raise self.error(node, f"a part returns one type of value; got {kind}")
        self.kind = kind
        self.emit(f"return {self.coerced(node, value, kind)};")

    def lambda_(self, names: list[str]) -> str:
        """Return the translated part, a function of what ``names`` names."""
        self.settle()
        body = " ".join(line.strip() for line in self.declarations() + self.lines)
        taken = ", ".join(f"auto &&{name}_" if f"{name}_" in body else "auto &&" for name in names)
        made = "void" if self.kind == "none" else declared(self.kind)
        return f"[&]({taken}) -> {made} {{ {body} }}"


def _read(target: ast.expr) -> ast.expr:
    """Return the target of an assignment as an expression that reads it."""
    copy = ast.parse(ast.unparse(target), mode="eval").body
    return ast.copy_location(copy, target)


def _arguments(call: ast.expr) -> list[ast.expr]:
    return call.args if isinstance(call, ast.Call) else []
