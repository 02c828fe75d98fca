"""Functions of TorchScript as functions of Python.

The code of an archive is never executed. Its tree is read, and a new tree is built from a closed
set of statements and expressions: names are local variables, operators come from a table, and
attributes and methods are those that the archive's classes declare. What is not in the set is
refused with its file and line.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from plait_torch._torchscript import _values
from plait_torch._torchscript._late import late
from plait_torch._torchscript._numbers import as_number
from plait_torch._torchscript._operators import operator_function
from plait_torch._torchscript._unit import ROOT, Class, Function, literal, refused

_ROOTS = frozenset({"torch", "ops", "CONSTANTS", ROOT})
_HELPER = "_ts_"  # begins the names that the archive's code cannot use
_FUNCTION = "_ts_function"
_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "remainder", ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "__and__",
    ast.BitOr: "__or__", ast.BitXor: "__xor__", ast.LShift: "__lshift__", ast.RShift: "__rshift__",
}  # fmt: skip
_COMPARED: dict[type[ast.AST], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.Is: "__is__", ast.IsNot: "__isnot__",
}  # fmt: skip


def translated(function: Function) -> Callable[..., Any]:
    """Return a function of Python that does what one of an archive does."""
    return _Translator(function).made()


late.translated = translated


def _dotted(node: ast.expr) -> list[str]:
    """Return the names of ``a.b.c``, or nothing for another expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return []
    return [node.id, *reversed(names)]


