"""Values and numbers of graphs, arguments of nodes, and their form in JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import plait_abi
from plait_graph._size_expressions import evaluate, expression_text, parse_expression

__all__ = [
    "Argument",
    "Number",
    "SizeExpression",
    "SizeQuotient",
    "SizeRange",
    "Value",
    "argument_text",
    "decode",
    "encode",
    "strides_in_c_order",
    "values_in",
]


@dataclasses.dataclass(frozen=True)
class SizeExpression:
    """An int among the arguments of a node that depends on free sizes of the graph.

    Args:
        text: what it is, with the operators of Python, ``min`` and ``max``.

    Example:
        >>> from plait_graph import Graph, SizeExpression, SizeRange, Value
        >>> x = Value("x", "float32", ("n", 4))
        >>> graph = Graph([x], sizes={"n": SizeRange(1, 64, 8)})
        >>> graph.outputs = [graph.call("view", x, [SizeExpression("n*2"), 2])]
        >>> print(graph)
        sizes    n from 1 to 64
        inputs   %x float32[n, 4]
        %1 = view(%x, [n * 2, 2])
        outputs  %1
    """

    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", expression_text(parse_expression(self.text)))

    def __str__(self) -> str:
        return self.text

    def value(self, sizes: Mapping[str, int]) -> int:
        """Return the int for sizes.

        Args:
            sizes: A number for each free size.

        Example:
            >>> from plait_graph import SizeExpression
            >>> SizeExpression("(n + 1) // 2").value({"n": 8})
            4
        """
        return evaluate(parse_expression(self.text), sizes)


@dataclasses.dataclass(frozen=True)
class SizeQuotient:
    """A float among the arguments of a node that depends on free sizes of the graph.

    Args:
        factor: a float.
        above: an expression by which it is multiplied.
        below: an expression by which the product is divided.

    Example:
        >>> from plait_graph import SizeQuotient
        >>> SizeQuotient(0.1, "n", "n - 1").value({"n": 11})
        0.11000000000000001
    """

    factor: float
    above: str = "1"
    below: str = "1"

    def __post_init__(self) -> None:
        if type(self.factor) is not float or not math.isfinite(self.factor):
            raise plait_abi.ArgumentError(
                f"SizeQuotient: `factor` must be a finite float, got {self.factor!r}"
            )
        for name in ("above", "below"):
            text = expression_text(parse_expression(getattr(self, name)))
            object.__setattr__(self, name, text)

    def __str__(self) -> str:
        above, below = (f"({text})" if " " in text else text for text in (self.above, self.below))
        return f"{self.factor} * {above} / {below}"

    def value(self, sizes: Mapping[str, int]) -> float:
        """Return the float for sizes.

        Args:
            sizes: A number for each free size.

        Example:
            >>> from plait_graph import SizeQuotient
            >>> SizeQuotient(1.0, below="n * 2").value({"n": 2})
            0.25
        """
        above, below = (
            evaluate(parse_expression(text), sizes) for text in (self.above, self.below)
        )
        if below == 0:
            raise plait_abi.ArgumentError(f"sizes: {self} divides by zero for {dict(sizes)}")
        return self.factor * above / below


@dataclasses.dataclass(frozen=True)
class SizeRange:
    """Which values a free size of a graph may have.

    Args:
        min: the least one.
        max: the greatest one.
        value: the one in the recording.

    Example:
        >>> from plait_graph import SizeRange
        >>> SizeRange(1, 64, 8)
        SizeRange(min=1, max=64, value=8)
    """

    min: int
    max: int
    value: int

    def __post_init__(self) -> None:
        numbers = (self.min, self.value, self.max)
        if any(type(n) is not int for n in numbers) or not (
            0 <= self.min <= self.value <= self.max < 2**63
        ):
            raise plait_abi.ArgumentError(
                "SizeRange: ints with 0 <= min <= value <= max < 2**63 are required, got "
                f"{self.min}, {self.value} and {self.max}"
            )


@dataclasses.dataclass(frozen=True)
class Value:
    """A tensor of a graph: an input, a weight or a result of a node.

    Only its name is known of the result of a node before `infer_shapes`: the rest is None.

    Args:
        name: what nodes refer to it by; unique in its graph.
        dtype: a dtype or its name.
        shape: the sizes of its dimensions: ints, and expressions in free sizes of the graph.
        strides: the distances of neighbours in elements; None, also for those of C order.
        device: a device or its name; None is the CPU if the dtype is known.

    Example:
        >>> from plait_graph import Value
        >>> print(Value("x", "float32", (8, 3), device="cpu"))
        %x float32[8, 3]
    """

    name: str
    dtype: plait_abi.dtype | None = None
    shape: tuple[int | str, ...] | None = None
    strides: tuple[int | str, ...] | None = None
    device: plait_abi.device | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise plait_abi.ArgumentError(
                f"Value: `name` must be a str that is not empty, got {self.name!r}"
            )
        where = f"Value {self.name!r}"
        if self.dtype is not None:
            object.__setattr__(self, "dtype", plait_abi.dtype(self.dtype))
        if self.shape is not None:
            object.__setattr__(self, "shape", _sizes(where, "shape", self.shape, 0))
        if self.strides is not None:
            strides = _sizes(where, "strides", self.strides, -(2**63))
            object.__setattr__(self, "strides", strides)
            if self.shape is None or len(self.strides) != len(self.shape):
                raise plait_abi.ArgumentError(
                    f"{where}: `strides` {self.strides} must be as many as those of `shape` "
                    f"{self.shape}"
                )
            sizes = tuple(size for size in self.shape if isinstance(size, int))
            if len(sizes) == len(self.shape) and strides == strides_in_c_order(sizes):
                object.__setattr__(self, "strides", None)
        if self.device is not None or self.dtype is not None:
            device = "cpu" if self.device is None else self.device
            object.__setattr__(self, "device", plait_abi.device(device))

    def __hash__(self) -> int:
        return hash(self.name)  # graphs with many nodes look up values all the time

    def __str__(self) -> str:
        text = f"%{self.name}"
        if self.dtype is not None:
            text += f" {self.description}"
        return text

    @property
    def description(self) -> str:
        """Return dtype and shape, such as ``float32[8, 3]``, and what else is not the default.

        Example:
            >>> from plait_graph import Value
            >>> Value("x", "float32", (2, 3), (1, 2), "cpu").description
            'float32[2, 3] strides [1, 2]'
        """
        if self.dtype is None:
            return ""
        text = f"{self.dtype.name}[{', '.join(map(str, self.shape or ()))}]"
        if self.strides is not None:
            text += f" strides [{', '.join(map(str, self.strides))}]"
        if self.device is not None and self.device.type != "cpu":
            text += f" {self.device}"
        return text


@dataclasses.dataclass(frozen=True)
class Number:
    """A number of a graph that is not frozen: a learning rate, the number of a step.

    Args:
        name: what nodes refer to it by; unique in its graph.
        value: an int or a float, as it was in the capture.
        step: what each run adds to it.

    Example:
        >>> from plait_graph import Number
        >>> print(Number("adam.step", 1, step=1))
        %adam.step = 1 + 1 each run
    """

    name: str
    value: int | float
    step: int | float = 0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise plait_abi.ArgumentError(
                f"Number: `name` must be a str that is not empty, got {self.name!r}"
            )
        for name, number in (("value", self.value), ("step", self.step)):
            if type(number) not in (int, float):
                raise plait_abi.ArgumentError(
                    f"Number {self.name!r}: `{name}` must be an int or a float, got {number!r}"
                )

    def __str__(self) -> str:
        return f"%{self.name} = {self.value}" + (f" + {self.step} each run" if self.step else "")


Argument: TypeAlias = (
    "bool | int | float | complex | str | plait_abi.dtype | plait_abi.device | Value | Number | "
    "SizeExpression | SizeQuotient | tuple[Argument, ...] | None"
)


def _sizes(where: str, name: str, sizes: Any, least: int) -> tuple[int | str, ...]:
    """Return sizes or strides as a tuple of ints that fit into 64 bits, and expressions."""
    if isinstance(sizes, (list, tuple)):
        sizes = [SizeExpression(size).text if isinstance(size, str) else size for size in sizes]
    if not isinstance(sizes, (list, tuple)) or not all(
        isinstance(size, str) or (type(size) is int and least <= size < 2**63) for size in sizes
    ):
        raise plait_abi.ArgumentError(
            f"{where}: `{name}` must be a list of ints from {least} below 2**63, got {sizes!r}"
        )
    return tuple(sizes)


def strides_in_c_order(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a dense tensor whose last dimension is contiguous."""
    results, stride = [], 1
    for size in reversed(shape):
        results.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(results))


