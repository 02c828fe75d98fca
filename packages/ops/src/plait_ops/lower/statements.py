"""Statements: variables, conditions, loops, and the returns of each kind of function."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from plait_ops.lower import ir
from plait_ops.lower.conversions import NUMBERS, convert
from plait_ops.lower.expressions import ONE_TENSOR, Context, Expressions
from plait_ops.lower.source import Source, read
from plait_ops.spec import Operator
from plait_ops.value_types import (
    BAG,
    BOOL,
    EMPTY,
    HELD,
    INT,
    INTS,
    LIST,
    NONE,
    OWNED,
    RESULT,
    TENSOR,
    TENSORS,
    Kind,
    Type,
)
from plait_ops.words import KINDS, WORDS

__all__ = ["Statements"]

# A variable keeps its value alive.
HELD_BY_VARIABLES = {INTS: LIST, TENSOR: OWNED, TENSOR.or_none: OWNED, TENSORS: BAG}
# Types that variables can have and parts can return.
VARIABLES = (
    *NUMBERS,
    Kind.STR,
    Kind.DTYPE,
    Kind.DEVICE,
    Kind.SCALAR,
    Kind.OPERAND,
    Kind.HELD,
    Kind.GENERATOR,
    Kind.INTS,
    Kind.LIST,
    Kind.OWNED,
    Kind.BAG,
)
CHECK = WORDS["check"]


class Statements(Expressions):
    """Translates one function body; `context` is shape, vjp, jvp, decompose or cost.

    `inputs` are the arguments whose gradients a derivative returns.
    """

    def __init__(
        self, operator: Operator, context: Context, source: Source, inputs: tuple[str, ...] = ()
    ) -> None:
        super().__init__(operator, context, source)
        self.inputs = inputs
        self.locals: dict[str, ir.Variable] = {}
        self.body: list[ir.Statement] = []

    def function(self, parameters: tuple[ir.Parameter, ...]) -> ir.Function:
        """Translate the function."""
        self.scope = {each.variable.name: each.variable for each in parameters}
        body = self.block(self.source.tree.body)
        return ir.Function(parameters, tuple(self.locals.values()), body)

    def emit(self, statement: ir.Statement) -> None:
        """Add a statement to the block that is being translated."""
        self.body.append(statement)

    def block(self, nodes: list[ast.stmt]) -> tuple[ir.Statement, ...]:
        """Translate the statements of a block."""
        with self.emitted() as body:
            for node in nodes:
                self.statement(node)
        return tuple(body)

    @contextlib.contextmanager
    def emitted(self) -> Iterator[list[ir.Statement]]:
        """Collect the statements that are emitted in a block."""
        outer, self.body = self.body, []
        try:
            yield self.body
        finally:
            self.body = outer

    def statement(self, node: ast.stmt) -> None:
        """Translate a statement: there is a method for each kind of node."""
        handler = getattr(self, "on_" + type(node).__name__, None)
        if handler is None:
            raise self.refuse(node)
        handler(node)

    # ---- variables -------------------------------------------------------------------------------
    def assign(self, node: ast.AST, name: str, value: ir.Expression) -> None:
        """Assign to a variable, which the first assignment declares."""
        type_ = HELD_BY_VARIABLES.get(value.type, value.type)
        if name not in self.scope and type_.kind not in (*VARIABLES, Kind.EMPTY):
            raise self.error(node, f"`{name}` cannot hold {type_}")
        variable = self.scope.get(name) or self.declare(node, name, type_)
        if variable is not self.locals.get(name):
            raise self.error(node, f"the argument `{name}` cannot be assigned; use another name")
        if variable.type == EMPTY:
            variable.type = type_
        if type_ != EMPTY:
            value = self.convert(node, value, variable.type)
        self.emit(ir.Assign(variable, value))

    def declare(self, node: ast.AST, name: str, type_: Type) -> ir.Variable:
        """Return the variable of a name after an assignment."""
        variable = self.locals.setdefault(name, ir.Variable(name, type_))
        if variable.type != type_ or self.scope.get(name, variable) is not variable:
            raise self.error(node, f"`{name}` stands for something else; use another name")
        self.scope[name] = variable
        return variable

    def on_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.refuse(node)
        target = node.targets[0]
        if isinstance(target, ast.Name):
            self.assign(node, target.id, self.expression(node.value))
        elif isinstance(target, ast.Subscript):
            item = self.expression(target)
            if not isinstance(item, ir.Index) or item.type != INT:
                raise self.refuse(node)
            self.emit(ir.AssignItem(item, self.as_type(node.value, INT)))
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
        values = self.expression(value)
        sizes = convert(values, INTS)
        if isinstance(values, ir.OperatorCall) and values.results == len(names):
            self.emit(ir.Unpack(values, tuple(self.declare(node, name, OWNED) for name in names)))
        elif sizes is not None:
            for i, name in enumerate(names):
                self.assign(node, name, ir.Index(sizes, ir.Position(i), INT))
        else:
            raise self.refuse(node)

    def on_AugAssign(self, node: ast.AugAssign) -> None:
        read_target = ast.parse(ast.unparse(node.target), mode="eval").body
        value = ast.BinOp(ast.copy_location(read_target, node.target), node.op, node.value)
        assignment = ast.Assign([node.target], ast.copy_location(value, node))
        self.on_Assign(ast.copy_location(assignment, node))

    def on_AnnAssign(self, node: ast.AnnAssign) -> None:
        """``out: list[int] = []`` is read like ``out = []``."""
        if node.value is None:
            raise self.refuse(node)
        self.on_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    # ---- control flow ----------------------------------------------------------------------------
    def on_If(self, node: ast.If) -> None:
        test = self.as_type(node.test, BOOL)
        self.emit(ir.If(test, self.block(node.body), self.block(node.orelse)))

    def on_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.refuse(node)
        self.emit(ir.While(self.as_type(node.test, BOOL), self.block(node.body)))

    def on_For(self, node: ast.For) -> None:
        if node.orelse:
            raise self.refuse(node)
        head, names = self.loop(node.target, node.iter)
        self.emit(ir.For(head, self.block(node.body)))
        self.forget(names)

    def on_ListComp(self, node: ast.ListComp) -> ir.Expression:
        """``[element for ... if ...]``: one loop."""
        if len(node.generators) != 1:
            raise self.refuse(node)
        generator = node.generators[0]
        head, names = self.loop(generator.target, generator.iter)
        value = self.expression(node.elt)
        bag = value.type in (OWNED, TENSOR, HELD)
        element = self.convert(node.elt, value, OWNED if bag else INT)
        conditions = tuple(self.as_type(test, BOOL) for test in generator.ifs)
        self.forget(names)
        return ir.Comprehension(head, conditions, element, BAG if bag else LIST)

    def forget(self, names: list[str]) -> None:
        """Forget the names that a loop bound."""
        for name in names:
            self.scope.pop(name, None)

    def loop(self, target: ast.expr, source: ast.expr) -> tuple[ir.LoopHead, list[str]]:
        """Return the head of a loop and the names that it binds."""
        call, args = _called(source)
        if call == "reversed" and len(args) == 1 and _called(args[0])[0] == "range":
            return self._range(target, _called(args[0])[1], backwards=True)
        if call == "range":
            return self._range(target, args, backwards=False)
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [item.id for item in targets if isinstance(item, ast.Name)]
        nodes = args if call in ("enumerate", "zip", "reversed") else [source]
        counted = call == "enumerate"
        if len(names) != len(nodes) + counted:
            raise self.refuse(source)
        lists = []
        for node in nodes:
            value = self.expression(node)
            of_tensors = value.type in (TENSORS, BAG)
            if value.type == BAG and not isinstance(value, ir.Read):
                raise self.error(source, "name the list before the loop, so that its tensors live")
            lists.append(value if of_tensors else self.convert(source, value, INTS))
        counter = self._loop_variable(names[0], INT) if counted else None
        items = tuple(
            self._loop_variable(name, TENSOR if value.type in (TENSORS, BAG) else INT)
            for name, value in zip(names[counted:], lists, strict=True)
        )
        return ir.Each(tuple(lists), items, counter, call == "reversed"), names

    def _loop_variable(self, name: str, type_: Type) -> ir.Variable | None:
        if name == "_":
            return None
        self.scope[name] = ir.Variable(name, type_)
        return self.scope[name]

    def _range(
        self, target: ast.expr, args: list[ast.expr], backwards: bool
    ) -> tuple[ir.LoopHead, list[str]]:
        if not isinstance(target, ast.Name) or len(args) not in (1, 2):
            raise self.refuse(target)
        bounds = [self.as_type(arg, INT) for arg in args]
        low = bounds[0] if len(bounds) == 2 else ir.Literal(0, INT)
        self.scope[target.id] = variable = ir.Variable(target.id, INT)
        return ir.Range(variable, low, bounds[-1], backwards), [target.id]

    def on_Break(self, node: ast.Break) -> None:
        self.emit(ir.Break())

    def on_Continue(self, node: ast.Continue) -> None:
        self.emit(ir.Continue())

    def on_Pass(self, node: ast.Pass) -> None:
        pass

    # ---- calls for their effect ------------------------------------------------------------------
    def on_Expr(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return  # a docstring
        if not isinstance(value, ast.Call):
            raise self.refuse(node)
        if isinstance(value.func, ast.Attribute) and not self.is_operator(value.func):
            self._list_method(value, value.func)
        elif self.called_word(value) is CHECK:
            self._check(value)
        else:
            self.emit(ir.Do(self.expression(value)))

    def _check(self, node: ast.Call) -> None:
        """Translate ``check(condition, message, kind)``; the message is made only if the check
        fails.
        """
        if self.context == "cost":
            raise self.error(node, "`check` may fail, which a cost function cannot")
        kind = CHECK.parameters[2].default
        if len(node.args) == 3:
            kind = node.args[2].value if isinstance(node.args[2], ast.Constant) else None
        if len(node.args) not in (2, 3) or node.keywords or kind not in KINDS:
            raise self.error(
                node, f"check(condition, text, kind) where kind is one of {', '.join(KINDS)}"
            )
        condition, message = (
            self.as_type(arg, each.type)
            for arg, each in zip(node.args[:2], CHECK.parameters, strict=False)
        )
        self.emit(ir.Fail(condition, kind, message))

    def _list_method(self, node: ast.Call, method: ast.Attribute) -> None:
        name = method.value.id if isinstance(method.value, ast.Name) else ""
        variable = self.locals.get(name)
        if variable is None or self.scope.get(name) is not variable:
            raise self.refuse(node)
        if method.attr == "append" and len(node.args) == 1:
            self._append(node, variable)
        elif method.attr in ("insert", "pop") and variable.type == LIST:
            arguments = tuple(self.as_type(arg, INT) for arg in node.args)
            self.emit(ir.Do(ir.Call(method.attr, (ir.Read(variable), *arguments), NONE)))
        else:
            raise self.refuse(node)

    def _append(self, node: ast.Call, variable: ir.Variable) -> None:
        """Append to a list; the first item determines the type of a list that was empty."""
        if variable.type in (EMPTY, RESULT) and self._makes_result(node.args[0]):
            variable.type = RESULT
            self.make_result(node.args[0], 0)
            return
        value = self.expression(node.args[0])
        if variable.type == EMPTY:
            tensors = value.type.kind in (*ONE_TENSOR, Kind.NONE)
            variable.type = BAG if tensors else LIST
        type_ = OWNED if variable.type == BAG else INT
        self.emit(ir.Push(variable, self.convert(node, value, type_)))

    # ---- parts -----------------------------------------------------------------------------------
    def part_call(self, node: ast.Call, function: Callable[..., Any]) -> ir.Expression:
        """Translate a part where it is called, with the types of the arguments."""
        source = read(function)
        if node.keywords or len(node.args) != len(source.parameters):
            texts = [ast.unparse(item) for item in (*node.args, *node.keywords)]
            raise self.error(
                node, f"`{function.__name__}` takes {len(source.parameters)} arguments; got {texts}"
            )
        arguments = tuple(self.expression(argument) for argument in node.args)
        parameters = tuple(
            ir.Parameter(ir.Variable(name, value.type), ir.Source.CALLER, i)
            for i, (name, value) in enumerate(zip(source.parameters, arguments, strict=True))
        )
        return ir.PartCall(Part(self.operator, self.context, source).part(parameters), arguments)

    # ---- returning -------------------------------------------------------------------------------
    def _makes_result(self, node: ast.expr) -> bool:
        word = self.called_word(node)
        return word is not None and word.makes_result

    def make_result(self, node: ast.expr, index: int) -> None:
        """Emit the call that makes a result of a shape function."""
        if isinstance(node, ast.IfExp):
            with self.emitted() as body:
                self.make_result(node.body, index)
            with self.emitted() as orelse:
                self.make_result(node.orelse, index)
            self.emit(ir.If(self.as_type(node.test, BOOL), tuple(body), tuple(orelse)))
            return
        word = self.called_word(node)
        if word is not None and word.makes_result and isinstance(node, ast.Call):
            arguments = (ir.Position(index), *self.word_arguments(node, word))
            self.emit(ir.Do(ir.Call(word.name, arguments, NONE, on_call=True)))
            return
        results = self.operator.schema.results
        if not (index < len(results) and results[index].writes):
            # the runtime returns the argument that is written to
            raise self.error(
                node, "a shape function returns result(...), result_as(...) or view(...)"
            )

    def on_Return(self, node: ast.Return) -> None:
        value = node.value
        items = value.elts if isinstance(value, ast.Tuple) else [value] if value else []
        if self.context == "cost":
            self._return_cost(node, items)
        variable = self.scope.get(value.id) if isinstance(value, ast.Name) else None
        appended = variable is not None and variable.type in (RESULT, EMPTY)
        for i, item in enumerate(items):
            if self.context == "shape":
                if not appended:  # the results were made where they were appended
                    self.make_result(item, i)
            elif self.context == "vjp":
                self._return_gradient(item, i)
            elif self.context != "cost":
                self._return_value(item, i, len(items))
        self.emit(ir.Return())

    def _return_cost(self, node: ast.Return, items: list[ast.expr]) -> None:
        if len(items) not in (1, 3):
            raise self.error(
                node, "a cost is the number of operations, or (operations, read, written)"
            )
        self.emit(ir.GiveCost(tuple(self.as_type(item, INT) for item in items)))

    def _return_gradient(self, item: ast.expr, i: int) -> None:
        if i >= len(self.inputs):
            raise self.error(
                item, f"{len(self.inputs)} gradients are asked for: {', '.join(self.inputs)}"
            )
        if self.operator.schema.argument(self.inputs[i]).type == "Tensor[]":
            value = self.as_type(item, BAG)
            self.emit(ir.GiveGradients(ir.Move(value) if isinstance(item, ast.Name) else value))
        else:
            self.emit(ir.GiveGradient(i, self.as_type(item, OWNED)))

    def _return_value(self, item: ast.expr, i: int, n: int) -> None:
        value = self.expression(item)
        results = self.operator.schema.results
        if n == len(results) == 1 and results[0].type == "Tensor":
            return self._return_only_value(item, value)
        at = ir.Position(i)
        if value.type.kind is Kind.RESULTS and n == 1:
            call = ir.Call("give", (value,), NONE, on_call=True)
        elif i < len(results) and results[i].type == "Tensor[]":
            bag = self.convert(item, value, BAG)
            call = ir.Call("give_list", (at, bag), NONE, on_call=True)
        else:
            tensor = self.convert(item, value, OWNED)
            call = ir.Call("give", (at, tensor), NONE, on_call=True)
        self.emit(ir.Do(call))

    def _return_only_value(self, item: ast.expr, value: ir.Expression) -> None:
        """Emit what gives the only result: the last call of an operator may write into a target."""
        if isinstance(value, ir.Choice):
            with self.emitted() as body:
                self._return_only_value(item, value.a)
            with self.emitted() as orelse:
                self._return_only_value(item, value.b)
            self.emit(ir.If(value.test, tuple(body), tuple(orelse)))
        elif isinstance(value, ir.OperatorCall) and value.form is ir.Form.ONE:
            self.emit(ir.Do(dataclasses.replace(value, form=ir.Form.LAST)))
        else:
            tensor = self.convert(item, value, OWNED)
            self.emit(ir.Do(ir.Call("give", (ir.Position(0), tensor), NONE, on_call=True)))


class Part(Statements):
    """Translates the body of a part, which returns a value."""

    result = NONE

    def part(self, parameters: tuple[ir.Parameter, ...]) -> ir.Function:
        """Translate the part for parameters of the types of its arguments."""
        function = self.function(parameters)
        return dataclasses.replace(function, result=self.result)

    def on_Return(self, node: ast.Return) -> None:
        if node.value is None:
            self.emit(ir.Return())
            return
        value = self.expression(node.value)
        type_ = HELD_BY_VARIABLES.get(value.type, value.type)
        if type_.kind not in VARIABLES or self.result not in (NONE, type_):
            raise self.error(node, f"a part returns one type of value; got {type_}")
        self.result = type_
        self.emit(ir.Return(self.convert(node, value, type_)))


def _called(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return the name of the function that is called, and its arguments."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id, node.args
    return "", []
