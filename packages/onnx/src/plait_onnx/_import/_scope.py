"""Graphs of a file: names, nodes and subgraphs, which become programs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

import plait_core as pc
from plait_core import Tensor
from plait_onnx._import._elements import element_of, packed_bits
from plait_onnx._import._errors import ModelError, text
from plait_onnx._import._joined import activations
from plait_onnx._import._program import Program, Step, as_tensor
from plait_onnx._import._registry import DOMAINS, HOST, Node, entry_for
from plait_onnx._import._tensors import ExternalData, host_of, read_tensor, sparse_tensor

__all__ = ["Builder", "Scope"]

_DEPTH = 40  # of graphs in graphs
_SMALL = 256  # elements of a constant that is kept in the host's memory, too
# operators whose results have the elements of their first input
_MOVES = frozenset(
    [
        "Identity",
        "Reshape",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Slice",
        "Gather",
        "Concat",
        "Expand",
        "Tile",
    ]
)
# operators that get values as they are: arrays, sequences, None
_ANY = frozenset(
    [
        "If",
        "Loop",
        "Scan",
        "SequenceMap",
        "Range",
        "Shape",
        "Size",
        "Identity",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
        "SequenceConstruct",
        "SequenceInsert",
        "SequenceAt",
    ]
)


class Builder:
    """What the graphs of one model share.

    Attributes:
        opsets: Versions by domain.
        functions: The model's own functions, by domain, name and overload.
        leaves: Tensors of initializers and constants, by their keys.
        kinds: "parameter", "buffer" or "constant" for each of them.
        arrays: Their values in the host's memory, if they are small.
    """

    def __init__(self, model: Any, external: ExternalData, limit: int) -> None:
        self.opsets = versions(model.opset_import)
        self.external = external
        self.limit = limit
        self.functions = {
            (DOMAINS.get(text(f.domain), f.domain), text(f.name), getattr(f, "overload", "")): f
            for f in model.functions
        }
        self.leaves: dict[str, Tensor] = {}
        self.kinds: dict[str, str] = {}
        self.arrays: dict[str, Any] = {}
        self.programs: dict[Any, Program] = {}
        self.active: set[Any] = set()

    def add_leaf(self, name: str, tensor: Tensor, kind: str) -> str:
        key = name or "constant"
        number = 1
        while key in self.leaves:
            number += 1
            key = f"{name}_{number}"
        self.leaves[key] = tensor
        self.kinds[key] = kind
        if tensor.numel() <= _SMALL and tensor.ndim <= 2 and not tensor.is_complex():
            self.arrays[key] = host_of(tensor)
        return key


def _kind_number(attribute: Any) -> int:
    return int(attribute.type)


def versions(imports: Any) -> dict[str, int]:
    return {DOMAINS.get(text(o.domain), o.domain): o.version for o in imports}


class Scope:
    """Names of one graph while its program is made."""

    def __init__(
        self,
        builder: Builder,
        parent: Scope | None,
        opsets: dict[str, int],
        attributes: dict[str, Any] | None = None,
        depth: int = 0,
    ) -> None:
        self.builder = builder
        self.parent = parent
        self.opsets = opsets
        self.attributes = attributes  # of the call, within a function
        self.depth = depth
        self.program = Program()
        self.slots: dict[Any, int] = {}
        self.keys: dict[int, str] = {}  # leaves
        self.maybe_host: set[int] = set()
        self.elements: dict[str, int] = {}  # of values that share bytes in the file
        if depth > _DEPTH:
            raise ModelError(f"graphs and functions are nested more than {_DEPTH} deep")

    # ---- names -----------------------------------------------------------------------------------

    def new(self, name: Any) -> int:
        slot = self.program.count
        self.program.count += 1
        self.slots[name] = slot
        return slot

    def define(self, name: str, where: str) -> int:
        if not name:
            self.program.count += 1
            return self.program.count - 1
        if name in self.slots and not (self.parent and self._is_captured(name)):
            raise ModelError(f"{where}: the value {name!r} is defined twice")
        return self.new(name)

    def _is_captured(self, name: str) -> bool:
        return any(self.slots[name] == i for i, _ in self.program.captured)

    def find(self, name: Any) -> int | None:
        """Return the number of a value, which may be one of a graph outside."""
        if name in self.slots:
            return self.slots[name]
        if self.parent is None:
            return None
        outside = self.parent.find(name)
        if outside is None:
            return None
        slot = self.new(name)
        self.program.captured.append((slot, name))
        if outside in self.parent.keys:
            self.keys[slot] = self.parent.keys[outside]
        if outside in self.parent.maybe_host:
            self.maybe_host.add(slot)
        return slot

    def leaf(self, name: str, tensor: Tensor, kind: str, where: str) -> None:
        """Define a value by an initializer or constant."""
        key = self.builder.add_leaf(name, tensor, kind)
        root = self
        while root.parent is not None:
            root = root.parent
        if root is self:
            slot = self.define(name, where)
        else:
            root.keys[root.new(("leaf", key))] = key
            found = self.find(("leaf", key))
            assert found is not None
            if name in self.slots and not self._is_captured(name):
                raise ModelError(f"{where}: the value {name!r} is defined twice")
            slot = self.slots[name] = found
        self.keys[slot] = key

    def read(self, tensor: Any, where: str) -> Tensor:
        return read_tensor(tensor, self.builder.external, where)

    # ---- graphs ----------------------------------------------------------------------------------

    def add_graph(self, graph: Any, kinds: dict[str, str], inputs: list[str] | None = None) -> None:
        """Add initializers and nodes of a graph, and define its outputs."""
        for value in graph.input:
            self._note_element(text(value.name), value.type.tensor_type.elem_type)
        if inputs is None:
            inputs = [text(value.name) for value in graph.input]
        for name in inputs:
            slot = self.define(name, "graph input")
            self.program.inputs.append(slot)
            if self.depth or self.parent is None:
                self.maybe_host.add(slot)
        for tensor in graph.initializer:
            where = f"initializer {text(tensor.name)[:200]!r}"
            value = self.read(tensor, where)
            kind = kinds.get(tensor.name, "parameter" if value.is_floating_point() else "buffer")
            self.leaf(tensor.name, value, kind, where)
            self._note_element(tensor.name, tensor.data_type)
        for sparse in graph.sparse_initializer:
            where = f"initializer {text(sparse.values.name)[:200]!r}"
            value = sparse_tensor(sparse, self.builder.external, self.builder.limit, where)
            self.leaf(sparse.values.name, value, "buffer", where)
        joined = activations(graph)
        waiting = {i for places in joined.values() for i in places}
        for i, node in enumerate(graph.node):
            if i in waiting:
                continue
            earlier = [graph.node[k] for k in joined.get(i, ())]
            if earlier and self._add_joined(earlier[0], node):
                continue
            for proto in (*earlier, node):
                self.add_node(proto)
        for value_info in graph.output:
            self.output(text(value_info.name))
        self.program.finish()

    def output(self, name: str) -> None:
        slot = self.find(name)
        if slot is None:
            raise ModelError(f"graph output {name[:200]!r}: no node computes it")
        self.program.outputs.append(slot)

    def subgraph(self, graph: Any, where: str) -> Call:
        scope = Scope(self.builder, self, self.opsets, self.attributes, self.depth + 1)
        scope.add_graph(graph, {})
        return self.call_of(scope.program)

    def call_of(self, program: Program) -> Call:
        """Return a program with the numbers of the values that it reads from here."""
        slots = []
        for _, name in program.captured:
            slot = self.find(name)
            assert slot is not None
            slots.append(slot)
        return Call(program, slots)

    # ---- nodes -----------------------------------------------------------------------------------

    def _add_joined(self, convolution: Any, activation: Any) -> bool:
        """Add a convolution and its activation as one step, if an operator has the activation."""
        options = self._activation(activation)
        if options is None:
            return False
        both = onnx.NodeProto()
        both.CopyFrom(convolution)
        both.output[0] = activation.output[0]
        self.add_node(both, options)
        return True

    def _activation(self, proto: Any) -> tuple[str, float, float, float] | None:
        """Return an activation's name, limits and slope."""
        given = {a.name: a.f for a in proto.attribute if not a.ref_attr_name}
        if len(given) != len(proto.attribute) or len(proto.output) != 1:
            return None
        if proto.op_type == "LeakyRelu":
            return ("leaky_relu", 0.0, 0.0, given.get("alpha", 0.01))
        if proto.op_type == "Clip":
            limits = [given.get("min"), given.get("max")]
            for k, name in enumerate(proto.input[1:3]):
                slot = self.find(name) if name else None
                array = self.builder.arrays.get(self.keys.get(slot if slot is not None else -1, ""))
                if array is None or array.size != 1:
                    return None
                limits[k] = float(array.reshape(()))
            if limits[0] is None or limits[1] is None or not limits[0] <= limits[1]:
                return None
            return ("hardtanh", limits[0], limits[1], 0.0)
        names = {"Relu": "relu", "HardSwish": "hardswish", "Mul": "silu"}
        return (names[proto.op_type], 0.0, 0.0, 0.0)

    def add_node(self, proto: Any, activation: Any = None) -> None:
        domain = DOMAINS.get(text(proto.domain), proto.domain)
        node = Node(
            name=text(proto.name),
            op_type=text(proto.op_type),
            domain=domain,
            version=0,
            inputs=[text(name) for name in proto.input],
            outputs=[text(name) for name in proto.output],
            scope=self,
            limit=self.builder.limit,
            activation=activation,
        )
        for attribute in proto.attribute:
            if attribute.name in node.attributes:
                raise node.error(f"attribute {attribute.name!r} is given twice")
            name = text(attribute.name)
            if text(attribute.ref_attr_name):
                attribute = (self.attributes or {}).get(attribute.ref_attr_name)
                if attribute is None:  # neither the call nor the function has a value
                    continue
            node.attributes[name] = attribute
        self._add(node, proto)

    def _add(self, node: Node, proto: Any) -> None:
        slots = []
        for i, name in enumerate(node.inputs):
            slot = self.find(name) if name else -1
            if slot == -1:  # an input that the call of this function leaves out
                node.inputs[i] = ""
            if slot is None:
                raise node.error(
                    f"input {name[:200]!r} is no input of the graph, no initializer, and no node "
                    "before this one computes it"
                )
            slots.append(slot)
        if (node.domain, node.op_type) == ("", "Constant"):
            self._constant(node)
            return
        function, calls, entry = self._function(node, proto)
        extra = [slot for call in calls for slot in call.slots]
        step = Step(node.where, function, slots + extra)
        host = self._classify(step, node, len(slots), entry)
        step.outputs = [self.define(name, node.where) if name else -1 for name in node.outputs]
        if host:
            self.maybe_host.update(i for i in step.outputs if i >= 0)
        self._note_elements(node)
        self.program.steps.append(step)

    def _classify(self, step: Step, node: Node, count: int, entry: Any) -> bool:
        """Find out which inputs of a step may be arrays; return whether its results may be."""
        arrays = self.builder.arrays
        if entry is not None:
            step.host, step.arrays = entry.host, entry.constants
        for i, slot in enumerate(step.inputs[:count]):
            key = self.keys.get(slot)
            if key in arrays:
                step.constants[i] = arrays[key]
        if entry is None or node.op_type in _ANY:
            step.mode = Step.ANY
            return True
        step.dynamic = [
            i for i, slot in enumerate(step.inputs) if i not in step.constants and slot >= 0
        ]
        may = [i for i in step.dynamic if step.inputs[i] in self.maybe_host]
        build = HOST.get(node.op_type) if node.domain == "" else None
        if build is not None and may == step.dynamic:
            integers = all(array.dtype.kind in "iub" for array in step.constants.values())
            if may or integers:
                step.host_function = build(node)
        if may or step.host or step.arrays or step.host_function is not None:
            step.mode = Step.MIXED
        return step.host_function is not None or node.op_type in ("Shape", "Size")

    def _constant(self, node: Node) -> None:
        values = [name for name in node.attributes if name.startswith(("value", "sparse_value"))]
        if len(values) != 1 or len(node.outputs) != 1:
            raise node.error("must have one of the attributes value, value_int, value_floats ...")
        kind = values[0]
        if kind == "value":
            tensor = node.tensor("value")
        elif kind == "sparse_value":
            sparse = node._get("sparse_tensor", kind, None)
            tensor = sparse_tensor(sparse, self.builder.external, self.builder.limit, node.where)
        elif kind in ("value_int", "value_ints"):
            value = node.integer(kind) if kind == "value_int" else node.integers(kind)
            tensor = pc.tensor(np.array(value, np.int64))
        elif kind in ("value_float", "value_floats"):
            value = node.number(kind) if kind == "value_float" else node.numbers(kind)
            tensor = pc.tensor(np.array(value, np.float32))
        else:
            raise node.error(f"{kind}: tensors of strings cannot be represented")
        self.leaf(node.outputs[0], tensor, "constant", node.where)
        if kind == "value":
            self._note_element(node.outputs[0], node.attributes["value"].t.data_type)

    def _note_element(self, name: str, element: int) -> None:
        if packed_bits(element):
            self.elements[name] = element

    def _note_elements(self, node: Node) -> None:
        """Note the element types of results that share bytes in files."""
        if node.domain or not node.outputs:
            return
        if node.op_type == "Cast":
            element = node.integer("to")
        elif node.op_type == "QuantizeLinear":
            element = node.integer("output_dtype", 0) or node.element(2)
        elif node.op_type == "CastLike":
            element = node.element(1)
        elif node.op_type in _MOVES:
            element = node.element(0)
        else:
            return
        self._note_element(node.outputs[0], element)

    def _function(self, node: Node, proto: Any) -> tuple[Callable[..., Any], list[Call], Any]:
        """Return the function of a node, and the programs that it calls."""
        overload = getattr(proto, "overload", "")
        own = self.builder.functions.get((node.domain, node.op_type, overload))
        if own is not None:
            call = self._call_function(node, own, f"{node.domain}.{node.op_type}.{overload}")
            return call.function(len(node.inputs)), [call], None
        schema = self._schema(node)
        entry = entry_for(node.domain, node.op_type, node.version)
        if entry is not None:
            calls: list[Call] = []
            node.scope = _NodeScope(self, calls)
            function = entry.build(node)
            if calls:
                function = _with_captured(function, len(node.inputs), calls)
            return function, calls, entry
        if schema.has_function:
            body = schema.get_function_with_opset_version(self.opsets[node.domain])
            body = body or schema.function_body
            call = self._call_function(node, as_function(body), ("schema", node.op_type))
            return call.function(len(node.inputs)), [call], None
        if schema.has_context_dependent_function:
            return _Expansion(self, node, proto, schema), [], None
        raise node.error(f"the operator, of version {node.version}, is not supported")

    def _schema(self, node: Node) -> Any:
        if node.domain not in self.opsets:
            raise node.error(f"the model imports no opset of the domain {node.domain!r}")
        opset = self.opsets[node.domain]
        newest = onnx.defs.onnx_opset_version() if not node.domain else None
        if opset < 1 or (newest is not None and opset > newest):
            raise node.error(f"opset {opset} is unknown; the installed onnx has 1 to {newest}")
        try:
            schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
        except onnx.defs.SchemaError:
            raise node.error(
                f"opset {opset} of {node.domain or 'the default domain'} has no such operator"
            ) from None
        node.version = schema.since_version
        least, most = schema.min_input, schema.max_input
        if not least <= len(node.inputs) <= most:
            raise node.error(f"must have {least} to {most} inputs, it has {len(node.inputs)}")
        if len(node.outputs) > schema.max_output or len(node.outputs) < schema.min_output:
            raise node.error(f"has {len(node.outputs)} outputs, at most {schema.max_output} exist")
        option = onnx.defs.OpSchema.FormalParameterOption.Single
        for i, formal in enumerate(schema.inputs):
            if formal.option == option and i < least and node.missing(i):
                raise node.error(f"input {i} ({formal.name}) is left out")
        for name in node.attributes:
            if name not in schema.attributes:
                raise node.error(f"has no attribute {name!r} in version {node.version}")
        for name, attribute in schema.attributes.items():
            if attribute.required and name not in node.attributes:
                raise node.error(f"attribute {name!r} is missing")
            given = node.attributes.get(name)
            if given is not None and given.type not in (0, _kind_number(attribute)):
                raise node.error(f"attribute {name!r} must be of another kind")
        return schema

    def _call_function(self, node: Node, body: Any, name: Any) -> Call:
        """Return the call of a function's body with the attributes of a node."""
        given = dict(node.attributes)
        for default in body.attribute_proto:
            given.setdefault(text(default.name), default)
        for required in map(text, body.attribute):
            if required not in given and not isinstance(name, tuple):
                raise node.error(f"attribute {required!r} is missing")
        if len(node.inputs) > len(body.input) or len(node.outputs) > len(body.output):
            raise node.error(
                f"its function has {len(body.input)} inputs and {len(body.output)} outputs, "
                f"the node {len(node.inputs)} and {len(node.outputs)}"
            )
        graphs = any(a.HasField("g") or len(a.graphs) for a in given.values())
        texts = tuple(sorted((k, a.SerializeToString()) for k, a in given.items()))
        left_out = tuple(node.missing(i) for i in range(len(body.input)))
        needed = tuple(bool(name) for name in node.outputs)
        key = None if graphs else (name, texts, left_out, needed)
        root = self
        while root.parent is not None:
            root = root.parent
        if key in self.builder.active:
            raise node.error("a function calls itself")
        program = self.builder.programs.get(key)
        scope = Scope(self.builder, root, versions(body.opset_import), given, self.depth + 1)
        if program is None:
            self.builder.active.add(key)
            # names of the caller are not seen: only initializers of the body come from the root
            scope.parent = _Leaves(root)  # type: ignore[assignment]
            names = [text(name) for name in body.input]
            for i, value in enumerate(names):
                slot = scope.define(value, node.where)
                scope.program.inputs.append(slot)
                scope.maybe_host.add(slot)
                if left_out[i]:
                    scope.slots[value] = -1
            for inner in body.node:
                scope.add_node(inner)
            for i, value in enumerate(map(text, body.output)):
                wanted = i < len(node.outputs) and node.outputs[i]
                if wanted or scope.find(value) is not None:
                    scope.output(value)
                else:  # a result that the call does not need, and the body does not compute
                    scope.program.outputs.append(scope.define("", node.where))
            scope.program.finish()
            self.builder.active.discard(key)
            program = scope.program
            if key is not None:
                self.builder.programs[key] = program
        return self.call_of(program)