def values_in(argument: Any) -> Iterator[Value]:
    """Yield the values in an argument or a result, also those in lists."""
    if isinstance(argument, Value):
        yield argument
    elif isinstance(argument, (list, tuple)):
        for each in argument:
            yield from values_in(each)


def argument_text(argument: Argument) -> str:
    """Return an argument as the text of a graph has it: ``%x``, ``1.0``, ``[1, 1]``, ``'sum'``."""
    if isinstance(argument, (Value, Number)):
        return f"%{argument.name}"
    if isinstance(argument, tuple):
        return f"[{', '.join(map(argument_text, argument))}]"
    if isinstance(argument, plait_abi.dtype):
        return argument.name
    if isinstance(argument, plait_abi.device):
        return str(argument)
    if isinstance(argument, (SizeExpression, SizeQuotient)):
        return str(argument)
    return repr(argument)


def encode(argument: Argument) -> Any:
    """Return what the JSON of a graph has for an argument."""
    if isinstance(argument, (Value, Number)):
        return f"%{argument.name}"
    if isinstance(argument, tuple):
        return [encode(each) for each in argument]
    if isinstance(argument, SizeExpression):
        return {"size": argument.text}
    if isinstance(argument, SizeQuotient):
        return {"quotient": [argument.factor, argument.above, argument.below]}
    if isinstance(argument, str):
        return {"string": argument}
    if isinstance(argument, plait_abi.dtype):
        return {"dtype": argument.name}
    if isinstance(argument, plait_abi.device):
        return {"device": str(argument)}
    if isinstance(argument, complex):
        return {"complex": [encode(argument.real), encode(argument.imag)]}
    if isinstance(argument, float) and not math.isfinite(argument):
        return {"float": str(argument)}
    if argument is None or type(argument) in (bool, int, float):
        return argument
    raise plait_abi.ArgumentError(
        f"graph: an argument of a node must be a value, a number, None, a bool, an int, a float, a "
        f"complex number, a str, a dtype, a device or a tuple of them, got {argument!r}"
    )


