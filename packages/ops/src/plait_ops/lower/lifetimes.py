"""The lifetimes of temporaries: a variable is released after its last reader, and an operator may
write its result into an argument that nothing reads afterwards.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from plait_ops.lower import ir
from plait_ops.value_types import OWNED, Kind

__all__ = ["mapped", "shorten"]

REUSING = (ir.Form.ONE, ir.Form.LAST)
CONDITIONAL = (ir.Choice, ir.Logic, ir.Comprehension, ir.PartCall)
BORROWING = (Kind.OPERAND, Kind.SCALAR, Kind.HELD)


def shorten(function: ir.Function) -> ir.Function:
    """Return the function with its temporaries released, or overwritten, as early as possible."""
    borrowed: set[int] = set()  # to variables that do not own their tensor
    for node in ir.walk(function.body):
        if isinstance(node, ir.Assign) and node.variable.type.kind in BORROWING:
            borrowed |= _mentions(node.value)
    owned = {id(v): v for v in function.locals if v.type == OWNED and id(v) not in borrowed}
    body = mapped(_block(function.body, owned), _with_spare_temporaries)
    return dataclasses.replace(function, body=body)


def _block(
    body: tuple[ir.Statement, ...], variables: dict[int, ir.Variable]
) -> tuple[ir.Statement, ...]:
    """Return the statements of a block that is entered once; `variables` end in it."""
    statements: list[ir.Statement] = []
    remaining = dict(variables)
    for at, statement in enumerate(body):
        last = _mentions(statement) - _mentions(body[at + 1 :])
        alive = dict(remaining)
        # in the order of the declarations, so that the same definitions give the same C++
        ending = {key: remaining.pop(key) for key in alive if key in last}
        if isinstance(statement, ir.If):
            statement = dataclasses.replace(
                statement,
                body=_block(statement.body, alive if _returns(statement.body) else ending),
                orelse=_block(statement.orelse, alive if _returns(statement.orelse) else ending),
            )
        else:
            statement = _with_spare_variables(statement, ending)
        statements.append(statement)
        if not isinstance(body[at + 1] if at + 1 < len(body) else None, ir.Return):
            statements += [ir.Release(each) for each in ending.values()]
    return tuple(statements)


def _returns(body: tuple[ir.Statement, ...]) -> bool:
    return bool(body) and isinstance(body[-1], ir.Return)


def _mentions(node: Any) -> set[int]:
    return {id(each) for each in ir.walk(node) if isinstance(each, ir.Variable)}


def _with_spare_variables(statement: ir.Statement, ending: dict[int, ir.Variable]) -> ir.Statement:
    """Mark the variables that end in the statement as spare in the call that reads them last."""
    if not isinstance(statement, (ir.Assign, ir.Do, ir.GiveGradient)):
        return statement
    if isinstance(statement, ir.Assign) and statement.variable.type == OWNED:
        ending = {**ending, id(statement.variable): statement.variable}  # it gets a new tensor
    for each in ir.walk(statement):  # how often these run, and in which order, is not known
        if isinstance(each, CONDITIONAL):
            conditional = _mentions(each)
            ending = {key: variable for key, variable in ending.items() if key not in conditional}
    last: dict[int, tuple[ir.OperatorCall | ir.Call, list[int]]] = {}
    for call in _in_order(statement):
        for key in ending:
            reads = [at for at, each in enumerate(call.arguments) if key in _own_reads(each)]
            if reads:
                last[key] = call, reads
    read = [id(each.variable) for each in ir.walk(statement) if isinstance(each, ir.Read)]
    spare: dict[int, set[int]] = {}
    moved: set[int] = set()
    for key, (call, reads) in last.items():
        if isinstance(call, ir.OperatorCall) and call.form in REUSING and len(reads) == 1:
            argument = _tensor(call.arguments[reads[0]])
            if isinstance(argument, ir.Read) and id(argument.variable) == key:
                spare.setdefault(id(call), set()).add(reads[0])
                moved.add(id(argument))

    def mark(node: Any, old: Any) -> Any:
        if isinstance(node, ir.Read):
            is_last = id(old) in moved and read.count(id(node.variable)) == 1
            return ir.Move(node) if is_last else node
        positions = spare.get(id(old))
        return dataclasses.replace(node, spare=tuple(sorted(positions))) if positions else node

    return mapped(statement, mark)  # type: ignore[no-any-return]


def _in_order(node: Any) -> list[ir.OperatorCall | ir.Call]:
    """Return the calls of a statement in the order in which they run: a call after its arguments'
    calls.
    """
    calls = [each for each in ir.walk(node) if isinstance(each, (ir.OperatorCall, ir.Call))]
    depth_first: list[ir.OperatorCall | ir.Call] = []
    seen: set[int] = set()

    def visit(call: ir.OperatorCall | ir.Call) -> None:
        if id(call) in seen:
            return
        seen.add(id(call))
        for each in ir.walk(call.arguments):
            if isinstance(each, (ir.OperatorCall, ir.Call)):
                visit(each)
        depth_first.append(call)

    for each in calls:
        visit(each)
    return depth_first


def _own_reads(argument: Any) -> set[int]:
    """Return the variables that an argument names outside of other calls."""
    if isinstance(argument, (ir.OperatorCall, ir.Call)):
        return set()
    if isinstance(argument, ir.Read):
        return {id(argument.variable)}
    if isinstance(argument, tuple):
        return {key for item in argument for key in _own_reads(item)}
    if not dataclasses.is_dataclass(argument) or isinstance(argument, ir.Field):
        return set()
    return _own_reads(tuple(getattr(argument, each.name) for each in dataclasses.fields(argument)))


def _tensor(argument: ir.Expression) -> ir.Expression:
    """Return the tensor of an argument, without the conversion to a value."""
    while isinstance(argument, (ir.Argument, ir.Convert)):
        argument = argument.value
    return argument


def _with_spare_temporaries(node: Any, _old: Any) -> Any:
    """Mark the arguments of an operator that are results of another one."""
    if not isinstance(node, ir.OperatorCall) or node.form not in REUSING:
        return node
    nested = {
        at
        for at, each in enumerate(map(_tensor, node.arguments))
        if isinstance(each, (ir.OperatorCall, ir.Call)) and each.type == OWNED
    }
    return dataclasses.replace(node, spare=tuple(sorted(nested | set(node.spare))))


def mapped(node: Any, change: Callable[[Any, Any], Any]) -> Any:
    """Return the tree with `change(node, node before)` for every node, from the inside out.
    Variables stay the same.
    """
    if isinstance(node, tuple):
        return tuple(mapped(item, change) for item in node)
    names = ir.field_names(type(node))
    if names is None or isinstance(node, ir.Variable):
        return node
    fields = [mapped(getattr(node, name), change) for name in names]
    return change(type(node)(*fields), node)
