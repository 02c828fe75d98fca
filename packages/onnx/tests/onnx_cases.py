"""Cases that the package onnx has for backends: what is in them, and their values as tensors."""

import importlib
import pkgutil
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

from plait_onnx._import import _tensors

SLOW = ("averagepool", "lppool", "maxpool")  # computing what these expect takes seconds


def tensor_of(value):
    """Return a value of a case as what a module takes."""
    if isinstance(value, list):
        return [tensor_of(part) for part in value]
    if value is None:
        return None
    message = value
    if not isinstance(value, onnx.TensorProto):
        message = numpy_helper.from_array(np.asarray(value))
    return _tensors.read_tensor(message, _tensors.ExternalData(None), "input")


def messages_in(message):
    """Yield all messages in one of protobuf."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            repeated = not hasattr(value, "ListFields")
            for inner in value if repeated else [value]:
                yield from messages_in(inner)


def elements_in(model):
    """Return the element types of a model."""
    found = set()
    for message in messages_in(model):
        if isinstance(message, onnx.TypeProto.Tensor):
            found.add(message.elem_type)
        elif isinstance(message, onnx.TensorProto):
            found.add(message.data_type)
        elif isinstance(message, onnx.NodeProto) and message.op_type in ("Cast", "SequenceEmpty"):
            found.update(a.i for a in message.attribute if a.name in ("to", "dtype"))
    return found - {0}


def is_of_default_domain(model):
    nodes = [m for m in messages_in(model) if isinstance(m, onnx.NodeProto)]
    return not any(node.domain.startswith("ai.onnx.") for node in nodes)


def node_cases(without=()):
    import onnx.backend.test.case.node as nodes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.iter_modules(nodes.__path__):
            if module.name not in without:
                importlib.import_module(f"{nodes.__name__}.{module.name}")
    return sorted(nodes._NodeTestCases, key=lambda case: case.name)
