"""The intermediate representation: a function of a spec, with types, before it is C++.

`expressions.py` and `statements.py` make it from Python's syntax tree and decide everything;
`cpp.py` prints it and decides nothing. Every expression knows its type.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from plait_ops.value_types import ARGUMENT, BOOL, DTYPE, NONE, OPERAND, TEXT, Type

__all__ = [
    "Arithmetic",
    "Argument",
    "Assign",
    "AssignItem",
    "Break",
    "Call",
    "Cast",
    "Choice",
    "Comprehension",
    "Continue",
    "Convert",
    "DTypeName",
    "Default",
    "Do",
    "Each",
    "Expression",
    "Fail",
    "Field",
    "For",
    "Form",
    "Function",
    "GiveCost",
    "GiveGradient",
    "GiveGradients",
    "If",
    "Index",
    "IsNone",
    "ListOf",
    "Literal",
    "Logic",
    "LoopHead",
    "Move",
    "Not",
    "OperatorCall",
    "Parameter",
    "PartCall",
    "Position",
    "Present",
    "Push",
    "Range",
    "Read",
    "Return",
    "Source",
    "Statement",
    "Text",
    "Unpack",
    "Variable",
    "While",
    "walk",
]


@dataclasses.dataclass(eq=False)
class Variable:
    """A name and its type. The type of a list that is empty at first is known after the first
    append.
    """

    name: str
    type: Type


class Expression:
    """A value and its type."""

    if TYPE_CHECKING:

        @property
        def type(self) -> Type: ...


class Statement:
    """A step of a function."""


# ---- expressions ---------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Literal(Expression):
    """A constant of Python: None, a truth value, a number, a string or a tuple of integers."""

    value: bool | int | float | str | tuple[int, ...] | None
    type: Type


@dataclasses.dataclass(frozen=True)
class Position(Expression):
    """The position of an argument, of a result or in a list."""

    value: int
    type: Type = ARGUMENT


@dataclasses.dataclass(frozen=True)
class DTypeName(Expression):
    """A dtype by name."""

    name: str
    type: Type = DTYPE


@dataclasses.dataclass(frozen=True)
class Read(Expression):
    """The value of a variable."""

    variable: Variable

    @property
    def type(self) -> Type:
        return self.variable.type


@dataclasses.dataclass(frozen=True)
class Convert(Expression):
    """A value as another type; `conversions.py` has the pairs."""

    value: Expression
    type: Type


@dataclasses.dataclass(frozen=True)
class Cast(Expression):
    """A number without its fraction."""

    value: Expression
    type: Type


@dataclasses.dataclass(frozen=True)
class Present(Expression):
    """The value of an optional that is not None."""

    value: Expression

    @property
    def type(self) -> Type:
        return self.value.type.base


@dataclasses.dataclass(frozen=True)
class Argument(Expression):
    """A value as an argument of an operator call, where Python's None is a value too."""

    value: Expression
    type: Type = OPERAND


@dataclasses.dataclass(frozen=True)
class Move(Expression):
    """A list or a tensor whose ownership is passed on."""

    value: Expression

    @property
    def type(self) -> Type:
        return self.value.type


@dataclasses.dataclass(frozen=True)
class Not(Expression):
    """The opposite of a truth value."""

    value: Expression
    type: Type = BOOL


@dataclasses.dataclass(frozen=True)
class IsNone(Expression):
    """Whether an optional value is None."""

    value: Expression
    type: Type = BOOL


@dataclasses.dataclass(frozen=True)
class Logic(Expression):
    """Truth values combined by ``and`` or ``or``."""

    sign: str
    values: tuple[Expression, ...]
    type: Type = BOOL


@dataclasses.dataclass(frozen=True)
class Arithmetic(Expression):
    """Arithmetic or comparison of numbers by a C++ operator; without `left` it is a sign."""

    left: Expression | None
    sign: str
    right: Expression
    type: Type


@dataclasses.dataclass(frozen=True)
class Choice(Expression):
    """``a if test else b``."""

    test: Expression
    a: Expression
    b: Expression

    @property
    def type(self) -> Type:
        return self.a.type


@dataclasses.dataclass(frozen=True)
class ListOf(Expression):
    """A list of integers or of tensors, or one without items."""

    items: tuple[Expression, ...]
    type: Type


@dataclasses.dataclass(frozen=True)
class Index(Expression):
    """An item of a list."""

    list: Expression
    at: Expression
    type: Type


@dataclasses.dataclass(frozen=True)
class Field(Expression):
    """A property of a tensor: its shape, strides, ndim, dtype or device."""

    tensor: Expression
    name: str
    type: Type


@dataclasses.dataclass(frozen=True)
class Text(Expression):
    """A message made of pieces, each a string or a value to show."""

    pieces: tuple[Expression, ...]
    type: Type = TEXT


@dataclasses.dataclass(frozen=True)
class Call(Expression):
    """A call of a word or of a helper by name; `on_call` as `plait_ops.words.Word` has it."""

    function: str
    arguments: tuple[Expression, ...]
    type: Type
    on_call: bool = False
    reads_values: bool = True


