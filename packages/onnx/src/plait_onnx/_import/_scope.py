"""Graphs of a file: names, nodes and subgraphs, which become programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

import plait_core as pc
from plait_core import Tensor
from plait_onnx._dtypes import packed_bits
from plait_onnx._import._builder import Builder
from plait_onnx._import._calls import Call, with_captured
from plait_onnx._import._errors import ModelError, text
from plait_onnx._import._functions import Expansion, as_function, call_function
from plait_onnx._import._joined import activation_of, activations
from plait_onnx._import._program import Program, Step
from plait_onnx._import._registry import DOMAINS, HOST, Node, entry_for
from plait_onnx._import._schemas import schema_of
from plait_onnx._import._tensors import read_tensor, sparse_tensor

__all__ = ["Scope"]

_DEPTH = 40  # of graphs in graphs
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

    def of_function(self, opsets: dict[str, int], attributes: dict[str, Any]) -> Scope:
        """Return the scope of a function's body, which sees none of the names here."""
        root = self
        while root.parent is not None:
            root = root.parent
        scope = Scope(self.builder, None, opsets, attributes, self.depth + 1)
        scope.parent = _Leaves(root)  # type: ignore[assignment]
        return scope

    def of_builder(self, builder: Builder) -> Scope:
        """Return the root of a model of its own, with the opsets of this one."""
        return Scope(builder, None, self.opsets)

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
        options = activation_of(activation, self._array)
        if options is None:
            return False
        both = onnx.NodeProto()
        both.CopyFrom(convolution)
        both.output[0] = activation.output[0]
        self.add_node(both, options)
        return True

    def _array(self, name: str) -> Any:
        """Return the array of a constant that is small; None for other values."""
        slot = self.find(name) if name else None
        return None if slot is None else self.builder.arrays.get(self.keys.get(slot, ""))

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
                    f"input {name[:200]!r} is not a graph input, an initializer or the output of "
                    "an earlier node"
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
            call = call_function(self, node, own, f"{node.domain}.{node.op_type}.{overload}")
            return call.function(len(node.inputs)), [call], None
        schema = schema_of(node, self.opsets)
        entry = entry_for(node.domain, node.op_type, node.version)
        if entry is not None:
            calls: list[Call] = []
            node.scope = _NodeScope(self, calls)
            function = entry.build(node)
            if calls:
                function = with_captured(function, len(node.inputs), calls)
            return function, calls, entry
        if schema.has_function:
            body = schema.get_function_with_opset_version(self.opsets[node.domain])
            body = body or schema.function_body
            call = call_function(self, node, as_function(body), ("schema", node.op_type))
            return call.function(len(node.inputs)), [call], None
        if schema.has_context_dependent_function:
            return Expansion(self, node, proto, schema), [], None
        raise node.error(f"the operator, of version {node.version}, is not supported")


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
