"""The table of operators, and what an entry gets of a node."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from plait_onnx._import._errors import ModelError, dtype_of

__all__ = ["Entry", "Node", "entry_for", "host_operator", "operator", "HOST"]

Function = Callable[..., Any]
_T = TypeVar("_T", bound=Function)
_REQUIRED: Any = object()
_EACH = 1024  # bytes that a tensor of a sequence counts for, beside its elements
DOMAINS = {"": "", "ai.onnx": ""}


@dataclass(frozen=True)
class Entry:
    """How nodes of an operator run.

    Attributes:
        since: The first version of the operator that the entry is for.
        build: It gets a `Node` when a model is loaded, and returns the function of its inputs.
        host: Numbers of inputs that are needed in the host's memory, as arrays of NumPy.
        constants: Numbers of inputs that are arrays of NumPy if they are constants.
    """

    since: int
    build: Callable[[Node], Function]
    host: frozenset[int]
    constants: frozenset[int] = frozenset()


ENTRIES: dict[tuple[str, str], list[Entry]] = {}
HOST: dict[str, Callable[[Node], Function]] = {}


def operator(
    name: str,
    since: int = 1,
    *,
    host: Sequence[int] = (),
    constants: Sequence[int] = (),
    domain: str = "",
) -> Callable[[_T], _T]:
    """Add an entry for an operator from a version on."""

    def add(build: _T) -> _T:
        entries = ENTRIES.setdefault((domain, name), [])
        entry = Entry(since, build, frozenset(host), frozenset(constants))
        bisect.insort(entries, entry, key=lambda e: e.since)
        return build

    return add


def host_operator(*names: str) -> Callable[[_T], _T]:
    """Add a function of arrays of NumPy, for nodes that compute sizes from sizes."""

    def add(build: _T) -> _T:
        for name in names:
            HOST[name] = build
        return build

    return add


def entry_for(domain: str, name: str, version: int) -> Entry | None:
    """Return the entry for a version of an operator."""
    entries = ENTRIES.get((domain, name), [])
    fitting = [entry for entry in entries if entry.since <= version]
    return fitting[-1] if fitting else None


# numbers of AttributeProto.AttributeType, and the fields that have the values
_FIELDS = {
    "float": (1, "f"), "int": (2, "i"), "string": (3, "s"), "tensor": (4, "t"),
    "graph": (5, "g"), "sparse_tensor": (11, "sparse_tensor"), "type": (13, "tp"),
    "floats": (6, "floats"), "ints": (7, "ints"), "strings": (8, "strings"),
}  # fmt: skip


@dataclass
class Node:
    """A node of a graph while its function is made.

    Attributes:
        name: Its name in the file.
        op_type: Its operator.
        version: The version of the operator: the first opset that has it as it is here.
        inputs, outputs: Names of values; an empty one stands for an input that is left out.
        attributes: Messages by name.
        scope: Where names of values are looked up; for subgraphs.
        limit: Bytes that a value may have whose size the model sets.
        activation: Name, limits and slope of what is applied to the result of a convolution.
    """

    name: str
    op_type: str
    domain: str
    version: int
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    scope: Any = None
    limit: int = 1 << 62
    activation: tuple[str, float, float, float] | None = None

    @property
    def where(self) -> str:
        name = f"{self.name!r}" if self.name else f"of {self.outputs[0]!r}" if self.outputs else ""
        operator = f"{self.domain}.{self.op_type}" if self.domain else self.op_type
        return f"node {name[:200]} ({operator})"

    def error(self, text: str) -> ModelError:
        return ModelError(f"{self.where}: {text}")

    def has(self, name: str) -> bool:
        return name in self.attributes

    def _get(self, kind: str, name: str, default: Any) -> Any:
        attribute = self.attributes.get(name)
        if attribute is None:
            if default is _REQUIRED:
                raise self.error(f"attribute {name!r} is missing")
            return default
        number, place = _FIELDS[kind]
        if attribute.type not in (0, number):
            raise self.error(f"attribute {name!r} must be of the kind {kind}")
        return getattr(attribute, place)

    def integer(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._get("int", name, default)

    def number(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._get("float", name, default)

    def flag(self, name: str, default: bool = False) -> bool:
        return bool(self._get("int", name, default))

    def integers(self, name: str, default: Any = _REQUIRED) -> Any:
        value = self._get("ints", name, default)
        return value if value is default else list(value)

    def numbers(self, name: str, default: Any = _REQUIRED) -> Any:
        value = self._get("floats", name, default)
        return value if value is default else list(value)

    def text(self, name: str, default: Any = _REQUIRED, choices: Sequence[str] = ()) -> Any:
        value = self._get("string", name, default)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if choices and value not in choices:
            raise self.error(f"attribute {name!r} must be one of {list(choices)}, got {value!r}")
        return value

    def texts(self, name: str, default: Any = _REQUIRED) -> Any:
        value = self._get("strings", name, default)
        return value if value is default else [v.decode("utf-8", "replace") for v in value]

    def dtype(self, name: str, default: Any = _REQUIRED) -> Any:
        """Return the dtype that an attribute names by an element type."""
        value = self._get("int", name, None)
        if value is None or (value == 0 and default is not _REQUIRED):
            if default is _REQUIRED:
                raise self.error(f"attribute {name!r} is missing")
            return default
        return dtype_of(value, self.where)

    def tensor(self, name: str, default: Any = _REQUIRED) -> Any:
        """Return a tensor that an attribute holds."""
        value = self._get("tensor", name, default)
        return value if value is default else self.scope.read(value, self.where)

    def graph(self, name: str) -> Any:
        """Return the program of a subgraph."""
        return self.scope.subgraph(self._get("graph", name, _REQUIRED), self.where)

    def element(self, index: int) -> int:
        """Return the element type of an input that shares bytes in the file; 0 for others."""
        found: int = 0 if self.missing(index) else self.scope.elements.get(self.inputs[index], 0)
        return found

    def missing(self, index: int) -> bool:
        """Return whether an input is left out."""
        return index >= len(self.inputs) or not self.inputs[index]

    def check_count(self, count: Any) -> None:
        """Raise an error if so many tensors, or steps of Python, are more than the limit allows."""
        self.check_size([count], _EACH)

    def check_size(self, shape: Sequence[Any], itemsize: int = 4) -> None:
        """Raise an error if a value of this shape is larger than the limit."""
        if any(n < 0 for n in shape):
            raise self.error(f"a shape must not be negative, got {list(shape)}")
        # an empty value counts as if it was not: what is made beside it has the other sizes
        if math.prod(max(n, 1) for n in shape) * itemsize > self.limit:
            raise self.error(
                f"its result of shape {list(shape)} has more bytes than `limit`, {self.limit}"
            )
