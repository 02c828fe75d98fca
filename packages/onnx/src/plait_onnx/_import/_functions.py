"""Functions: of the model, and those by which onnx defines operators."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import onnx

from plait_core import Tensor
from plait_graph._capture import is_recording, new_capture, running
from plait_onnx._dtypes import element_type
from plait_onnx._import._builder import Builder, versions
from plait_onnx._import._calls import Call
from plait_onnx._import._errors import text
from plait_onnx._import._program import Program, as_tensor
from plait_onnx._import._registry import Node

__all__ = ["Expansion", "as_function", "call_function"]


def call_function(scope: Any, node: Node, body: Any, name: Any) -> Call:
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
    builder = scope.builder
    if key in builder.active:
        raise node.error("a function calls itself")
    program = builder.programs.get(key)
    if program is None:
        builder.active.add(key)
        inner = scope.of_function(versions(body.opset_import), given)
        program = _program(inner, node, body, left_out)
        builder.active.discard(key)
        if key is not None:
            builder.programs[key] = program
    call: Call = scope.call_of(program)
    return call


def _program(scope: Any, node: Node, body: Any, left_out: tuple[bool, ...]) -> Program:
    """Return the program of a function, for a call that leaves some of its inputs out."""
    program: Program = scope.program
    for name, missing in zip(map(text, body.input), left_out, strict=True):
        slot = scope.define(name, node.where)
        program.inputs.append(slot)
        scope.maybe_host.add(slot)
        if missing:
            scope.slots[name] = -1
    for inner in body.node:
        scope.add_node(inner)
    for i, name in enumerate(map(text, body.output)):
        wanted = i < len(node.outputs) and node.outputs[i]
        if wanted or scope.find(name) is not None:
            scope.output(name)
        else:  # a result that the call does not need, and the body does not compute
            program.outputs.append(scope.define("", node.where))
    program.finish()
    return program


def as_function(body: Any) -> Any:
    """Return the message of a function that onnx's schemas give."""
    if isinstance(body, onnx.FunctionProto):
        return body
    function = onnx.FunctionProto()
    function.ParseFromString(body if isinstance(body, bytes) else body.SerializeToString())
    return function


class Expansion:
    """A node that onnx defines by other operators, which depend on the types of its inputs."""

    def __init__(self, scope: Any, node: Node, proto: Any, schema: Any) -> None:
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
            # a capture of the call does not see this, which reads constants of the definition
            apart = running(new_capture()) if is_recording() else contextlib.nullcontext()
            with apart:
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
        root = self._scope.of_builder(builder)
        call = call_function(root, replace(node, scope=None), body, ("expansion", types))
        return call.program, builder.leaves


def _type(value: Any) -> bytes:
    """Return the type of a value as a TypeProto."""
    kind = onnx.TypeProto()
    if isinstance(value, Tensor):
        kind.tensor_type.elem_type = element_type(value.dtype)
        kind.tensor_type.shape.SetInParent()
        for _ in value.shape:  # the definitions ask for the rank, not for sizes
            kind.tensor_type.shape.dim.add()
    elif isinstance(value, list):
        inner = next((v for v in value if isinstance(v, Tensor)), None)
        kind.sequence_type.elem_type.tensor_type.elem_type = (
            element_type(inner.dtype) if inner is not None else 1
        )
    data: bytes = kind.SerializeToString()
    return data
