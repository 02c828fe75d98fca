"""Models of ONNX files as modules."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx

from plait_core import Tensor
from plait_nn import Module, Parameter
from plait_onnx._dtypes import NUMPY
from plait_onnx._import._builder import Builder
from plait_onnx._import._errors import ModelError, text
from plait_onnx._import._program import as_tensor
from plait_onnx._import._scope import Scope
from plait_onnx._import._tensors import ExternalData
from plait_onnx._model import BUFFERS

__all__ = ["OnnxModule", "load"]

_SMALL = 256  # elements of an array that stays in the host's memory
_MOST_PARTS = 32  # of a name, which become modules in modules


class OnnxModule(Module):
    """The graph of an ONNX file; made by `load`.

    Initializers of floating-point dtypes are parameters, the others buffers. ``state_dict()`` has
    them under their names in the file; parts of a name that points separate are modules.

    Args:
        builder: What the file's nodes became.
        scope: The names and the program of the graph.
        graph: The graph of the file.

    Attributes:
        input_names: What `forward` gets, in order.
        output_names: What it returns.
        opsets: Versions of the operators' sets, by domain.
        metadata: Texts of the file: the producer's name, the description, and its own entries.

    Example:
        >>> import onnx.parser, plait_core as pc, plait_onnx
        >>> text = '''<ir_version: 8, opset_import: ["" : 17]>
        ... double (float[N] x) => (float[N] y) { y = Add(x, x) }'''
        >>> model = plait_onnx.load(onnx.parser.parse_model(text))
        >>> model.input_names, model(pc.tensor([1.0, 2.0]))
        (('x',), tensor([2., 4.]))
    """

    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    opsets: dict[str, int]
    metadata: dict[str, str]

    def __init__(self, builder: Builder, scope: Scope, graph: Any) -> None:
        super().__init__()
        self.opsets = dict(builder.opsets)
        initializers = {scope.keys[i] for i in scope.program.inputs if i in scope.keys}
        self.input_names = tuple(v.name for v in graph.input)
        self.output_names = tuple(v.name for v in graph.output)
        self._elements = {v.name: v.type.tensor_type.elem_type for v in graph.input}
        self._required = [n for n in self.input_names if n not in initializers]
        self._program = scope.program
        self._input_slots = dict(zip(self.input_names, scope.program.inputs, strict=True))
        self._leaves: list[tuple[int, dict[str, Any], str]] = []
        members = {}
        for key, tensor in builder.leaves.items():
            members[key] = self._add(key, tensor, builder.kinds[key])
        for slot, key in scope.keys.items():
            self._leaves.append((slot, *members[key]))

    def _add(self, key: str, tensor: Tensor, kind: str) -> tuple[dict[str, Any], str]:
        """Add a parameter or buffer under its name; return where it is."""
        owner: Module = self
        *parts, name = key.split(".")
        if len(parts) >= _MOST_PARTS or not all((*parts, name)):
            parts, name = [], key.replace(".", "_")
        for part in parts:
            inner = owner._modules.get(part)
            if inner is None:
                if hasattr(owner, part):
                    parts, name, owner = [], key.replace(".", "_"), self
                    break
                inner = Module()
                owner.add_module(part, inner)
            owner = inner
        while hasattr(owner, name):
            name += "_"
        if kind == "parameter":
            owner.register_parameter(name, Parameter(tensor))
            return owner._parameters, name
        owner.register_buffer(name, tensor, persistent=kind == "buffer")
        return owner._buffers, name

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Run the graph.

        Args:
            inputs: The inputs that have no default, in the order of `input_names`: tensors, or
                lists of them for sequences. Plain numbers and small arrays of NumPy stay in the
                host's memory, so that a branch or a shape that they choose is known when the
                module is compiled.
            named: Inputs by name; those with a default, too.

        Returns:
            The output, or a tuple of them if there are several.

        Raises:
            ModelError: Inputs do not fit, or a node fails; the text names the node.

        Example:
            >>> import onnx.parser, plait_core as pc, plait_onnx
            >>> text = '''<ir_version: 8, opset_import: ["" : 17]>
            ... net (float[N] x, float[N] y) => (float[N] z) { z = Sub(x, y) }'''
            >>> model = plait_onnx.load(onnx.parser.parse_model(text))
            >>> model(y=pc.tensor([1.0]), x=pc.tensor([3.0]))
            tensor([2.])
        """
        values: list[Any] = [None] * self._program.count
        for slot, members, name in self._leaves:
            values[slot] = members[name]
        for name, value in self._arguments(inputs, named).items():
            values[self._input_slots[name]] = self._value(name, value)
        with np.errstate(all="ignore"):  # sizes and places are divided as elements are
            results = self._program.run_values(values)
        results = [as_tensor(value) for value in results]
        return results[0] if len(results) == 1 else tuple(results)

    def _value(self, name: str, value: Any) -> Any:
        """Return an input as the program takes it: a number stays in the host's memory."""
        if isinstance(value, Tensor) or value is None:
            return value
        if isinstance(value, (list, tuple)):
            return [self._value(name, part) for part in value]
        kind = NUMPY.get(self._elements.get(name, 0))
        if isinstance(value, (bool, int, float, np.generic, np.ndarray)) and kind is not None:
            array: Any = np.asarray(value, kind)
            return array if array.size <= _SMALL else as_tensor(array)
        raise ModelError(
            f"the model's input {name!r} must be a tensor, a number or an array of NumPy, got "
            f"{type(value).__name__}"
        )

    def _arguments(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        if len(inputs) > len(self._required):
            raise ModelError(
                f"the model has {len(self._required)} inputs without defaults, "
                f"{', '.join(self._required[:20])}; got {len(inputs)}"
            )
        values = dict(zip(self._required, inputs, strict=False))
        for name, value in named.items():
            if name not in self._input_slots:
                raise ModelError(f"the model has no input {name!r}; it has {self.input_names[:20]}")
            if name in values:
                raise ModelError(f"the model's input {name!r} is given twice")
            values[name] = value
        missing = [name for name in self._required if name not in values]
        if missing:
            raise ModelError(f"the model's input {missing[0]!r} is missing")
        return values

    def extra_repr(self) -> str:
        return f"{', '.join(self.input_names[:20])} -> {', '.join(self.output_names[:20])}"


def load(
    file: str | os.PathLike[str] | bytes | Any,
    *,
    folder: str | os.PathLike[str] | None = None,
    limit: int = 1 << 32,
) -> OnnxModule:
    """Return the module of an ONNX model.

    The module runs the nodes of the graph by operators of plait, so gradients reach its parameters,
    and it can be compiled, saved and exported as any module. Loading executes nothing of the file.

    Args:
        file: A path, the bytes of a file, or an ``onnx.ModelProto``.
        folder: Where external data of tensors lie; the folder of the file if it is a path. They
            are mapped to memory. Names that lead out of the folder are refused.
        limit: Bytes that one value may have whose size is set by the model, and not by the shapes
            of its inputs, such as the result of Expand or ConstantOfShape.

    Raises:
        ModelError: The file is no model, or has an operator or type that is not supported. The
            text names the node.
        OSError: The file cannot be read.

    Example:
        >>> import onnx.parser, plait_core as pc, plait_onnx
        >>> text = '''<ir_version: 8, opset_import: ["" : 17]>
        ... net (float[N] x) => (float[N] y) <float[1] scale = {3.0}> { y = Mul(x, scale) }'''
        >>> model = plait_onnx.load(onnx.parser.parse_model(text).SerializeToString())
        >>> model(pc.tensor([1.0, 2.0]))
        tensor([3., 6.], grad_fn=<MulBackward>)
        >>> [name for name, _ in model.named_parameters()]
        ['scale']
    """
    what = "the model"
    if isinstance(file, onnx.ModelProto):
        model = file
    else:
        if isinstance(file, (bytes, bytearray, memoryview)):
            data = bytes(file)
        elif isinstance(file, (str, os.PathLike)):
            what = os.fspath(file)
            with open(file, "rb") as stream:
                data = stream.read()
            folder = folder or os.path.dirname(os.path.abspath(file))
        else:
            raise TypeError(
                f"load: `file` must be a path, bytes or a ModelProto, got {type(file).__name__}"
            )
        model = onnx.ModelProto()
        try:
            model.ParseFromString(data)
        except Exception as error:  # a DecodeError of protobuf
            raise ModelError(f"{what} is not an ONNX model: {error}") from None
        del data
    if not model.HasField("graph"):
        raise ModelError(f"{what} is not an ONNX model: it has no graph")
    try:
        return _module(model, None if folder is None else os.fspath(folder), limit)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from error.__cause__


def _module(model: Any, folder: str | None, limit: int) -> OnnxModule:
    builder = Builder(model, ExternalData(folder), limit)
    scope = Scope(builder, None, builder.opsets)
    graph = model.graph
    initializers = {t.name for t in graph.initializer} | {
        s.values.name for s in graph.sparse_initializer
    }
    for value in graph.input:
        _check_type(value)
    inputs = [text(value.name) for value in graph.input]
    if "" in inputs:
        raise ModelError("an input of the graph has no name")
    noted = [entry.value for entry in model.metadata_props if entry.key == BUFFERS]
    buffers = _buffers(graph) | dict.fromkeys("\n".join(noted).split("\n"), "buffer")
    scope.add_graph(graph, buffers, [n for n in inputs if n not in initializers])
    scope.program.inputs = [scope.slots[name] for name in inputs]
    scope.program.finish()
    module = OnnxModule(builder, scope, graph)
    module.metadata = {
        str(key): str(value)
        for key, value in (
            ("producer_name", model.producer_name),
            ("producer_version", model.producer_version),
            ("domain", model.domain),
            ("doc_string", model.doc_string),
            *((e.key, e.value) for e in model.metadata_props if e.key != BUFFERS),
        )
        if value
    }
    return module


def _check_type(value: Any) -> None:
    if value.type.WhichOneof("value") == "tensor_type":
        element = value.type.tensor_type.elem_type
        if element == 8:
            raise ModelError(f"input {value.name!r}: tensors of strings cannot be represented")


def _buffers(graph: Any) -> dict[str, str]:
    """Return initializers that are no parameters: statistics of batch norms, scales of integers."""
    found = {}
    for node in graph.node:
        if node.op_type == "BatchNormalization":
            places = [3, 4]
        elif node.op_type in _NUMBERS:
            places = list(range(1, len(node.input)))
        else:
            continue
        for i in places:
            if i < len(node.input):
                found[node.input[i]] = "buffer"
    return found


# operators whose inputs after the first say how, and are not trained
_NUMBERS = frozenset(
    [
        "Resize",
        "Upsample",
        "Clip",
        "Dropout",
        "Pad",
        "QuantizeLinear",
        "DequantizeLinear",
        "NonMaxSuppression",
        "Range",
        "Trilu",
        "CumSum",
        "OneHot",
        "QLinearConv",
        "QLinearMatMul",
        "Shrink",
        "Pow",
    ]
)