class Form(enum.Enum):
    """The form in which an operator is called."""

    ONE = "for its result"
    IN_PLACE = "in place"
    LIST = "for the list of its results"
    SEVERAL = "for several results"
    LAST = "for the result of a decomposition, which may be written into its target"


@dataclasses.dataclass(frozen=True)
class OperatorCall(Expression):
    """A call of an operator with a number of results. It may write its result into the arguments
    at the positions `spare`: nothing reads them afterwards.
    """

    operator: str
    form: Form
    arguments: tuple[Expression, ...]
    type: Type
    results: int = 1
    spare: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Default(Expression):
    """The default of an operator's argument."""

    operator: str
    position: int
    type: Type = OPERAND


@dataclasses.dataclass(frozen=True)
class Comprehension(Expression):
    """``[element for ... if ...]``."""

    head: LoopHead
    conditions: tuple[Expression, ...]
    element: Expression
    type: Type


@dataclasses.dataclass(frozen=True)
class PartCall(Expression):
    """A part, inserted where it is called."""

    function: Function
    arguments: tuple[Expression, ...]

    @property
    def type(self) -> Type:
        return self.function.result


# ---- statements ----------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Assign(Statement):
    variable: Variable
    value: Expression


@dataclasses.dataclass(frozen=True)
class AssignItem(Statement):
    item: Index
    value: Expression


@dataclasses.dataclass(frozen=True)
class Unpack(Statement):
    """The assignment of several results of an operator to variables."""

    call: OperatorCall
    variables: tuple[Variable, ...]


@dataclasses.dataclass(frozen=True)
class Push(Statement):
    """Append to a list."""

    list: Variable
    value: Expression


@dataclasses.dataclass(frozen=True)
class Do(Statement):
    """A call for its effect."""

    call: Expression


@dataclasses.dataclass(frozen=True)
class Fail(Statement):
    """Fail with a kind of error and a message unless the condition holds."""

    condition: Expression
    kind: str
    message: Expression


@dataclasses.dataclass(frozen=True)
class If(Statement):
    test: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


@dataclasses.dataclass(frozen=True)
class While(Statement):
    test: Expression
    body: tuple[Statement, ...]


@dataclasses.dataclass(frozen=True)
class Range:
    """The head of a loop over ``range(low, high)`` or its reverse."""

    variable: Variable
    low: Expression
    high: Expression
    backwards: bool


@dataclasses.dataclass(frozen=True)
class Each:
    """The head of a loop over the items of lists, which all have the length of the first.

    A variable is None for Python's ``_``, which is not used.
    """

    lists: tuple[Expression, ...]
    items: tuple[Variable | None, ...]
    counter: Variable | None
    backwards: bool


LoopHead: TypeAlias = Range | Each


@dataclasses.dataclass(frozen=True)
class For(Statement):
    head: LoopHead
    body: tuple[Statement, ...]


@dataclasses.dataclass(frozen=True)
class Break(Statement):
    pass


@dataclasses.dataclass(frozen=True)
class Continue(Statement):
    pass


@dataclasses.dataclass(frozen=True)
class Release(Statement):
    """The end of the last reader of a variable: its tensor is no longer kept."""

    variable: Variable


@dataclasses.dataclass(frozen=True)
class Return(Statement):
    value: Expression | None = None


@dataclasses.dataclass(frozen=True)
class GiveGradient(Statement):
    """The gradient of one of the inputs of a derivative."""

    position: int
    value: Expression


@dataclasses.dataclass(frozen=True)
class GiveGradients(Statement):
    """The gradients of an input that is a list of tensors."""

    value: Expression


@dataclasses.dataclass(frozen=True)
class GiveCost(Statement):
    """The operations of a call, or those and the bytes it reads and writes."""

    counts: tuple[Expression, ...]


# ---- functions -----------------------------------------------------------------------------------
class Source(enum.Enum):
    """The origin of a parameter."""

    CALL = "an input of the call"
    VJP = "an input, as a derivative sees it"
    GRADIENT = "the gradient of a result"
    RESULT = "a result, as a derivative sees it"
    OUTPUT = "a result of the call"
    FORM = "whether the call is in place"
    CALLER = "the caller of a part"


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a function, by its position in the source."""

    variable: Variable
    source: Source
    position: int


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of a spec, or a part, whose parameters its caller passes."""

    parameters: tuple[Parameter, ...]
    locals: tuple[Variable, ...]
    body: tuple[Statement, ...]
    result: Type = NONE


def walk(node: Any) -> Iterator[Any]:
    """Yield a node and all nodes in it, from the outside in."""
    if isinstance(node, tuple):
        for item in node:
            yield from walk(item)
    elif (names := field_names(type(node))) is not None:
        yield node
        for name in names:
            yield from walk(getattr(node, name))


_FIELDS: dict[type, tuple[str, ...] | None] = {}


def field_names(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a kind of node, or None of what is no node."""
    if kind not in _FIELDS:
        is_node = dataclasses.is_dataclass(kind)
        fields = dataclasses.fields(kind) if is_node else ()
        _FIELDS[kind] = tuple(each.name for each in fields) if is_node else None
    return _FIELDS[kind]
