"""Passes: functions from graph to graph that keep what the graph computes.

A pass leaves its argument as it is and returns another graph. No pass moves a node. What is
written, and all that may share memory with it, is a barrier: it is neither merged nor folded.
Passes change the regions of nodes, too; a weight that is an operand of one is a weight in it.

    >>> from plait_graph import Graph, Value
    >>> from plait_graph.passes import merge_equal_nodes, remove_dead_nodes
    >>> x = Value("x", "float32", (2,))
    >>> graph = Graph([x])
    >>> one, two = graph.call("exp", x), graph.call("exp", x)
    >>> unused = graph.call("log", x)
    >>> graph.outputs = [graph.call("mul", one, two)]
    >>> print(remove_dead_nodes(merge_equal_nodes(graph)))
    inputs   %x float32[2]
    %1 = exp(%x)
    %4 = mul(%1, %1)
    outputs  %4
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import plait_abi
import plait_core as pc
from plait_graph._computation_graph import Graph, Node
from plait_graph._free_shapes import infer_free_shapes, with_types
from plait_graph._memory import Memory, writes
from plait_graph._regions import (
    add_operand,
    bound_inputs,
    drop_unread_operands,
    result_types,
    with_weights,
)
from plait_graph._values import Argument, Number, Value, encode, values_in
from plait_graph.interpreter import results_of, run_node

__all__ = [
    "fold_batch_norm",
    "fold_constants",
    "infer_shapes",
    "merge_equal_nodes",
    "remove_dead_nodes",
]


def remove_dead_nodes(graph: Graph) -> Graph:
    """Return the graph without the nodes, weights and numbers that nothing depends on.

    A node is kept if a result of it is read or returned, if it writes to memory that is read later
    or belongs to an input, a weight or an output, or if it draws random numbers, as it moves the
    generator on (PyTorch keeps such nodes for the same reason).

    Args:
        graph: The graph, which is not changed.

    Example:
        >>> from plait_graph import Graph, Value
        >>> from plait_graph.passes import remove_dead_nodes
        >>> x = Value("x", "float32", (2,))
        >>> graph = Graph([x], outputs=[x])
        >>> y = graph.call("exp", x)
        >>> remove_dead_nodes(graph).nodes
        []
    """
    graph = graph.copy()
    memory = Memory(graph)
    read = set(graph.outputs)
    touched = set(memory.outside)  # memory that is read behind the node, or outside
    numbers: set[str] = set()
    kept = []
    for node in reversed(graph.nodes):
        is_live = (
            _is_random(node)
            or not read.isdisjoint(node.defines())
            or not touched.isdisjoint(memory.of_all(writes(node)))
        )
        if is_live:
            node.regions = [remove_dead_nodes(region) for region in node.regions]
            drop_unread_operands(node)
            read.update(node.reads(), values_in(node.outputs) if node.form == "out" else ())
            touched |= memory.of_all(node.reads())
            numbers |= {number.name for number in _numbers_in(node.args)}
            kept.append(node)
    graph.nodes = kept[::-1]
    graph.weights = [weight for weight in graph.weights if weight in read]
    graph.numbers = [number for number in graph.numbers if number.name in numbers]
    return graph


def merge_equal_nodes(graph: Graph) -> Graph:
    """Return the graph with one node for each set of equal ones (common subexpressions).

    Nodes are equal if they call the same operator with the same arguments, whose values are the
    same at both places. Not merged are nodes that draw random numbers, nodes that write, those
    with regions, those whose results are written at any time, and two whose results the graph
    returns, which are two tensors.

    Args:
        graph: The graph, which is not changed.

    Example:
        >>> from plait_graph import Graph, Value
        >>> from plait_graph.passes import merge_equal_nodes
        >>> x = Value("x", "float32", (2,))
        >>> graph = Graph([x])
        >>> graph.outputs = [graph.call("add", graph.call("exp", x), graph.call("exp", x))]
        >>> print(merge_equal_nodes(graph))
        inputs   %x float32[2]
        %1 = exp(%x)
        %3 = add(%1, %1, 1)
        outputs  %3
    """
    graph = graph.copy()
    memory = Memory(graph)
    versions: Counter[Value] = Counter()  # how often each memory was written so far
    first: dict[str, Node] = {}
    equal: dict[Value, Value] = {}
    outputs = set(graph.outputs)
    kept = []
    for node in graph.nodes:
        node.regions = [merge_equal_nodes(region) for region in node.regions]
        node.replace(equal)
        written = writes(node)
        if not written and _may_merge(node, memory):
            key = _key(node, memory, versions)
            other = first.setdefault(key, node)
            pairs = {} if other is node else _pairs(other, node)
            if other is not node and not _both_returned(pairs, node, memory, outputs):
                _complete(other, node)
                equal |= pairs
                outputs |= {new for old, new in pairs.items() if old in outputs}
                memory.returned |= {
                    memory.of(new)
                    for old, new in pairs.items()
                    if memory.of(old) in memory.returned
                }
                continue
        versions.update(memory.of_all(written))
        kept.append(node)
    graph.nodes = kept
    graph.replace_all(equal)
    return graph


def fold_constants(
    graph: Graph,
    weights: dict[str, Any],
    run: Callable[[Node, Mapping[Value | Number, Any]], list[Any]] = run_node,
) -> Graph:
    """Return the graph without the nodes that depend on weights alone, which become weights.

    The weights must be constant: those that a node writes to are none. Nodes stay whose result is a
    view of a weight, or has more elements than what they read, as `zeros` and `expand` have.

    Args:
        graph: the graph.
        weights: its tensors by name, to which the new ones are added. Those that are no longer
            read stay in it and leave the graph.
        run: what runs a node.

    Example:
        >>> import plait_core as pc
        >>> from plait_graph import Graph, Value
        >>> from plait_graph.passes import fold_constants
        >>> x, w = Value("x", "float32", (2,)), Value("w", "float32", (2,))
        >>> graph, weights = Graph([x], [w]), {"w": pc.zeros(2)}
        >>> graph.outputs = [graph.call("mul", x, graph.call("exp", w))]
        >>> print(fold_constants(graph, weights))
        inputs   %x float32[2]
        weights  %constant.1 float32[2]
        %2 = mul(%x, %constant.1)
        outputs  %2
        >>> weights["constant.1"]
        tensor([1., 1.])
    """
    graph = graph.copy()
    memory = Memory(graph, weights)
    fixed = {w for w in graph.weights if w.name in weights and _is_fixed(w, memory)}
    _change_regions(graph, weights, fixed, lambda region, own: fold_constants(region, own, run))
    constants = _constants(graph, memory, weights)
    makers = {value: node for node in graph.nodes for value in node.defines()}
    values: dict[Value | Number, Any] = {
        value: weights[value.name].detach() for value in graph.weights if value in constants
    }
    needed = set(graph.outputs)
    of_weights = memory.of_all(graph.weights)
    folded: dict[Value, Value] = {}
    kept = []
    for node in reversed(graph.nodes):
        made = [value for value in node.defines() if value in constants]
        wanted = [value for value in made if value in needed]
        if made and not wanted:
            continue  # only constants depend on it
        tensors: dict[Value, Any] = {}
        if wanted and any(node.reads()) and of_weights.isdisjoint(memory.of_all(made)):
            tensors = {value: _evaluate(value, makers, values, run) for value in wanted}
        read = sum(values[value].numel() for value in node.reads()) if tensors else 0
        if not tensors or any(tensor.numel() > read for tensor in tensors.values()):
            needed.update(node.reads(), values_in(node.outputs) if node.form == "out" else ())
            kept.append(node)
            continue
        for value, tensor in tensors.items():
            folded[value] = _add_weight(graph, weights, f"constant.{value.name}", tensor)
    graph.nodes = kept[::-1]
    graph.replace_all(folded)
    graph.weights = _read_weights(graph)
    return graph


def fold_batch_norm(graph: Graph, weights: dict[str, Any]) -> Graph:
    r"""Return the graph with batch norms in the weights of the convolutions before them.

    .. math:: s\,(W x + b) + t = (s W)\,x + (s b + t)

    with one scale s and one shift t for each channel of the result. Folded are `batch_norm` outside
    of training, `batch_norm_by`, and what it consists of, ``addcmul(t, y, s)`` with constants, as
    `fold_constants` leaves them; the result of `conv2d` or `linear` must not be read otherwise. The
    new weights are computed in float64 and rounded once, so that results differ from those before
    by rounding.

    Args:
        graph: the graph.
        weights: its tensors by name, to which the new ones are added. Those that are no longer
            read stay in it and leave the graph.

    Example:
        >>> import plait_core as pc
        >>> from plait_graph import Graph, Value
        >>> from plait_graph.passes import fold_batch_norm
        >>> x, w = Value("x", "float32", (1, 2)), Value("w", "float32", (1, 2))
        >>> mean, var = Value("mean", "float32", (1,)), Value("var", "float32", (1,))
        >>> graph = Graph([x], [w, mean, var])
        >>> y = graph.call("linear", x, w)
        >>> graph.outputs = [
        ...     graph.call("batch_norm", y, None, None, mean, var, False, 0.1, 0.0)
        ... ]
        >>> weights = {"w": pc.ones(1, 2), "mean": pc.ones(1), "var": pc.full((1,), 4.0)}
        >>> print(fold_batch_norm(graph, weights))
        inputs   %x float32[1, 2]
        weights  %w.folded float32[1, 2]
                 %bias.folded float32[1]
        %2 = linear(%x, %w.folded, %bias.folded)
        outputs  %2
        >>> weights["w.folded"], weights["bias.folded"]
        (tensor([[0.5000, 0.5000]]), tensor([-0.5000]))
    """
    graph = graph.copy()
    memory = Memory(graph, weights)
    tensors = {
        value: weights[value.name].detach()
        for value in graph.weights
        if value.name in weights and _is_fixed(value, memory)
    }
    _change_regions(graph, weights, set(tensors), fold_batch_norm)
    shapes = {value.name: value.shape for value in infer_shapes(graph).values()}
    makers = {value: node for node in graph.nodes for value in node.defines()}
    uses = graph.uses()
    folded = set()
    for node in graph.nodes:
        layer = _layer_before(node, makers, uses, graph)
        if layer is None or not {*layer.reads()} - {layer.args[0]} <= set(tensors):
            continue
        (result,) = layer.defines()
        affine = _scale_and_shift(node, layer, tensors, shapes[result.name])
        if affine is None:
            continue
        for at, name, tensor in _folded(layer, tensors, *affine):
            value = layer.args[at] = _add_weight(graph, weights, name, tensor)
            tensors[value] = tensor
        layer.outputs = node.outputs
        makers.update(dict.fromkeys(node.defines(), layer))
        folded.add(id(node))
    graph.nodes = [node for node in graph.nodes if id(node) not in folded]
    graph.weights = _read_weights(graph)
    return graph


def infer_shapes(graph: Graph) -> Graph:
    """Return the graph with dtypes, shapes and strides of all values that have one shape.

    Each node is called on the device `meta`, where nothing is computed. Of a result whose shape
    depends on values, and of what depends on it, only the name is known. If sizes are free, it is
    done at several of them, and shapes are expressions that fit.

    Raises: what an operator raises whose arguments do not fit, with the node in front.

    Args:
        graph: The graph, which is not changed.

    Example:
        >>> from plait_graph import Graph, Value
        >>> from plait_graph.passes import infer_shapes
        >>> graph = Graph([Value("x", "float32", (8, 3))])
        >>> graph.outputs = [graph.call("sum", graph.inputs[0], (1,))]
        >>> print(infer_shapes(graph))
        inputs   %x float32[8, 3]
        %1 float32[8] = sum(%x, [1], False, None)
        outputs  %1
    """
    if graph.sizes:
        return infer_free_shapes(graph, infer_shapes)
    graph = graph.copy()
    tensors: dict[Value | Number, Any] = {number: number.value for number in graph.numbers}
    tensors.update({value: _on_meta(value) for value in [*graph.inputs, *graph.weights]})
    known: dict[Value, Value] = {}
    for at, node in enumerate(graph.nodes):
        if node.regions:
            node.regions = [infer_shapes(region) for region in node.regions]
            results = result_types(node)
            known.update(results)
            tensors.update({v: _on_meta(each) for v, each in results.items() if each.dtype})
            continue
        made = list(node.defines())
        if all(value in tensors for value in node.reads()):
            tensors.update(_results_on_meta(at, node, tensors))
        device = _device_of(node, known)
        known.update({v: _described(v, tensors[v], device) for v in made if v in tensors})
    return with_types(graph, known)


# ---- what several passes ask ---------------------------------------------------------------------


def _is_random(node: Node) -> bool:
    return node.definition.is_random or any(
        _is_random(each) for region in node.regions for each in region.nodes
    )


def _numbers_in(arguments: Sequence[Argument]) -> list[Number]:
    flat = [each for a in arguments for each in (a if isinstance(a, tuple) else (a,))]
    return [each for each in flat if isinstance(each, Number)]


def _read_weights(graph: Graph) -> list[Value]:
    """Return the weights that a node or an output has."""
    read = {value for node in graph.nodes for value in [*node.reads(), *values_in(node.outputs)]}
    read.update(graph.outputs)
    return [weight for weight in graph.weights if weight in read]


def _change_regions(
    graph: Graph,
    weights: dict[str, Any],
    fixed: set[Value],
    change: Callable[[Graph, dict[str, Any]], Graph],
) -> None:
    """Apply a pass to the regions of all nodes; weights that it adds to them become operands.

    Args:
        graph: the graph, which is changed.
        weights: its tensors by name, to which the new ones are added.
        fixed: its weights that nothing writes to.
        change: the pass.
    """
    for node in graph.nodes:
        for region in node.regions:
            bound = bound_inputs(node, region, fixed)
            own = {name: weights[operand.name] for name, operand in bound.items()}
            inputs = list(region.inputs)
            changed = change(with_weights(region, set(bound)), own)
            region.nodes, region.outputs = changed.nodes, changed.outputs
            for value in changed.weights:
                if value not in inputs:
                    new = _add_weight(graph, weights, value.name, own[value.name])
                    add_operand(node, region, value, new)
        if node.regions:
            drop_unread_operands(node)


def _add_weight(graph: Graph, weights: dict[str, Any], name: str, tensor: Any) -> Value:
    """Add a tensor to the weights, and its name, which gets a number if it is in use."""
    names = {*weights, *(value.name for value in graph.values()), *(n.name for n in graph.numbers)}
    free, at = name, 1
    while free in names:
        free, at = f"{name}.{at}", at + 1
    tensor = tensor.contiguous()
    weights[free] = tensor
    value = Value(free, tensor.dtype, tuple(tensor.shape), None, tensor.device)
    graph.weights.append(value)
    return value


# ---- equal nodes ---------------------------------------------------------------------------------


def _may_merge(node: Node, memory: Memory) -> bool:
    if node.form != "function" or node.regions or _is_random(node):
        return False
    return node.definition.is_view or memory.written.isdisjoint(memory.of_all(node.defines()))


def _key(node: Node, memory: Memory, versions: Counter[Value]) -> str:
    """Return a text that equal nodes have: operator, arguments, and the versions of their memory.

    A view depends on no values. The text tells 1 from 1.0 and 0.0 from -0.0, which are equal.
    """
    read = [] if node.definition.is_view else [versions[memory.of(v)] for v in node.reads()]
    return json.dumps([node.op, [encode(argument) for argument in node.args], read])


def _pairs(kept: Node, dropped: Node) -> dict[Value, Value]:
    """Return the results of a node with those of an equal one that stays."""
    results: dict[Value, Value] = {}
    for new, old in zip(kept.outputs, dropped.outputs, strict=True):
        if isinstance(new, tuple) and isinstance(old, tuple):
            both = [(b, a) for a, b in zip(new, old, strict=True) if a and b]
            results.update(both)
        elif isinstance(new, Value) and isinstance(old, Value):
            results[old] = new
    return results


def _complete(kept: Node, dropped: Node) -> None:
    """Give a node the results that it lacks and an equal one has."""
    for at, (new, old) in enumerate(zip(kept.outputs, dropped.outputs, strict=True)):
        if isinstance(new, tuple) and isinstance(old, tuple):
            kept.outputs[at] = tuple(a or b for a, b in zip(new, old, strict=True))
        elif new is None:
            kept.outputs[at] = old


def _both_returned(
    pairs: Mapping[Value, Value], node: Node, memory: Memory, outputs: set[Value]
) -> bool:
    """Return whether the caller gets both results of equal nodes, or their memories.

    Views of one tensor have one memory, so that only the views themselves count.
    """
    if node.definition.is_view:
        return any(old in outputs and new in outputs for old, new in pairs.items())
    return any(
        memory.of(old) in memory.returned and memory.of(new) in memory.returned
        for old, new in pairs.items()
    )


# ---- constants -----------------------------------------------------------------------------------


def _is_fixed(value: Value, memory: Memory) -> bool:
    return memory.of(value) not in memory.written


def _constants(graph: Graph, memory: Memory, weights: Mapping[str, Any]) -> set[Value]:
    """Return the weights that no node writes to, and what depends on such weights alone.

    A result in memory that the graph returns is none: each run makes a new one.
    """
    results = {
        value for value in graph.weights if value.name in weights and _is_fixed(value, memory)
    }
    for node in graph.nodes:
        made = memory.of_all(node.defines())
        if (
            node.form == "function"
            and not node.regions
            and not _is_random(node)
            and not writes(node)
            and not _numbers_in(node.args)
            and made.isdisjoint(memory.written | memory.returned)
            and results.issuperset(node.reads())
        ):
            results.update(node.defines())
    return results


def _evaluate(
    value: Value,
    makers: Mapping[Value, Node],
    values: dict[Value | Number, Any],
    run: Callable[[Node, Mapping[Value | Number, Any]], list[Any]],
) -> Any:
    """Return the tensor of a constant; `values` gets those that it depends on."""
    waiting = [value]
    while waiting:
        last = waiting[-1]
        missing = [v for v in makers[last].reads() if v not in values] if last not in values else []
        if missing:
            waiting += missing
            continue
        waiting.pop()
        if last in values:
            continue
        values.update(results_of(makers[last], run(makers[last], values)))
    return values[value]


# ---- batch norm ----------------------------------------------------------------------------------


# where each operator that `fold_batch_norm` folds has its input, and its constants
_FOLDED = {
    "batch_norm": ("input", ("running_mean", "running_var", "weight", "bias")),
    "batch_norm_by": ("input", ("mean", "var", "weight", "bias")),
    "addcmul": ("tensor1", ("self", "tensor2")),
}


def _arguments(node: Node) -> dict[str, Argument]:
    parameters = node.definition.schema.arguments
    return {p.name: argument for p, argument in zip(parameters, node.args, strict=True)}


def _layer_before(
    node: Node, makers: Mapping[Value, Node], uses: Mapping[Value, list[Node]], graph: Graph
) -> Node | None:
    """Return the convolution or linear layer whose result a node reads, and nothing else does."""
    if node.op not in _FOLDED or node.form != "function":
        return None
    value = _arguments(node)[_FOLDED[node.op][0]]
    if not isinstance(value, Value) or value not in makers:
        return None
    layer = makers[value]
    if layer.op not in ("conv2d", "linear") or layer.form != "function":
        return None
    is_read_once = uses[value] == [node] and list(node.reads()).count(value) == 1
    return layer if is_read_once and value not in graph.outputs else None


def _scale_and_shift(
    node: Node, layer: Node, tensors: Mapping[Value, Any], shape: tuple[int | str, ...] | None
) -> tuple[Any, Any] | None:
    """Return the scale and the shift of each channel, in float64; None if a node has none.

    Args:
        node: what reads the result of `layer`.
        layer: a convolution or a linear layer.
        tensors: the constants.
        shape: that of the result of `layer`, if it is known.
    """
    args = _arguments(node)
    parts: list[Any] = []
    for argument in (args[name] for name in _FOLDED[node.op][1]):
        if argument is not None and argument not in tensors:
            return None
        parts.append(tensors[argument].to(pc.float64) if isinstance(argument, Value) else None)
    axis = 1 if layer.op == "conv2d" else -1
    weight = layer.args[1]
    channels = tensors[weight].shape[0] if isinstance(weight, Value) else 0
    if node.op == "addcmul":
        shift, scale = (_for_channels(part, channels, axis) for part in parts)
        return None if args["value"] != 1 or shift is None or scale is None else (scale, shift)
    mean, var, gain, bias = parts
    if args.get("training") or mean is None or var is None:
        return None
    if layer.op == "linear" and (shape is None or len(shape) != 2):
        return None  # the channels of a batch norm are dimension 1, those of the layer the last
    scale = 1 / (var + args["eps"]).sqrt() * (1 if gain is None else gain)
    return scale, (0 if bias is None else bias) - mean * scale


def _folded(
    layer: Node, tensors: Mapping[Value, Any], scale: Any, shift: Any
) -> list[tuple[int, str, Any]]:
    """Return position, name and tensor of the weight and the bias with a scale and a shift."""
    weight, bias = layer.args[1:3]
    assert isinstance(weight, Value)
    matrix, name = tensors[weight], "bias"
    if isinstance(bias, Value):
        shift, name = shift + scale * tensors[bias].to(pc.float64), bias.name
    wide = scale.reshape(-1, *[1] * (matrix.ndim - 1))
    return [
        (1, f"{weight.name}.folded", (matrix.to(pc.float64) * wide).to(matrix.dtype)),
        (2, f"{name}.folded", shift.to(matrix.dtype)),
    ]


def _for_channels(tensor: Any, channels: int, axis: int) -> Any:
    """Return a number for each channel if a tensor broadcasts so; None if it does otherwise.

    Args:
        tensor: one of ``(1, channels, 1, 1)`` for axis 1, of ``(..., 1, channels)`` for axis -1.
        channels: the number of channels.
        axis: the dimension of the channels in an image or in the result of a linear layer.
    """
    shape = (1, channels, 1, 1) if axis == 1 else (*[1] * (tensor.ndim - 1), channels)
    return tensor.reshape(-1) if tuple(tensor.shape) == shape else None


# ---- shapes --------------------------------------------------------------------------------------


def _on_meta(value: Value) -> Any:
    """Return a tensor without memory that has a value's dtype, shape and strides."""
    if value.dtype is None or value.shape is None:
        raise plait_abi.ArgumentError(f"infer_shapes: %{value.name} needs a dtype and a shape")
    shape = [int(n) for n in value.shape]
    if value.strides is None:
        return pc.empty(shape, dtype=value.dtype, device="meta")
    strides = [int(n) for n in value.strides]
    return pc.empty_strided(shape, strides, dtype=value.dtype, device="meta")