class _Leaves:
    """The root, of which only initializers and constants of subgraphs are seen."""

    def __init__(self, root: Scope) -> None:
        self._root = root
        self.keys = root.keys
        self.maybe_host: set[int] = set()
        self.parent = None
        self.slots = root.slots
        self.new = root.new

    def find(self, name: Any) -> int | None:
        return self._root.find(name) if isinstance(name, tuple) else None


class _NodeScope:
    """What an entry needs of a scope; it notes the programs that a node calls."""

    def __init__(self, scope: Scope, calls: list[Call]) -> None:
        self._scope = scope
        self._calls = calls
        self.elements = scope.elements

    def read(self, tensor: Any, where: str) -> Tensor:
        return self._scope.read(tensor, where)

    def subgraph(self, graph: Any, where: str) -> Call:
        call = self._scope.subgraph(graph, where)
        self._calls.append(call)
        return call


class Call:
    """A program with the values that it reads from the graph around it."""

    def __init__(self, program: Program, slots: list[int]) -> None:
        self.program = program
        self.slots = slots

    @property
    def input_count(self) -> int:
        return len(self.program.inputs)

    @property
    def output_count(self) -> int:
        return len(self.program.outputs)

    def function(self, count: int) -> Callable[..., Any]:
        """Return a function of inputs and captured values."""
        program = self.program
        padding = [None] * (len(program.inputs) - count)

        def run(*args: Any) -> Any:
            return tuple(program.run([*args[:count], *padding], args[count:]))

        return run