class _Translator:
    def __init__(self, function: Function) -> None:
        self._function, self._record = function, function.record
        self._globals: dict[str, Any] = {"__builtins__": {}}
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # what has a name in the globals, so that no id is used again
        self._locals: set[str] = set()
        self._loops = 0  # around the statement that is translated
        self._inner: dict[str, str] = {}  # functions in the function, with their new names
        self._captured: set[str] = set()  # what they use

    def made(self) -> Callable[..., Any]:
        node = self._function.node
        for each in ast.walk(node):
            if isinstance(each, ast.FunctionDef) and each is not node:
                self._inner[each.name] = f"{_HELPER}{each.name}"
                self._captured |= set(_uses(each.body))
            if isinstance(each, ast.arg):
                self._declare(each.arg, node)
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                self._declare(each.id, each)
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.posonlyargs or node.decorator_list:
            raise refused(node, self._record)
        defaults = [self._default(each) for each in arguments.defaults]
        keyword = [None if each is None else self._default(each) for each in arguments.kw_defaults]
        new = ast.FunctionDef(
            name=_FUNCTION,
            args=ast.arguments(
                posonlyargs=[], args=[ast.arg(each.arg) for each in arguments.args], vararg=None,
                kwonlyargs=[ast.arg(each.arg) for each in arguments.kwonlyargs],
                kw_defaults=keyword, kwarg=None, defaults=defaults,
            ),
            body=self._block(node.body, _uses(node.body)),
            decorator_list=[],
        )  # fmt: skip
        if hasattr(new, "type_params"):
            new.type_params = []
        module = ast.fix_missing_locations(ast.Module(body=[new], type_ignores=[]))
        try:
            code = compile(module, self._record, "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise refused(node, self._record, f"cannot be translated: {error}") from error
        exec(code, self._globals)  # the tree is our own
        result: Callable[..., Any] = self._globals[_FUNCTION]
        result.__qualname__ = self._function.name
        return result

    def _default(self, node: ast.expr) -> ast.expr:
        names = _dotted(node)
        if len(names) == 2 and names[0] == "CONSTANTS":
            return self._stored_constant(names[1], node)
        return self._constant(literal(node, self._record))

    def _declare(self, name: str, node: ast.AST) -> None:
        if name.startswith((_HELPER, "__")) or name in _ROOTS:
            raise refused(node, self._record, "uses a reserved name")
        self._locals.add(name)

    # ---- names of what the new code may use

    def _constant(self, value: Any) -> ast.expr:
        """Return an expression for an object."""
        if value is None or type(value) in (bool, str, int):
            return ast.Constant(value)
        if id(value) not in self._names:
            self._names[id(value)] = f"{_HELPER}{len(self._names)}"
            self._kept.append(value)
            self._globals[self._names[id(value)]] = value
        return ast.Name(self._names[id(value)], ast.Load())

    def _call(self, function: Any, *args: ast.expr) -> ast.Call:
        return ast.Call(self._constant(function), list(args), [])

    # ---- statements

    def _block(self, nodes: list[ast.stmt], outside: dict[str, int]) -> list[ast.stmt]:
        """Return a block; a name that only this block uses is released after its last use.

        In a loop these are names that the block itself sets first: others have values from before.

        Args:
            nodes: the statements.
            outside: how often the whole function uses each name.
        """
        used = [_uses([node]) for node in nodes]
        total: dict[str, int] = {}
        last: dict[str, int] = {}
        own: set[str] = set()
        for place, uses in enumerate(used):
            for name, count in uses.items():
                if name not in total and (not self._loops or _sets(nodes[place], name)):
                    own.add(name)
                total[name] = total.get(name, 0) + count
                last[name] = place
        result: list[ast.stmt] = []
        for place, node in enumerate(nodes):
            made = self._statement(node, outside)
            result += [ast.copy_location(each, node) for each in made]
            if isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
                continue
            free = (own & self._locals) - self._captured
            ended = [
                name for name, at in last.items()
                if at == place and total[name] == outside.get(name) and name in free
            ]  # fmt: skip
            if ended:
                targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in sorted(ended)]
                result.append(ast.copy_location(ast.Assign(targets, ast.Constant(None)), node))
        return result or [ast.Pass()]

    def _statement(self, node: ast.stmt, outside: dict[str, int]) -> list[ast.stmt]:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            return self._assigned(node.targets[0], self._value(node.value))
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            value = self._cast(node.annotation, self._value(node.value))
            return self._assigned(node.target, value)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            name = ast.Name(node.target.id, ast.Load())
            call = self._binary(node.op, name, self._value(node.value), node)
            return self._assigned(node.target, call)
        if isinstance(node, ast.Expr):
            return [ast.Expr(self._value(node.value))]
        if isinstance(node, ast.Return):
            return [ast.Return(None if node.value is None else self._value(node.value))]
        if isinstance(node, ast.If):
            test, body = self._value(node.test), self._block(node.body, outside)
            return [ast.If(test, body, self._block(node.orelse, outside) if node.orelse else [])]
        if isinstance(node, ast.While) and not node.orelse:
            return [ast.While(self._value(node.test), self._body(node.body, outside), [])]
        if isinstance(node, ast.For) and not node.orelse:
            return self._for(node, outside)
        if isinstance(node, ast.With):
            return [self._with(node, outside)]
        if isinstance(node, ast.Assert):
            message = ast.Constant("") if node.msg is None else self._value(node.msg)
            raising = ast.Expr(self._call(_values.failed, message))
            return [ast.If(ast.UnaryOp(ast.Not(), self._value(node.test)), [raising], [])]
        if isinstance(node, (ast.Pass, ast.Break, ast.Continue)):
            return [type(node)()]
        if isinstance(node, ast.FunctionDef) and not ast.unparse(node.args):
            return [self._inner_function(node, outside)]
        raise refused(node, self._record)

    def _body(self, nodes: list[ast.stmt], outside: dict[str, int]) -> list[ast.stmt]:
        """Return the block of a loop."""
        self._loops += 1
        try:
            return self._block(nodes, outside)
        finally:
            self._loops -= 1

    def _for(self, node: ast.For, outside: dict[str, int]) -> list[ast.stmt]:
        body = self._body(node.body, outside)
        source = self._call(_values.iterated, self._value(node.iter))
        target = self._target(node.target)
        return [ast.For(target, source, body, [], None)]

    def _inner_function(self, node: ast.FunctionDef, outside: dict[str, int]) -> ast.stmt:
        """Return a function without arguments, which `fork` calls."""
        nothing = ast.arguments(
            posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None,
            defaults=[],
        )  # fmt: skip
        new = ast.FunctionDef(
            name=self._inner[node.name], args=nothing, body=self._block(node.body, outside),
            decorator_list=[],
        )  # fmt: skip
        if hasattr(new, "type_params"):
            new.type_params = []
        return new

    def _with(self, node: ast.With, outside: dict[str, int]) -> ast.stmt:
        items = []
        for each in node.items:
            target = None if each.optional_vars is None else self._target(each.optional_vars)
            entered = self._call(_values.entered, self._value(each.context_expr))
            items.append(ast.withitem(entered, target))
        return ast.With(items, self._block(node.body, outside))

    def _target(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Name):
            return ast.Name(node.id, ast.Store())
        if isinstance(node, (ast.Tuple, ast.List)):
            return ast.Tuple([self._target(each) for each in node.elts], ast.Store())
        raise refused(node, self._record)

    def _assigned(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        if isinstance(target, ast.Attribute):
            name = ast.Constant(self._attribute(target.attr, target))
            call = self._call(_values.set_attribute, self._value(target.value), name, value)
            return [ast.Expr(call)]
        if isinstance(target, ast.Subscript):
            place = self._call(
                operator_function("_set_item"), self._value(target.value),
                self._value(target.slice), value,
            )  # fmt: skip
            return [ast.Expr(place)]
        if isinstance(target, ast.Name):
            return [ast.Assign([self._target(target)], value)]
        return [ast.Assign([self._target(target)], self._call(_values.unpacked, value))]

    def _attribute(self, name: str, node: ast.AST) -> str:
        if name.startswith("__") and name not in ("__init__", "__enter__", "__exit__"):
            raise refused(node, self._record, "uses a reserved name")
        return name

    # ---- expressions

    def _value(self, node: ast.expr) -> ast.expr:
        method = getattr(self, f"_value_of_{type(node).__name__}", None)
        if method is None:
            raise refused(node, self._record)
        result: ast.expr = method(node)
        return ast.copy_location(result, node)

    def _values(self, nodes: list[ast.expr]) -> list[ast.expr]:
        return [self._value(each) for each in nodes]

    def _value_of_Constant(self, node: ast.Constant) -> ast.expr:  # noqa: N802
        return self._constant(literal(node, self._record))

    def _value_of_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802
        if node.id in self._locals:
            return ast.Name(node.id, ast.Load())
        return self._constant(literal(node, self._record))  # inf and nan, else refused

    def _value_of_Attribute(self, node: ast.Attribute) -> ast.expr:  # noqa: N802
        names = _dotted(node)
        if names and names[0] == "CONSTANTS" and len(names) == 2:
            return self._stored_constant(names[1], node)
        if names and names[0] == ROOT:
            return self._of_archive(names, node)
        if names and names[0] in _ROOTS:
            value = _values.named_value(names)
            if value is None:
                raise refused(node, self._record, "is not a value")
            return self._constant(value)
        name = ast.Constant(self._attribute(node.attr, node))
        return self._call(_values.attribute, self._value(node.value), name)

    def _stored_constant(self, name: str, node: ast.AST) -> ast.expr:
        constants = self._function.unit.constants
        place = int(name[1:]) if name[:1] == "c" and name[1:].isdecimal() else -1
        if not 0 <= place < len(constants):
            raise refused(node, self._record, "is not among the archive's constants")
        return self._constant(constants[place])

    def _of_archive(self, names: list[str], node: ast.AST) -> ast.expr:
        """Return a function or a class of the archive, or a member of an enumeration."""
        unit = self._function.unit
        try:
            return self._constant(unit.find(".".join(names)))
        except RuntimeError:
            found = unit.find(".".join(names[:-1]))
            if isinstance(found, Class) and found.base == "Enum":
                return self._constant(getattr(_values.enumeration(found), names[-1]))
            raise

    def _value_of_Call(self, node: ast.Call) -> ast.expr:  # noqa: N802
        if any(each.arg is None for each in node.keywords):
            raise refused(node, self._record)
        names = _dotted(node.func)
        if names and names[0] in ("torch", "ops"):
            return self._operator(names, node)
        if names and names[0] == ROOT:
            return self._call_of_archive(names, node)
        if isinstance(node.func, ast.Attribute):
            name = ast.Constant(node.func.attr)  # of a class: only what it declares is found
            method = self._call(_values.method, self._value(node.func.value), name)
            return ast.Call(method, self._values(node.args), self._keywords(node))
        if isinstance(node.func, ast.Name) and node.func.id not in self._locals:
            return self._builtin(node.func.id, node)
        function = self._call(_values.called, self._value(node.func))
        return ast.Call(function, self._values(node.args), self._keywords(node))

    def _keywords(self, node: ast.Call) -> list[ast.keyword]:
        return [ast.keyword(each.arg, self._value(each.value)) for each in node.keywords]

    def _operator(self, names: list[str], node: ast.Call) -> ast.expr:
        function = operator_function(*names[1:]) if len(names) in (2, 3) else None
        if function is None:  # an error when it is called: perhaps it never is
            why = "is an operator that plait does not have"
            function = _values.raising(refused(node.func, self._record, why))
        return ast.Call(self._constant(function), self._values(node.args), self._keywords(node))

    def _call_of_archive(self, names: list[str], node: ast.Call) -> ast.expr:
        if names[-1] == "__new__":
            found = self._function.unit.find(".".join(names[:-1]))
            return self._call(_values.made, self._constant(found))
        function = self._call(_values.called, self._of_archive(names, node))
        return ast.Call(function, self._values(node.args), self._keywords(node))

    def _builtin(self, name: str, node: ast.Call) -> ast.expr:
        if name in ("annotate", "unchecked_cast", "isinstance") and len(node.args) == 2:
            if name == "isinstance":
                kinds = _values.kinds_of(node.args[1], self._function)
                return self._call(
                    _values.is_instance, self._value(node.args[0]), self._constant(kinds)
                )
            return self._cast(node.args[0], self._value(node.args[1]))
        if name == "fork" and node.args and isinstance(node.args[0], ast.Name):
            inner = self._inner.get(node.args[0].id)
            if inner is not None:
                rest = self._values(node.args[1:])
                return self._call(_values.forked, ast.Name(inner, ast.Load()), *rest)
        if name == "uninitialized":
            return ast.Constant(None)
        if name == "getattr" and len(node.args) == 2:
            key = literal(node.args[1], self._record)
            if type(key) is not str or key.startswith("__"):
                raise refused(node, self._record)
            return self._call(_values.attribute, self._value(node.args[0]), ast.Constant(key))
        function = _values.BUILTINS.get(name)
        if function is None:
            raise refused(node, self._record, "calls what is not a function of TorchScript")
        return ast.Call(self._constant(function), self._values(node.args), self._keywords(node))

    def _cast(self, kind: ast.expr, value: ast.expr) -> ast.expr:
        """Return a value with a type: a tensor becomes a number where the type is one."""
        if isinstance(kind, ast.Name) and kind.id in ("int", "float", "bool", "number", "complex"):
            return self._call(as_number, value)
        return value

    def _value_of_Subscript(self, node: ast.Subscript) -> ast.expr:  # noqa: N802
        value = self._value(node.value)
        if isinstance(node.slice, ast.Slice):
            parts = [
                ast.Constant(None) if each is None else self._value(each)
                for each in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            return self._call(_values.part, value, *parts)
        return self._call(operator_function("__getitem__"), value, self._value(node.slice))

    def _value_of_Tuple(self, node: ast.Tuple) -> ast.expr:  # noqa: N802
        return ast.Tuple(self._values(node.elts), ast.Load())

    def _value_of_List(self, node: ast.List) -> ast.expr:  # noqa: N802
        return ast.List(self._values(node.elts), ast.Load())

    def _value_of_Dict(self, node: ast.Dict) -> ast.expr:  # noqa: N802
        if None in node.keys:
            raise refused(node, self._record)
        keys = [self._value(each) for each in node.keys if each is not None]
        return ast.Dict(list(keys), self._values(node.values))

    def _value_of_IfExp(self, node: ast.IfExp) -> ast.expr:  # noqa: N802
        return ast.IfExp(self._value(node.test), self._value(node.body), self._value(node.orelse))

    def _value_of_BoolOp(self, node: ast.BoolOp) -> ast.expr:  # noqa: N802
        return ast.BoolOp(node.op, self._values(node.values))

    def _value_of_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:  # noqa: N802
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(ast.Not(), self._value(node.operand))
        name = {ast.USub: "neg", ast.Invert: "bitwise_not", ast.UAdd: "positive"}[type(node.op)]
        return self._call(operator_function(name), self._value(node.operand))

    def _value_of_BinOp(self, node: ast.BinOp) -> ast.expr:  # noqa: N802
        return self._binary(node.op, self._value(node.left), self._value(node.right), node)

    def _binary(self, op: ast.AST, left: ast.expr, right: ast.expr, node: ast.AST) -> ast.expr:
        return self._call(operator_function(_BINARY[type(op)]), left, right)

    def _value_of_Compare(self, node: ast.Compare) -> ast.expr:  # noqa: N802
        if len(node.ops) != 1:
            raise refused(node, self._record)
        left, right = self._value(node.left), self._value(node.comparators[0])
        op = node.ops[0]
        if isinstance(op, (ast.In, ast.NotIn)):
            test: ast.expr = self._call(operator_function("__contains__"), right, left)
            return ast.UnaryOp(ast.Not(), test) if isinstance(op, ast.NotIn) else test
        return self._call(operator_function(_COMPARED[type(op)]), left, right)


def _uses(nodes: list[Any]) -> dict[str, int]:
    """Return how often each name occurs."""
    result: dict[str, int] = {}
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            result[node.id] = result.get(node.id, 0) + 1
        stack += ast.iter_child_nodes(node)
    return result


def _sets(node: ast.stmt, name: str) -> bool:
    """Return whether a statement gives a name a value, without using it."""
    if not isinstance(node, ast.Assign):
        return False
    targets = _uses(list(node.targets))
    return name in targets and name not in _uses([node.value])
