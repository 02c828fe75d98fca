"""ONNX graphs under construction: nodes, constants, and tensors of sizes."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import NodeProto, TensorProto

import plait_abi
import plait_core as pc
from plait_graph import SizeExpression, SizeQuotient
from plait_onnx._dtypes import element_type, packed

__all__ = ["Builder", "Input", "Names", "Size", "Unsupported", "Value", "Weights", "is_fixed"]

# A size of a dimension: a number, an expression in free sizes, or None if only a run knows it.
Size: TypeAlias = "int | str | None"


class Unsupported(NotImplementedError):
    """A call that ONNX cannot express, at an opset or at all."""


@dataclasses.dataclass(frozen=True)
class Value:
    """A tensor of the ONNX graph whose type is known.

    Args:
        name: in the ONNX graph.
        dtype: its dtype.
        shape: its sizes in the recording.
        dims: its sizes in all runs.
    """

    name: str
    dtype: plait_abi.dtype
    shape: tuple[int, ...]
    dims: tuple[Size, ...]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_floating(self) -> bool:
        """Whether elements are floating-point numbers."""
        return self.dtype.name in ("float16", "bfloat16", "float32", "float64")

    @property
    def is_unsigned(self) -> bool:
        """Whether elements are unsigned integers."""
        return self.dtype.name.startswith("uint")


Input: TypeAlias = "Value | str | None"


def is_fixed(sizes: Sequence[Any]) -> bool:
    """Return whether all sizes are numbers."""
    return all(isinstance(size, int) for size in sizes)


class Names:
    """Names that are used once in a file, in all its graphs."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def new(self, name: str) -> str:
        """Return a name that is not in use: this one, or this one with a number."""
        result, n = name, 0
        while result in self._taken:
            n += 1
            result = f"{name}_{n}"
        self._taken.add(result)
        return result


@dataclasses.dataclass
class Weights:
    """The initializers of a file: small ones as messages, weights as tensors."""

    tensors: dict[str, pc.Tensor] = dataclasses.field(default_factory=dict)
    constants: dict[str, TensorProto] = dataclasses.field(default_factory=dict)
    by_content: dict[tuple[Any, ...], str] = dataclasses.field(default_factory=dict)


