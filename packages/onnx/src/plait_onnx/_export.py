"""Functions and modules as ONNX models."""

from __future__ import annotations

import functools
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

import plait_autograd
import plait_core as pc
import plait_graph
import plait_nn
from plait_func.pytree import tree_flatten
from plait_nn.utils.rnn import PackedSequence
from plait_onnx._builder import Builder, Names, Unsupported, Weights
from plait_onnx._lowering import Lowering, value_info
from plait_onnx._model import BUFFERS, ExportedModel
from plait_onnx._outputs import only_tensors
from plait_onnx._patterns import join_batch_norms
from plait_onnx._table import TABLE

__all__ = ["DEFAULT_OPSET", "OPSETS", "export"]

DEFAULT_OPSET = 20
OPSETS = range(17, min(26, onnx.defs.onnx_opset_version() + 1))


def export(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    file: str | os.PathLike[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    opset: int = DEFAULT_OPSET,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic: Any = None,
    external_data: bool | None = None,
    metadata: Mapping[str, str] | None = None,
) -> ExportedModel:
    """Write a module or a function of tensors as an ONNX model.

    The function is recorded by `plait_graph.export`, which calls it several times under `no_grad`;
    a module should be in the mode in which it is used, such as by ``model.eval()``. Each operator
    of the recording is written as nodes of ONNX; one that ONNX does not have is taken apart, as
    far as plait computes it by others. Parameters and buffers keep their names. What the function
    writes to buffers is not kept by an ONNX model.

    Args:
        function: a module or a function of tensors, which returns tensors in containers; None
            among its results is left out.
        args: its arguments. Tensors are inputs of the model; the rest is a part of it.
        file: path of a file to write; None: none is written.
        kwargs: named arguments.
        opset: the version of ONNX's operators.
        input_names: names of the inputs; None: those of the parameters of the function.
        output_names: names of the outputs; None: ``output``, or ``output.0``, ``output.1``, ...
        dynamic: which sizes of the arguments are free, as `plait_graph.export` takes it, such as
            ``{"x": {0: "batch"}}``. The model has the names for these sizes.
        external_data: whether weights are in a second file, ``<file>.data``; None: if they have
            1.8 GB or more.
        metadata: texts by name that the model has with it.

    Returns:
        The model. It shares the weights with the module.

    Raises:
        NotImplementedError: if a call cannot be part of a graph, or ONNX cannot express it; the
            text names the operator, and the line of the program.
        RuntimeError: if two calls make other operator calls, or a size cannot be free.
        TypeError: if a result is no tensor.
        ValueError: for other opsets, and for names of another number.

    Example:
        >>> import os, tempfile
        >>> import onnx.reference, plait_core as pc, plait_nn, plait_onnx
        >>> path = os.path.join(tempfile.mkdtemp(), "layer.onnx")
        >>> layer = plait_nn.Linear(3, 2)
        >>> model = plait_onnx.export(layer, (pc.ones(4, 3),), path, dynamic={"input": {0: "n"}})
        >>> run = onnx.reference.ReferenceEvaluator(path)
        >>> run.input_names, run.output_names
        (['input'], ['output'])
        >>> x = pc.randn(7, 3)
        >>> pc.allclose(pc.from_numpy(run.run(None, {"input": x.numpy()})[0]), layer(x))
        True
    """
    if opset not in OPSETS:
        raise ValueError(
            f"export: `opset` must be {OPSETS.start} to {OPSETS.stop - 1}, got {opset!r}"
        )
    call = functools.partial(
        plait_graph.export, only_tensors(function), tuple(args), kwargs=kwargs, dynamic=dynamic
    )
    apart: frozenset[str] = frozenset()
    with plait_autograd.no_grad(), _layers_apart():
        loaded = call()
        unknown = _unknown_operators(loaded.graph)
        if unknown:
            apart = _with_decompositions() - TABLE.keys()
            if unknown & apart:
                loaded = call(apart=apart)
        try:
            model = _model_of(loaded, _tensors_in(args, kwargs), opset, input_names, output_names)
        except Unsupported as error:
            raise NotImplementedError(f"export: {error}{_line_of(call, apart, error)}") from None
    _note_buffers(model, function)
    for key, value in (metadata or {}).items():
        model.model.metadata_props.add(key=str(key), value=str(value))
    if file is not None:
        model.save(file, external_data=external_data)
    return model


def _note_buffers(model: ExportedModel, function: Callable[..., Any]) -> None:
    """Name what is no parameter of the module: ONNX has one kind of initializers for both."""
    names = {each.name for each in model.model.graph.initializer} | set(model.weights)
    trained = set(model.weights)
    if isinstance(function, plait_nn.Module):
        trained = {name for name, _ in function.named_parameters()}
    others = sorted(names - trained)
    if others:
        model.model.metadata_props.add(key=BUFFERS, value="\n".join(others))


def _layers_apart() -> Any:
    """Let layers that follow each other run one by one, so that each reads its own weights.

    A hook may look at what is between them, so that they do not run together. It refuses what no
    recording can have, where the layer is known.
    """
    return plait_nn.register_module_forward_pre_hook(_refuse_packed)


def _refuse_packed(module: plait_nn.Module, args: Any) -> None:
    if any(isinstance(each, PackedSequence) for each in args):
        raise NotImplementedError(
            f"export: {type(module).__name__}: ONNX has no packed sequences; export the layer on "
            "padded sequences (of one length, or with that dimension in `dynamic`), and mask the "
            "steps beyond each length in its results"
        )


def _unknown_operators(graph: plait_graph.Graph) -> set[str]:
    """Return the operators of a graph that the table does not have."""
    result = {node.op for node in graph.nodes} - TABLE.keys() - {"cond", "while_loop"}
    for node in graph.nodes:
        for region in node.regions:
            result |= _unknown_operators(region)
    return result


@functools.cache
def _with_decompositions() -> frozenset[str]:
    from plait_ops import specs

    return frozenset(spec.name for spec in specs.all() if spec.decompose_function is not None)


def _line_of(call: Callable[..., Any], apart: frozenset[str], error: Unsupported) -> str:
    """Return the line of the program that calls the operator which an error is about."""
    operator = str(error).partition(":")[0]
    try:
        call(apart=apart, refused={operator})
    except NotImplementedError as refusal:
        frames = traceback.extract_tb(refusal.__traceback__)
        own = [f for f in frames if not any(f"/{p}/" in f.filename for p in _PACKAGES)]
        if own:
            return f" (called in {own[-1].filename}, line {own[-1].lineno}, {own[-1].name})"
    except Exception:
        pass
    return ""


_PACKAGES = (
    *("plait_abi", "plait_autograd", "plait_core", "plait_func", "plait_graph", "plait_nn"),
    *("plait_onnx", "plait_ops", "plait_torch", "plait"),
)


def _tensors_in(args: Any, kwargs: Mapping[str, Any] | None) -> list[pc.Tensor]:
    leaves = tree_flatten((tuple(args), dict(kwargs or {})))[0]
    tensors = [leaf for leaf in leaves if isinstance(leaf, pc.Tensor)]
    return list({_memory_of(tensor): tensor for tensor in tensors}.values())


def _memory_of(tensor: pc.Tensor) -> Any:
    """Return what tensors have in common that are one input of a graph."""
    if not tensor.numel():
        return id(tensor)
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()


def _model_of(
    loaded: plait_graph.Loaded,
    tensors: list[pc.Tensor],
    opset: int,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> ExportedModel:
    fixed = graph = join_batch_norms(loaded.graph)
    if graph.sizes:
        fixed = graph.at_sizes({name: size.value for name, size in graph.sizes.items()})
    names, weights = Names(), Weights()
    inputs = _chosen("input_names", input_names, [value.name for value in graph.inputs])
    for name in inputs:
        names.new(name)
    # an output may be an input, or the same value as another output
    own = [_own_name(value.name, at, graph) for at, value in enumerate(graph.outputs)]
    outputs = _chosen("output_names", output_names, own)
    for name in outputs:
        if name != names.new(name):
            raise ValueError(f"export: {name!r} is the name of an input and of an output")
    sizes: dict[str, tuple[str, int]] = {}
    for value, name in zip(graph.inputs, inputs, strict=True):
        for dim, size in enumerate(value.shape or ()):
            if isinstance(size, str) and size in graph.sizes:
                sizes.setdefault(size, (name, dim))
    builder = Builder(opset, names, weights, sizes)
    lowering = Lowering(builder, graph, fixed, loaded.weights)
    written = set(loaded.written)
    for value, name, tensor in zip(graph.inputs, inputs, tensors, strict=True):
        lowering.bind(value, tensor.detach().clone(), name, value.shape)
    for value in graph.weights:
        name = names.new(value.name)
        tensor = loaded.weights[value.name].detach()
        weights.tensors[name] = tensor
        lowering.bind(value, tensor.clone() if value.name in written else tensor, name)
    results = lowering.run()
    for result, name in zip(results, outputs, strict=True):
        builder.add("Identity", [result], [name], {})
    input_infos = [
        value_info(name, lowering.types[value.name])
        for value, name in zip(graph.inputs, inputs, strict=True)
    ]
    output_infos = [
        value_info(name, lowering.types[value.name])
        for value, name in zip(graph.outputs, outputs, strict=True)
    ]
    nodes = _without_copies(_live(builder.nodes, set(outputs)), set(outputs))
    read = {name for node in nodes for name in _reads(node)}
    proto = onnx.helper.make_graph(nodes, "plait", input_infos, output_infos)
    proto.initializer.extend(t for name, t in weights.constants.items() if name in read)
    model = onnx.helper.make_model(
        proto,
        producer_name="plait",
        producer_version=plait_graph.__version__,
        opset_imports=[onnx.helper.make_opsetid("", opset)],
    )
    model.ir_version = onnx.helper.find_min_ir_version_for(model.opset_import)
    return ExportedModel(model, {n: t for n, t in weights.tensors.items() if n in read})


def _chosen(argument: str, names: Sequence[str] | None, own: list[str]) -> list[str]:
    """Return names for inputs or outputs: those that are given, then those of the graph."""
    if names is None:
        chosen = own
    elif len(names) > len(own):
        raise ValueError(
            f"export: `{argument}` has {len(names)} names, the function {len(own)} tensors there"
        )
    else:
        chosen = [*names, *own[len(names) :]]
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"export: `{argument}` must differ from each other, got {chosen}")
    return list(chosen)


def _own_name(name: str, at: int, graph: plait_graph.Graph) -> str:
    """Return the name of an output: that of the value, if it has it alone."""
    others = [value.name for value in (*graph.inputs, *graph.weights)]
    others += [value.name for value in graph.outputs[:at]]
    if name not in others:
        return name
    return "output" if len(graph.outputs) == 1 else f"output.{at}"


def _reads(node: Any) -> set[str]:
    """Return the names that a node reads, also in graphs of branches and loops."""
    result = set(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                result |= _reads(inner)
            result |= {output.name for output in attribute.g.output}
    return result


def _live(nodes: list[Any], read: set[str]) -> list[Any]:
    """Return the nodes whose results are read."""
    kept = []
    for node in reversed(nodes):
        if read.intersection(node.output):
            read |= _reads(node)
            kept.append(node)
    return kept[::-1]


def _without_copies(nodes: list[Any], outputs: set[str]) -> list[Any]:
    """Return the nodes without those that copy the result of another one to an output."""
    makers = {name: node for node in nodes for name in node.output}
    readers: dict[str, int] = {}
    for node in nodes:
        for name in _reads(node):
            readers[name] = readers.get(name, 0) + 1
    kept = []
    for node in nodes:
        source = node.input[0] if node.op_type == "Identity" and node.input else ""
        maker = makers.get(source)
        if maker is not None and readers[source] == 1 and source not in outputs:
            places = [i for i, name in enumerate(maker.output) if name == source]
            maker.output[places[0]] = node.output[0]
            continue
        kept.append(node)
    return kept
