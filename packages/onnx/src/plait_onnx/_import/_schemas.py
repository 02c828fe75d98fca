"""Whether a node fits the definition that onnx has of its operator."""

from __future__ import annotations

from typing import Any

import onnx.defs

from plait_onnx._import._registry import Node

__all__ = ["schema_of"]


def schema_of(node: Node, opsets: dict[str, int]) -> Any:
    """Return onnx's definition of a node's operator, which the node must fit."""
    if node.domain not in opsets:
        raise node.error(f"the model imports no opset of the domain {node.domain!r}")
    opset = opsets[node.domain]
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
        kind: Any = attribute.type
        if given is not None and given.type not in (0, int(kind)):
            raise node.error(f"attribute {name!r} must be of another kind")
    return schema