def _with_captured(
    function: Callable[..., Any], count: int, calls: list[Call]
) -> Callable[..., Any]:
    """Return a function that gets captured values after its inputs, and gives them to `function`.

    Its first argument is a list with the captured values of each program.
    """
    ends = [count]
    for call in calls:
        ends.append(ends[-1] + len(call.slots))

    def run(*args: Any) -> Any:
        captured = [args[i:j] for i, j in itertools.pairwise(ends)]
        return function(captured, *args[:count])

    return run


def as_function(body: Any) -> Any:
    """Return the message of a function that onnx's schemas give."""
    if isinstance(body, onnx.FunctionProto):
        return body
    function = onnx.FunctionProto()
    function.ParseFromString(body if isinstance(body, bytes) else body.SerializeToString())
    return function


class _Expansion:
    """A node that onnx defines by other operators, which depend on the types of its inputs."""

    def __init__(self, scope: Scope, node: Node, proto: Any, schema: Any) -> None:
        self._scope = scope
        self._node = node
        self._schema = schema
        self._proto = onnx.NodeProto()
        self._proto.CopyFrom(proto)
        del self._proto.attribute[:]
        for name, attribute in node.attributes.items():
            copy = self._proto.attribute.add()
            copy.CopyFrom(attribute)
            copy.name = name
        self._models: dict[Any, Any] = {}

    def __call__(self, *args: Any) -> Any:
        tensors = [as_tensor(value) for value in args]
        types = tuple(_type(value) for value in tensors)
        if types not in self._models:
            self._models[types] = self._build(types)
        program, leaves = self._models[types]
        device = next((x.device for x in tensors if isinstance(x, Tensor)), None)
        captured = [leaves[name[1]].to(device) for _, name in program.captured]
        padding = [None] * (len(program.inputs) - len(tensors))
        return tuple(program.run([*tensors, *padding], captured))

    def _build(self, types: tuple[bytes, ...]) -> tuple[Program, dict[str, Tensor]]:
        node = self._node
        opset = self._scope.opsets[node.domain]
        proto = self._proto.SerializeToString()
        data = b""
        versions_ = self._schema.context_dependent_function_opset_versions
        for version in sorted((v for v in versions_ if v <= opset), reverse=True):
            data = self._schema.get_context_dependent_function_with_opset_version(
                version, proto, list(types)
            )
            if data:
                break
        if not data:
            raise node.error("onnx defines no function for these types")
        body = as_function(data)
        builder = Builder(onnx.ModelProto(), self._scope.builder.external, node.limit)
        builder.functions = self._scope.builder.functions
        root = Scope(builder, None, self._scope.opsets)
        call = root._call_function(
            replace(node, scope=None),
            body,
            ("expansion", types),
        )
        return call.program, builder.leaves


def _type(value: Any) -> bytes:
    """Return the type of a value as a TypeProto."""
    kind = onnx.TypeProto()
    if isinstance(value, Tensor):
        kind.tensor_type.elem_type = element_of(value.dtype)
        kind.tensor_type.shape.SetInParent()
        for n in value.shape:
            kind.tensor_type.shape.dim.add().dim_value = int(n)
    elif isinstance(value, list):
        inner = next((v for v in value if isinstance(v, Tensor)), None)
        kind.sequence_type.elem_type.tensor_type.elem_type = (
            element_of(inner.dtype) if inner is not None else 1
        )
    data: bytes = kind.SerializeToString()
    return data
