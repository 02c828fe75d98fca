"""`torch.onnx`: modules as ONNX files, which the package plait-onnx writes."""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Mapping, Sequence
from enum import IntEnum
from types import ModuleType
from typing import Any

import plait
from plait.func.pytree import tree_flatten, tree_unflatten
from plait_torch._compiler import exporting
from plait_torch._export import free_sizes

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "dynamo_export",
    "export",
    "is_in_onnx_export",
    "is_onnxrt_backend_supported",
]

_running = threading.local()  # `now` is True during an export


class OnnxExporterError(RuntimeError):
    """A module that cannot be exported."""


class TrainingMode(IntEnum):
    """In which mode PyTorch's exporter runs a model."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class TensorProtoDataType(IntEnum):
    """The numbers of dtypes in ONNX's files."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


class OperatorExportTypes(IntEnum):
    """What PyTorch's exporter does with operators that ONNX does not have."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class ONNXProgram:
    """A module as an ONNX model, as `export` returns it.

    Calling it runs the model in onnxruntime, if that is installed.
    """

    def __init__(self, exported: Any, keeps_initializers: bool = False) -> None:
        self._exported, self._keeps_initializers = exported, keeps_initializers

    @property
    def model_proto(self) -> Any:
        """The model with its weights, as a message of the package `onnx`."""
        model = self._exported.to_proto()
        if self._keeps_initializers:
            _add_inputs(model)
        return model

    def save(
        self,
        destination: str | os.PathLike[str] | io.IOBase,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model to a file.

        Args:
            destination: path, or an object with ``write``.
            include_initializers: must be True.
            keep_initializers_as_inputs: list the weights among the inputs, too.
            external_data: True: the weights are written to a second file, ``<destination>.data``;
                None: if they have 1.8 GB or more.
        """
        if not include_initializers:
            raise NotImplementedError("ONNXProgram.save: a file has the weights in it or beside it")
        keeps = keep_initializers_as_inputs or self._keeps_initializers
        if isinstance(destination, (str, os.PathLike)) and not keeps:
            self._exported.save(destination, external_data=external_data)
            return
        model = self._exported.to_proto()
        if keeps:
            _add_inputs(model)
        text = model.SerializeToString()
        if isinstance(destination, (str, os.PathLike)):
            with open(destination, "wb") as file:
                file.write(text)
        else:
            destination.write(text)

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Run the model in onnxruntime, and return its outputs."""
        import onnxruntime

        text = self.model_proto.SerializeToString()
        session = onnxruntime.InferenceSession(text, providers=["CPUExecutionProvider"])
        leaves = tree_flatten((args, kwargs))[0]
        tensors = [leaf for leaf in leaves if isinstance(leaf, plait.Tensor)]
        names = [each.name for each in session.get_inputs()]
        feed = {name: t.detach().numpy() for name, t in zip(names, tensors, strict=True)}
        return [plait.from_numpy(array) for array in session.run(None, feed)]


def _add_inputs(model: Any) -> None:
    """List the weights among the inputs of a model."""
    for tensor in model.graph.initializer:
        entry = model.graph.input.add(name=tensor.name)
        entry.type.tensor_type.elem_type = tensor.data_type
        for size in tensor.dims:
            entry.type.tensor_type.shape.dim.add(dim_value=size)


def _exporter() -> ModuleType:
    try:
        import plait_onnx
    except ModuleNotFoundError as error:
        missing = (error.name or "").replace("_", "-")
        raise ModuleNotFoundError(
            "torch.onnx.export: the package plait-onnx is not installed, or the package "
            f"{missing} that it needs (pip install plait-onnx)",
            name=error.name,
        ) from None
    return plait_onnx


def export(
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | io.IOBase | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: Any = None,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Any] | None = None,
    training: TrainingMode = TrainingMode.EVAL,
    custom_opsets: Any = None,
    **options: Any,
) -> ONNXProgram | None:
    """Write a module as an ONNX model, by `plait_onnx.export`: see there what it may contain.

    Args:
        model: the module or function.
        args: a tuple of its arguments, or a tensor; with ``dynamo=False`` a dict at the end has
            named arguments.
        f: the file, or an object with ``write``; None: none is written.
        kwargs: named arguments.
        input_names, output_names: names of the inputs and outputs.
        opset_version: the version of ONNX's operators; None: that of `plait_onnx.export`.
        dynamo: False: without result, and in the mode `training`.
        dynamic_shapes: which sizes stay free, as for `torch.export.export`.
        dynamic_axes: the same, by the names of inputs: dicts from dimensions to names, or lists of
            dimensions.
        export_params: must be True.
        keep_initializers_as_inputs: list the weights among the inputs, too.
        training: the mode in which the module runs, with ``dynamo=False``.
        custom_translation_table, custom_opsets: must be None.
        verbose, external_data, options: have no effect; weights of 1.8 GB or more are written
            beside the file.

    Raises:
        ModuleNotFoundError: without the package plait-onnx.
        NotImplementedError: if a call cannot be part of a graph, or ONNX cannot express it.
    """
    exporter = _exporter()
    for name, given in (
        ("custom_translation_table", custom_translation_table),
        ("custom_opsets", custom_opsets),
        ("export_params", not export_params),
    ):
        if given:
            raise NotImplementedError(f"torch.onnx.export: `{name}` is not available")
    positional = args if isinstance(args, tuple) else (args,)
    named = dict(kwargs or {})
    if not dynamo and positional and isinstance(positional[-1], dict):
        named.update(positional[-1])
        positional = positional[:-1]
    chosen: dict[str, Any] = {} if opset_version is None else {"opset": opset_version}
    if dynamic_axes:
        axes = _named_axes(dynamic_axes)
        chosen["dynamic"] = _by_tensor(axes, model, positional, named, input_names)
    elif dynamic_shapes is not None:
        import plait_graph

        chosen |= free_sizes(plait_graph, dynamic_shapes)
    modules = [model] if isinstance(model, plait.nn.Module) and not dynamo else []
    modes = [(each, each.training) for module in modules for each in module.modules()]
    if training != TrainingMode.PRESERVE:
        for module in modules:
            module.train(training == TrainingMode.TRAINING)
    _running.now = exporting.now = True
    try:
        exported = exporter.export(
            *(model, positional),
            kwargs=named,
            input_names=input_names,
            output_names=output_names,
            **chosen,
        )
    finally:
        _running.now = exporting.now = False
        for each, mode in modes:
            each.training = mode
    program = ONNXProgram(exported, keep_initializers_as_inputs)
    if f is not None:
        program.save(f)
    return program if dynamo else None


dynamo_export = export


def _named_axes(dynamic_axes: Mapping[str, Any]) -> dict[str, dict[int, str]]:
    """Return a name for each free dimension, by the name of the tensor."""
    result: dict[str, dict[int, str]] = {}
    for tensor, axes in dynamic_axes.items():
        pairs = axes.items() if isinstance(axes, Mapping) else ((axis, None) for axis in axes)
        result[tensor] = {
            int(axis): re.sub(r"\W", "_", name or f"{tensor}_dynamic_axes_{at}")
            for at, (axis, name) in enumerate(pairs, 1)
        }
    return result


def _by_tensor(
    axes: Mapping[str, dict[int, str]],
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    input_names: Sequence[str] | None,
) -> Any:
    """Return the free dimensions in the structure of the arguments.

    Names are those of inputs; names of outputs are left out, whose sizes follow.
    """
    leaves, structure = tree_flatten((args, dict(kwargs)))
    at = [place for place, leaf in enumerate(leaves) if isinstance(leaf, plait.Tensor)]
    specs: list[Any] = [None] * len(leaves)
    for place, name in zip(at, input_names or (), strict=False):
        own = axes.get(name)
        if own:
            specs[place] = {axis % leaves[place].ndim: text for axis, text in own.items()}
    positional, named = tree_unflatten(specs, structure)
    return [*positional, *named.values()]


def is_in_onnx_export() -> bool:
    """Return whether `export` runs on this thread."""
    return getattr(_running, "now", False)


def is_onnxrt_backend_supported() -> bool:
    """Return False."""
    return False


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Any, opset_version: int, custom_opsets: Any = None
) -> None:
    """Do nothing: the function is for an exporter that is not available."""


def parse_args(*arg_descriptors: str) -> Any:
    """Return a decorator that returns its function unchanged: that is for another exporter."""
    return lambda function: function
