"""The intermediate representation: a function of a spec, with types, before it is C++.

`expressions.py` and `statements.py` make it from Python's syntax tree and decide everything;
`cpp.py` prints it and decides nothing. Every expression knows its type.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from typing import Any, TypeAlias, Union

from plait_ops.value_types import Kind, Type

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

BOOL = Type(Kind.BOOL)


@dataclasses.dataclass(eq=False)
class Variable:
    """A name and its type. That of a list which begins empty is known once something is put in."""

    name: str
    type: Type


# ---- expressions ---------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Literal:
    """A constant of Python: None, a truth value, a number, a string or a tuple of integers."""

    value: None | bool | int | float | str | tuple[int, ...]
    type: Type


@dataclasses.dataclass(frozen=True)
class Position:
    """The position of an argument or of a result."""

    value: int
    type: Type = Type(Kind.ARGUMENT)


@dataclasses.dataclass(frozen=True)
class DTypeName:
    """A dtype by name."""

    name: str
    type: Type = Type(Kind.DTYPE)


@dataclasses.dataclass(frozen=True)
class Read:
    """The value of a variable."""

    variable: Variable

    @property
    def type(self) -> Type:
        return self.variable.type


@dataclasses.dataclass(frozen=True)
class Convert:
    """A value as another type; `conversions.py` has the pairs."""

    value: Expression
    type: Type


@dataclasses.dataclass(frozen=True)
class Cast:
    """A number as a whole one, without its fraction."""

    value: Expression
    type: Type


@dataclasses.dataclass(frozen=True)
class Present:
    """An optional value where it is there."""

    value: Expression

    @property
    def type(self) -> Type:
        return self.value.type.base


@dataclasses.dataclass(frozen=True)
class Argument:
    """A value as an argument of an operator call, where Python's None is a value too."""

    value: Expression
    type: Type = Type(Kind.OPERAND)


@dataclasses.dataclass(frozen=True)
class Move:
    """A list that is given away."""

    value: Expression

    @property
    def type(self) -> Type:
        return self.value.type


@dataclasses.dataclass(frozen=True)
class Not:
    """The opposite of a truth value."""

    value: Expression
    type: Type = BOOL


@dataclasses.dataclass(frozen=True)
class IsNone:
    """Whether an optional value is None."""

    value: Expression
    type: Type = BOOL


@dataclasses.dataclass(frozen=True)
class Logic:
    """Truth values joined by ``and`` or ``or``."""

    sign: str
    values: tuple[Expression, ...]
    type: Type = BOOL


@dataclasses.dataclass(frozen=True)
class Arithmetic:
    """Numbers joined or compared by an operator that C++ has; without `left`, its sign."""

    left: Expression | None
    sign: str
    right: Expression
    type: Type


@dataclasses.dataclass(frozen=True)
class Choice:
    """``a if test else b``."""

    test: Expression
    a: Expression
    b: Expression

    @property
    def type(self) -> Type:
        return self.a.type


@dataclasses.dataclass(frozen=True)
class ListOf:
    """A list of integers or of tensors, or one without items."""

    items: tuple[Expression, ...]
    type: Type


@dataclasses.dataclass(frozen=True)
class Index:
    """An item of a list."""

    list: Expression
    at: Expression
    type: Type


@dataclasses.dataclass(frozen=True)
class Field:
    """What a tensor says about itself: its shape, strides, ndim, dtype or device."""

    tensor: Expression
    name: str
    type: Type


@dataclasses.dataclass(frozen=True)
class Text:
    """A message made of pieces, each a string or a value to show."""

    pieces: tuple[Expression, ...]
    type: Type = Type(Kind.TEXT)


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a word or of a helper by name; `on_call` as `plait_ops.words.Word` has it."""

    function: str
    arguments: tuple[Expression, ...]
    type: Type
    on_call: bool = False
    reads_values: bool = True


class Form(enum.Enum):
    """In which way an operator is called."""

    ONE = "run"
    IN_PLACE = "run_in_place"
    LIST = "run_list"
    SEVERAL = "run_all"


@dataclasses.dataclass(frozen=True)
class OperatorCall:
    """A call of an operator that has so many results."""

    operator: str
    form: Form
    arguments: tuple[Expression, ...]
    type: Type
    results: int = 1


@dataclasses.dataclass(frozen=True)
class Default:
    """The default of an operator's argument."""

    operator: str
    position: int
    type: Type = Type(Kind.OPERAND)