_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def decode(form: Any, names: Mapping[str, Value | Number]) -> Argument:
    """Return the argument that the JSON of a graph has; `names` are those that are defined.

    Raises: ArgumentError for a name that is not defined and for any other form.
    """
    if form is None or type(form) in (bool, float):
        return form  # type: ignore[no-any-return]
    if type(form) is int and -(2**63) <= form < 2**63:
        return form
    if isinstance(form, str) and form.startswith("%"):
        if form[1:] not in names:
            raise plait_abi.ArgumentError(f"{form} is not defined before it is used")
        return names[form[1:]]
    if isinstance(form, list):
        if any(isinstance(each, list) for each in form):
            raise plait_abi.ArgumentError(f"a list in a list is not an argument: {_short(form)}")
        return tuple(decode(each, names) for each in form)
    if isinstance(form, dict) and len(form) == 1:
        ((kind, content),) = form.items()
        if kind == "string" and isinstance(content, str):
            return content
        if kind == "size" and isinstance(content, str):
            return SizeExpression(content)
        if kind == "quotient" and isinstance(content, list) and len(content) == 3:
            return SizeQuotient(*content)
        if kind == "float" and content in ("inf", "-inf", "nan"):
            return _NOT_FINITE[content]
        if kind in ("dtype", "device") and isinstance(content, str):
            return plait_abi.dtype(content) if kind == "dtype" else plait_abi.device(content)
        if kind == "complex" and isinstance(content, list) and len(content) == 2:
            parts = [decode(part, {}) for part in content]
            if all(type(part) is float for part in parts):
                return complex(*parts)  # type: ignore[arg-type]
    raise plait_abi.ArgumentError(f"this is not an argument: {_short(form)}")


def _short(form: Any) -> str:
    text = repr(form)
    return text if len(text) <= 60 else f"{text[:57]}..."