def _results_on_meta(
    at: int, node: Node, tensors: Mapping[Value | Number, Any]
) -> dict[Value | Number, Any]:
    """Return the results of a node on the device `meta`, without those that depend on values."""
    parameters = node.definition.schema.arguments
    args = [
        pc.device("meta") if parameter.type == "device" else argument
        for parameter, argument in zip(parameters, node.args, strict=True)
    ]
    try:
        results = run_node(dataclasses.replace(node, args=args), tensors)
    except (TypeError, ValueError, IndexError) as error:
        raise plait_abi.ArgumentError(f"infer_shapes: node {at}, {node.op}: {error}") from error
    except RuntimeError:  # the kinds above are errors of arguments; this one asks for values
        return {}
    return dict(results_of(node, results))


def _device_of(node: Node, known: Mapping[Value, Value]) -> plait_abi.device | None:
    """Return the device of a node's results: that which it names, else that of what it reads."""
    named = [argument for argument in node.args if isinstance(argument, plait_abi.device)]
    return next(iter([*named, *(known.get(v, v).device for v in node.reads())]), None)


def _described(value: Value, tensor: Any, device: plait_abi.device | None) -> Value:
    strides = None if tensor.is_contiguous() else tuple(tensor.stride())
    return Value(value.name, tensor.dtype, tuple(tensor.shape), strides, device)