@dataclasses.dataclass(frozen=True)
class Comprehension:
    """``[element for ... if ...]``."""

    head: LoopHead
    conditions: tuple[Expression, ...]
    element: Expression
    type: Type


@dataclasses.dataclass(frozen=True)
class PartCall:
    """A part, in the place where it is called."""

    function: Function
    arguments: tuple[Expression, ...]

    @property
    def type(self) -> Type:
        return self.function.result


# ---- statements ----------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Assign:
    variable: Variable
    value: Expression


@dataclasses.dataclass(frozen=True)
class AssignItem:
    item: Index
    value: Expression


@dataclasses.dataclass(frozen=True)
class Unpack:
    """The results of an operator with several, each to a variable."""

    call: OperatorCall
    variables: tuple[Variable, ...]


@dataclasses.dataclass(frozen=True)
class Push:
    """Append to a list."""

    list: Variable
    value: Expression


@dataclasses.dataclass(frozen=True)
class Do:
    """A call for its effect."""

    call: Expression


@dataclasses.dataclass(frozen=True)
class Fail:
    """Fail with a kind of error and a message unless the condition holds."""

    condition: Expression
    kind: str
    message: Expression


@dataclasses.dataclass(frozen=True)
class If:
    test: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


@dataclasses.dataclass(frozen=True)
class While:
    test: Expression
    body: tuple[Statement, ...]


@dataclasses.dataclass(frozen=True)
class Range:
    """The head of a loop over ``range(low, high)`` or what is that reversed."""

    variable: Variable
    low: Expression
    high: Expression
    backwards: bool


@dataclasses.dataclass(frozen=True)
class Each:
    """The head of a loop over the items of lists, which all have the length of the first.

    A variable is None where Python's ``_`` throws the item away.
    """

    lists: tuple[Expression, ...]
    items: tuple[Variable | None, ...]
    counter: Variable | None
    backwards: bool


LoopHead: TypeAlias = Union[Range, Each]


@dataclasses.dataclass(frozen=True)
class For:
    head: LoopHead
    body: tuple[Statement, ...]


@dataclasses.dataclass(frozen=True)
class Break:
    pass


@dataclasses.dataclass(frozen=True)
class Continue:
    pass


@dataclasses.dataclass(frozen=True)
class Return:
    value: Expression | None = None


@dataclasses.dataclass(frozen=True)
class GiveGradient:
    """The gradient of one of the inputs that a derivative is for."""

    position: int
    value: Expression


@dataclasses.dataclass(frozen=True)
class GiveGradients:
    """The gradients of an input that is a list of tensors."""

    value: Expression


# ---- functions -----------------------------------------------------------------------------------
class Source(enum.Enum):
    """Where a parameter comes from."""

    CALL = "an input of the call"
    VJP = "an input, as a derivative sees it"
    GRADIENT = "the gradient of a result"
    RESULT = "a result, as a derivative sees it"
    CALLER = "the caller of a part"


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a function, by its position in the source."""

    variable: Variable
    source: Source
    position: int


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of a spec or a part; those of a part are given their parameters."""

    parameters: tuple[Parameter, ...]
    locals: tuple[Variable, ...]
    body: tuple[Statement, ...]
    result: Type = Type(Kind.NONE)


Expression: TypeAlias = Union[
    Literal,
    Position,
    DTypeName,
    Read,
    Convert,
    Cast,
    Present,
    Argument,
    Move,
    Not,
    IsNone,
    Logic,
    Arithmetic,
    Choice,
    ListOf,
    Index,
    Field,
    Text,
    Call,
    OperatorCall,
    Default,
    Comprehension,
    PartCall,
]
Statement: TypeAlias = Union[
    Assign,
    AssignItem,
    Unpack,
    Push,
    Do,
    Fail,
    If,
    While,
    For,
    Break,
    Continue,
    Return,
    GiveGradient,
    GiveGradients,
]


def walk(node: Any) -> Iterator[Any]:
    """Yield a node and all within it, from the outside in."""
    if isinstance(node, tuple):
        for item in node:
            yield from walk(item)
    elif dataclasses.is_dataclass(node):
        yield node
        for field in dataclasses.fields(node):
            yield from walk(getattr(node, field.name))