class Builder:
    """Adds nodes to one ONNX graph: that of the file, or one of a branch or loop in it.

    Args:
        opset: the version of the operators.
        names: of the file.
        weights: of the file.
        sizes: where each free size is found: the name of an input, and a dimension.
    """

    def __init__(
        self, opset: int, names: Names, weights: Weights, sizes: dict[str, tuple[str, int]]
    ) -> None:
        self.opset, self.names, self.weights, self.sizes = opset, names, weights, sizes
        self.nodes: list[NodeProto] = []
        # of the call at hand: types of the results, the operator, whether operands are in C order
        self.results: tuple[Any, ...] = ()
        self.call = ""
        self.in_memory_order = True
        self.linear_of: Callable[[Value], Any] = lambda value: None
        self._expressions: dict[str, str] = {}

    def inner(self) -> Builder:
        """Return a builder for a graph of a branch or a loop."""
        return Builder(self.opset, self.names, self.weights, self.sizes)

    # ---- nodes -----------------------------------------------------------------------------------

    def op(self, kind: str, *inputs: Input, **attributes: Any) -> str:
        """Add a node with one result, and return its name."""
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(self, kind: str, count: int, *inputs: Input, **attributes: Any) -> list[str]:
        """Add a node and return the names of its results."""
        outputs = [self.names.new(kind.lower()) for _ in range(count)]
        self.add(kind, inputs, outputs, attributes)
        return outputs

    def add(
        self, kind: str, inputs: Sequence[Input], outputs: Sequence[str], attributes: dict[str, Any]
    ) -> None:
        """Add a node whose results have names."""
        names = ["" if each is None else _name(each) for each in inputs]
        while names and not names[-1]:
            names.pop()
        known = {key: value for key, value in attributes.items() if value is not None}
        node = onnx.helper.make_node(kind, names, list(outputs), **known)
        node.name = outputs[0]
        self.nodes.append(node)

    def need(self, opset: int, what: str) -> None:
        """Refuse what operators before an opset cannot express."""
        if self.opset < opset:
            raise Unsupported(f"{what} needs opset {opset}, got {self.opset}")

    # ---- constants -------------------------------------------------------------------------------

    def constant(self, content: Any, dtype: plait_abi.dtype | str = "int64") -> str:
        """Return an initializer of numbers, which equal ones share."""
        name = dtype if isinstance(dtype, str) else dtype.name
        if isinstance(content, np.ndarray):
            tensor = pc.from_numpy(np.array(content, order="C")).to(plait_abi.dtype(name))
            key: tuple[Any, ...] = (name, content.shape, content.dtype.str, content.tobytes())
        else:
            tensor = pc.tensor(content, dtype=plait_abi.dtype(name))
            key = (name, repr(content))
        if key not in self.weights.by_content:
            label = self.names.new("constant")
            self.weights.by_content[key] = label
            self.weights.constants[label] = packed(tensor, label)
        return self.weights.by_content[key]

    def number(self, value: Any, dtype: plait_abi.dtype | str) -> str:
        """Return a number as a tensor without dimensions; it may depend on free sizes."""
        name = dtype if isinstance(dtype, str) else dtype.name
        if isinstance(value, SizeExpression):
            return self.cast(self.scalar(value.text), name)
        if isinstance(value, SizeQuotient):
            above, below = (
                self.cast(self.scalar(text), "float64") for text in (value.above, value.below)
            )
            product = self.op("Mul", self.constant(value.factor, "float64"), above)
            return self.cast(self.op("Div", product, below), name)
        if isinstance(value, complex):
            raise Unsupported("ONNX has no arithmetic of complex numbers")
        return self.constant(value, name)

    def cast(self, x: Input, dtype: plait_abi.dtype | str) -> str:
        """Return a tensor in another dtype; the tensor itself if it is known to have it."""
        name = dtype if isinstance(dtype, str) else dtype.name
        if name.startswith("complex"):
            raise Unsupported("ONNX has no arithmetic of complex numbers")
        if isinstance(x, Value) and x.dtype.name == name:
            return x.name
        return self.op("Cast", x, to=element_type(name))

    # ---- sizes -----------------------------------------------------------------------------------

    def size(self, x: Value, dim: int) -> Any:
        """Return the size of a dimension for `sizes_tensor`: a number, or what finds it."""
        dim %= x.ndim
        known = x.dims[dim]
        if isinstance(known, int):
            return known
        if isinstance(known, str):
            return SizeExpression(known)
        shape = self.op("Shape", x)
        return Computed(self.op("Slice", shape, *map(self.constant, ([dim], [dim + 1]))))

    def product(self, sizes: Sequence[Any]) -> Any:
        """Return the product of sizes, for `sizes_tensor`."""
        fixed = 1
        rest = None
        for size in sizes:
            if isinstance(size, int):
                fixed *= size
            else:
                part = self.sizes_tensor([size])
                rest = part if rest is None else self.op("Mul", rest, part)
        if rest is None:
            return fixed
        return Computed(rest if fixed == 1 else self.op("Mul", rest, self.constant([fixed])))

    def sizes_tensor(self, sizes: Sequence[Any]) -> str:
        """Return sizes as a tensor of int64 with one dimension."""
        parts: list[str] = []
        run: list[int] = []
        if any(size is None for size in sizes):
            raise Unsupported("a shape has a size that depends on values")
        for size in [*sizes, None]:
            if isinstance(size, int):
                run.append(size)
                continue
            if run:
                parts.append(self.constant(run))
                run = []
            if isinstance(size, SizeExpression):
                parts.append(self._expression(size.text))
            elif isinstance(size, str):
                parts.append(self._expression(size))
            elif isinstance(size, Computed):
                parts.append(size.name)
        if not parts:
            return self.constant(np.zeros(0, np.int64))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def scalar(self, size: Any) -> str:
        """Return a size as a tensor of int64 without dimensions."""
        if isinstance(size, int):
            return self.constant(size)
        return self.op("Squeeze", self.sizes_tensor([size]), self.constant([0]))

    def _expression(self, text: str) -> str:
        if text not in self._expressions:
            self._expressions[text] = self._evaluated(ast.parse(text, mode="eval").body)
        return self._expressions[text]

    def _evaluated(self, tree: ast.expr) -> str:
        """Return an expression in free sizes as a tensor with one element."""
        if isinstance(tree, ast.Constant):
            return self.constant([tree.value])
        if isinstance(tree, ast.UnaryOp):
            return self.op("Neg", self._evaluated(tree.operand))
        if isinstance(tree, ast.Name):
            source, dim = self.sizes[tree.id]
            shape = self.op("Shape", source)
            return self.op("Slice", shape, *map(self.constant, ([dim], [dim + 1])))
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            kind = {"min": "Min", "max": "Max"}[tree.func.id]
            return self.op(kind, *map(self._evaluated, tree.args))
        assert isinstance(tree, ast.BinOp)
        left, right = self._evaluated(tree.left), self._evaluated(tree.right)
        if isinstance(tree.op, ast.FloorDiv):
            whole = self.op("Sub", left, self.op("Mod", left, right))
            return self.op("Div", whole, right)
        kinds = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Mod: "Mod"}
        return self.op(kinds[type(tree.op)], left, right)

    # ---- often used ------------------------------------------------------------------------------

    def reshape(self, x: Input, sizes: Sequence[Any]) -> str:
        """Return a tensor in another shape."""
        shorter = _inferred(x, sizes)
        has_zero = any(type(size) is int and size == 0 for size in sizes)
        return self.op("Reshape", x, self.sizes_tensor(shorter), allowzero=has_zero or None)

    def flat(self, x: Input) -> str:
        """Return a tensor in one dimension."""
        return self.op("Reshape", x, self.constant([-1]))

    def unsqueeze(self, x: Input, *dims: int) -> str:
        """Return a tensor with new dimensions of size 1."""
        return self.op("Unsqueeze", x, self.constant(list(dims)))

    def squeeze(self, x: Input, *dims: int) -> str:
        """Return a tensor without dimensions of size 1."""
        return self.op("Squeeze", x, self.constant(list(dims)))

    def expand(self, x: Input, sizes: Sequence[Any]) -> str:
        """Return a tensor that is repeated to a shape."""
        return self.op("Expand", x, self.sizes_tensor(sizes))

    def permute(self, x: Input, dims: Sequence[int]) -> str:
        """Return a tensor with its dimensions in another order."""
        return self.op("Transpose", x, perm=list(dims))

    def slice(self, x: Input, dim: int, start: Any, end: Any, step: int = 1) -> str:
        """Return a part of a tensor."""
        starts, ends = self.sizes_tensor([start]), self.sizes_tensor([end])
        steps = None if step == 1 else self.constant([step])
        return self.op("Slice", x, starts, ends, self.constant([dim]), steps)

    def sizes_of(self, x: Value) -> list[Any]:
        """Return the sizes of all dimensions, for `sizes_tensor`."""
        return [self.size(x, dim) for dim in range(x.ndim)]

    def filled(self, value: Any, sizes: Sequence[Any], dtype: plait_abi.dtype) -> str:
        """Return a tensor of equal elements."""
        return self.expand(self.number(value, dtype), sizes)

    def positions(self, count: Any) -> str:
        """Return the numbers from 0 to a size, of int64."""
        return self.op("Range", self.constant(0), self.scalar(count), self.constant(1))

    def reduce(self, kind: str, x: Input, dims: Sequence[int], keepdims: bool) -> str:
        """Return a reduction over dimensions, of which there is at least one."""
        if kind == "ReduceSum" or self.opset >= 18:
            return self.op(kind, x, self.constant(list(dims)), keepdims=int(keepdims))
        return self.op(kind, x, axes=list(dims), keepdims=int(keepdims))


@dataclasses.dataclass(frozen=True)
class Computed:
    """A size that a run computes: a tensor of int64 with one element."""

    name: str


def _name(x: Value | str) -> str:
    return x.name if isinstance(x, Value) else x


def _inferred(x: Input, sizes: Sequence[Any]) -> list[Any]:
    """Return the sizes of a Reshape with 0 for those that stay, and -1 for one that follows."""
    result = list(sizes)
    if is_fixed(result) or 0 in result:
        return result
    if isinstance(x, Value):
        for at, (size, own) in enumerate(zip(result, x.dims, strict=False)):
            if isinstance(own, str) and own == str(size):
                result[at] = 0
    others = [at for at, size in enumerate(result) if not isinstance(size, int)]
    if len(others) == 1 and -1 not in result:
        result[others[0]] = -1
    return result
