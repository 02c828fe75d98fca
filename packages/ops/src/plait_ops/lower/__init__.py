"""The translator: functions of a spec become C++ functions that call `cpp/words.hpp`.

It goes in two steps. From Python's syntax tree, `expressions.py` and `statements.py` make a
representation of typed nodes (`ir.py`): they infer the type of every expression, add conversions
(`conversions.py`), and raise an error with file and line, at build time, for code that cannot be
translated. `lifetimes.py` ends temporaries after their last reader. `cpp.py` prints the nodes.

It supports assignments, `if`, `while`, `for` over ranges and lists, `return`, arithmetic,
comparisons, conditional expressions, list comprehensions, f-strings in `check`, the words of
`plait_ops.words`, parts (functions marked `part`, translated where they are called), operator
calls and tensor arithmetic (not in shape functions and costs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_ops.lower import comparisons, ir, lifetimes
from plait_ops.lower.cpp import function as to_cpp
from plait_ops.lower.expressions import Context, type_of
from plait_ops.lower.source import read
from plait_ops.lower.statements import Statements
from plait_ops.spec import Operator, SpecError, Vjp
from plait_ops.value_types import BOOL, FLOAT, OPERAND, TENSOR, TENSORS, Kind, Type
from plait_ops.words import WORDS

__all__ = ["cost", "decompose", "jvp", "to_cpp", "reads_values", "result_dtypes", "shape", "vjp"]

# Costs are computed once for all calls that have these in common.
SIZES = (
    Kind.TENSOR,
    Kind.TENSORS,
    Kind.OPERAND,
    Kind.INT,
    Kind.INTS,
    Kind.BOOL,
    Kind.STR,
    Kind.DTYPE,
)


def _parameters(operator: Operator, context: Context) -> dict[str, ir.Parameter]:
    """Return the possible parameters of a function of the spec, by name."""
    arguments, results = operator.schema.arguments, operator.schema.results
    parameters: dict[str, ir.Parameter] = {}

    def add(name: str, type_: Type, source: ir.Source, position: int) -> None:
        # an argument of the schema may be called `result`
        parameters.setdefault(name, ir.Parameter(ir.Variable(name, type_), source, position))

    source = ir.Source.VJP if context == "vjp" else ir.Source.CALL
    for i, argument in enumerate(arguments):
        add(argument.name, type_of(argument), source, i)
    if context == "jvp":  # its call has the arguments, their tangents, and the results
        for i, argument in enumerate(arguments):
            if argument.is_tensor and argument.type != "Tensor[]":
                add(f"d_{argument.name}", TENSOR.or_none, source, len(arguments) + i)
    for i in range(len(results)):
        number = "" if len(results) == 1 else str(i)
        if context == "jvp":
            add(f"result{number}", TENSOR, source, 2 * len(arguments) + i)
        if context == "vjp":
            add(f"g{number}", TENSOR, ir.Source.GRADIENT, i)
            add(f"result{number}", TENSOR, ir.Source.RESULT, i)
        if context == "cost":
            type_ = TENSORS if results[i].type == "Tensor[]" else TENSOR
            add(f"result{number}", type_, ir.Source.OUTPUT, i)
    if context == "cost":
        add("inplace", BOOL, ir.Source.FORM, 0)
    return parameters


def _translate(
    operator: Operator, context: Context, function: Callable[..., Any], inputs: tuple[str, ...] = ()
) -> ir.Function:
    source, available = read(function), _parameters(operator, context)
    for name in source.parameters:
        if name not in available:
            raise SpecError(
                f"{operator.file}: {operator.name}: {context} asks for `{name}`, which is none of "
                f"{list(available)}"
            )
    parameters = tuple(available[name] for name in source.parameters)
    body = Statements(operator, context, source, inputs).function(parameters)
    if context in ("shape", "cost"):
        return body
    return lifetimes.shorten(comparisons.tell_comparisons(body))


def shape(operator: Operator) -> ir.Function:
    """Return a shape function: in C++ it sees ``x`` (Scope) and ``c`` (plait_call)."""
    assert operator.shape_function is not None
    return _translate(operator, "shape", operator.shape_function)


def decompose(operator: Operator) -> ir.Function:
    """Return a decomposition: in C++ it sees ``x`` and ``c``."""
    assert operator.decompose_function is not None
    return _translate(operator, "decompose", operator.decompose_function)


def jvp(operator: Operator) -> ir.Function:
    """Return a forward derivative: in C++ it sees ``x`` and ``c``, whose inputs are the
    operator's, their tangents and its results.
    """
    assert operator.jvp_function is not None
    return _translate(operator, "jvp", operator.jvp_function)


def vjp(operator: Operator, each: Vjp) -> ir.Function:
    """Return a derivative: in C++ it sees ``x``, ``v`` (plait_vjp), and fills in ``gx`` or
    ``list``.
    """
    return _translate(operator, "vjp", each.function, each.inputs)


def cost(operator: Operator) -> ir.Function:
    """Return a cost function: in C++ it sees ``c``, whose results are there, and fills in
    ``cost`` (Cost).
    """
    assert operator.cost_function is not None
    function = _translate(operator, "cost", operator.cost_function)
    numbers = [
        f"`{each.variable.name}`"
        for each in function.parameters
        if each.variable.type.kind not in SIZES
    ]
    numbers += [
        "a number that is given for a tensor"
        for node in ir.walk(function.body)
        if isinstance(node, ir.Convert) and (node.value.type, node.type) == (OPERAND, FLOAT)
    ]
    if numbers:
        raise SpecError(
            f"{operator.file}: {operator.name}: a cost depends on sizes and integers alone; it "
            f"reads {numbers[0]}"
        )
    return function


def reads_values(function: ir.Function) -> set[str]:
    """Return the names of the parameters whose elements are read, not only their shape, dtype and
    similar properties, or whether they are None.
    """
    metadata_reads: set[int] = set()
    for node in ir.walk(function.body):
        spares = isinstance(node, (ir.Field, ir.IsNone)) or (
            isinstance(node, ir.Call) and not node.reads_values
        )
        if spares:
            metadata_reads.update(id(each) for each in _operands(node))
    return {
        node.variable.name
        for node in ir.walk(function.body)
        if isinstance(node, ir.Read)
        and id(node) not in metadata_reads
        and any(each.variable is node.variable for each in function.parameters)
    }


def result_dtypes(function: ir.Function) -> set[str]:
    """Return the dtypes of the results that a shape function makes, ``?`` for those that depend on
    the call.
    """
    dtypes = set()
    for node in ir.walk(function.body):
        word = WORDS.get(node.function) if isinstance(node, ir.Call) else None
        if word is not None and word.makes_result:
            names = [each.name for each in node.arguments if isinstance(each, ir.DTypeName)]
            dtypes.add(names[0].rstrip("_") if names else "?")
    return dtypes


def _operands(node: ir.Field | ir.IsNone | ir.Call) -> list[ir.Expression]:
    """Return the variables that a node reads directly or through conversions."""
    values: list[ir.Expression] = list(node.arguments) if isinstance(node, ir.Call) else []
    values += [node.tensor] if isinstance(node, ir.Field) else []
    values += [node.value] if isinstance(node, ir.IsNone) else []
    bare: list[ir.Expression] = []
    for value in values:
        while isinstance(value, (ir.Convert, ir.Present)):
            value = value.value
        bare.append(value)
    return bare
