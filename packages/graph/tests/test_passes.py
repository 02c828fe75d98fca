"""Passes: what they remove, and that graphs compute the same bits behind them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc
from plait_abi import ArgumentError
from plait_graph import Graph, Node, Number, Value
from plait_graph.interpreter import run_graph, run_node
from plait_graph.passes import (
    fold_batch_norm,
    fold_constants,
    infer_shapes,
    merge_equal_nodes,
    remove_dead_nodes,
)

sys.path.insert(0, str(Path(__file__).parent))

from random_graphs import random_graph, run, same_bits

SEEDS = range(100)
X, Y, W = (Value(name, "float32", (3, 4)) for name in "xyw")


def operators(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes]


def through(*functions: Callable[[Graph], Graph]) -> Callable[[Graph], Graph]:
    def all_of_them(graph: Graph) -> Graph:
        for function in functions:
            graph = function(graph)
        return graph

    return all_of_them


# ---- the same bits -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "change",
    [
        merge_equal_nodes,
        remove_dead_nodes,
        infer_shapes,
        through(merge_equal_nodes, remove_dead_nodes, merge_equal_nodes),
        through(Graph.to_json, Graph.from_json),  # type: ignore[arg-type]
    ],
    ids=["merge", "dead", "shapes", "merge_and_dead", "json"],
)
def test_random_graphs_keep_their_bits(change: Callable[[Graph], Graph], seed: int) -> None:
    graph, start = random_graph(seed)
    before, text = run(graph, start), str(graph)
    changed = change(graph)
    assert str(graph) == text, "a pass leaves its argument as it is"
    changed.check()
    after = run(changed, start)
    for one, two in zip(before.tensors, after.tensors, strict=True):
        assert same_bits(one, two), f"{graph}\n\n{changed}"
    assert before.shared == after.shared, f"{graph}\n\n{changed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_constants_keep_the_bits_of_random_graphs(seed: int) -> None:
    graph, start = random_graph(seed)
    before = run(graph, start)
    weights = {value.name: start[value].clone() for value in graph.weights}
    changed = fold_constants(graph, weights)
    changed.check()
    more = {value: weights[value.name] for value in changed.weights if value not in start}
    after = run(changed, {**start, **more})
    n = len(graph.outputs)
    for one, two in zip(before.tensors[:n], after.tensors[:n], strict=True):
        assert same_bits(one, two), f"{graph}\n\n{changed}"
    assert same_bits(before.tensors[-1], after.tensors[-1])
    for value, tensor in start.items():
        if value.name in weights:
            assert same_bits(weights[value.name], tensor), "folding writes to no weight"


def test_random_graphs_have_something_to_remove() -> None:
    graphs = [random_graph(seed)[0] for seed in SEEDS]
    before = sum(len(graph.nodes) for graph in graphs)
    assert sum(len(merge_equal_nodes(graph).nodes) for graph in graphs) < 0.95 * before
    assert sum(len(remove_dead_nodes(graph).nodes) for graph in graphs) < 0.9 * before
    folded = 0
    for seed in SEEDS:
        graph, start = random_graph(seed)
        weights = {value.name: start[value] for value in graph.weights}
        fold_constants(graph, weights)
        folded += len(weights) - 2
    assert folded > 10


# ---- dead nodes ----------------------------------------------------------------------------------


def test_dead_nodes_leave_with_what_only_they_read() -> None:
    graph = Graph([X], [W], [Number("n", 1.0)])
    graph.call("mul", graph.call("add", W, graph.numbers[0]), 2.0)
    graph.outputs = [graph.call("neg", X)]
    graph = remove_dead_nodes(graph)
    assert operators(graph) == ["neg"]
    assert (graph.inputs, graph.weights, graph.numbers) == ([X], [], [])


def test_a_write_is_kept_where_its_memory_is_read_later() -> None:
    graph = Graph([X])
    view = graph.call("t", X)
    copy = graph.call("exp", X)
    row = graph.call("select", copy, 0, 0)
    graph.call("zero_", row)
    other = graph.call("exp", X)
    graph.call("zero_", other)  # nobody reads it
    graph.call("mul", view, 2.0, form="inplace")  # the caller has x
    graph.outputs = [graph.call("sum", copy)]
    assert operators(remove_dead_nodes(graph)) == ["t", "exp", "select", "zero_", "mul_", "sum"]


def test_a_write_behind_the_last_read_is_dead() -> None:
    graph = Graph([X])
    copy = graph.call("exp", X)
    graph.outputs = [graph.call("sum", copy)]
    graph.call("zero_", copy)
    assert operators(remove_dead_nodes(graph)) == ["exp", "sum"]


def test_random_numbers_are_kept_and_not_merged() -> None:
    graph = Graph([X])
    one, two = graph.call("rand_like", X), graph.call("rand_like", X)
    graph.call("rand", (2,))
    graph.outputs = [graph.call("add", one, two)]
    graph = remove_dead_nodes(merge_equal_nodes(graph))
    assert operators(graph) == ["rand_like", "rand_like", "rand", "add"]


def test_running_statistics_are_written_in_training_alone() -> None:
    mean, var = Value("mean", "float32", (4,)), Value("var", "float32", (4,))
    for training in (True, False):
        graph = Graph([X], [mean, var], outputs=[X])
        graph.call("batch_norm", X, None, None, mean, var, training)
        assert bool(remove_dead_nodes(graph).nodes) is training


# ---- equal nodes ---------------------------------------------------------------------------------


def test_equal_nodes_become_one() -> None:
    graph = Graph([X])
    one, two = (graph.call("exp", graph.call("neg", X)) for _ in range(2))
    graph.outputs = [graph.call("add", one, two)]
    assert operators(merge_equal_nodes(graph)) == ["neg", "exp", "add"]


@pytest.mark.parametrize(
    ("one", "two"), [(1, 1.0), (1, True), (0.0, -0.0), (1.0, 1 + 0j), (1, Number("n", 1))]
)
def test_numbers_that_are_equal_in_python_may_differ(one: Any, two: Any) -> None:
    graph = Graph([X], numbers=[Number("n", 1)])
    graph.outputs = [graph.call("add", X, one), graph.call("add", X, two)]
    graph.outputs = [graph.call("cat", tuple(graph.outputs))]
    assert operators(merge_equal_nodes(graph)) == ["add", "add", "cat"]


def test_nan_is_nan() -> None:
    graph = Graph([X])
    nan = float("nan")
    graph.outputs = [graph.call("mul", graph.call("mul", X, nan), graph.call("mul", X, nan))]
    assert operators(merge_equal_nodes(graph)) == ["mul", "mul"]


def test_a_write_between_two_nodes_keeps_them_apart() -> None:
    graph = Graph([X, Y])
    copy = graph.call("clone", X)
    one, other = graph.call("exp", copy), graph.call("neg", Y)
    graph.call("zero_", graph.call("t", copy))
    two, same = graph.call("exp", copy), graph.call("neg", Y)
    graph.outputs = [graph.call("cat", (one, two, other, same))]
    merged = merge_equal_nodes(graph)
    assert operators(merged) == ["clone", "exp", "neg", "t", "zero_", "exp", "cat"]


def test_results_that_are_written_stay_apart() -> None:
    graph = Graph([X])
    one, two = graph.call("exp", X), graph.call("exp", X)
    graph.call("zero_", graph.call("reshape", two, (12,)))
    graph.outputs = [graph.call("add", one, two)]
    assert len(merge_equal_nodes(graph).nodes) == len(graph.nodes)


def test_views_of_written_memory_are_equal() -> None:
    graph = Graph([X])
    copy = graph.call("clone", X)
    one = graph.call("t", copy)
    graph.call("zero_", copy)
    two = graph.call("t", copy)
    graph.outputs = [graph.call("add", one, two)]
    assert operators(merge_equal_nodes(graph)) == ["clone", "t", "zero_", "add"]


def test_two_returned_tensors_stay_two() -> None:
    graph = Graph([X], [W])
    one, two, three = (graph.call("exp", X) for _ in range(3))
    graph.outputs = [one, graph.call("reshape", two, (12,)), graph.call("sum", three)]
    merged = merge_equal_nodes(graph)
    assert operators(merged) == ["exp", "exp", "reshape", "sum"]


def test_two_returned_views_stay_two() -> None:
    graph = Graph([X])
    one, two, three = (graph.call("t", X) for _ in range(3))
    graph.outputs = [graph.call("sum", one), two, three]
    merged = merge_equal_nodes(graph)
    assert operators(merged) == ["t", "t", "sum"]
    assert len(set(merged.outputs)) == 3


def test_of_three_equal_results_two_are_returned() -> None:
    graph = Graph([X])
    one, two, three = (graph.call("exp", X) for _ in range(3))
    graph.outputs = [graph.call("sum", one), two, three]
    merged = merge_equal_nodes(graph)
    assert operators(merged) == ["exp", "exp", "sum"]
    assert len(set(merged.outputs)) == 3


def _exp_around_a_write(graph: Graph, read: Value, written: Value) -> Graph:
    one = graph.call("exp", read)
    graph.call("zero_", written)
    graph.outputs = [graph.call("sub", one, graph.call("exp", read))]
    return merge_equal_nodes(graph)


def test_a_composite_may_return_its_argument() -> None:
    graph = Graph([X])
    copy = graph.call("clone", X)
    merged = _exp_around_a_write(graph, copy, graph.call("dropout", copy, 0.5, False))
    assert same_bits(run_graph(merged, [pc.zeros(3, 4)])[0], pc.zeros(3, 4))
    assert same_bits(run_graph(merged, [pc.ones(3, 4)])[0], pc.ones(3, 4).exp() - 1)


def test_two_inputs_may_be_one_tensor() -> None:
    merged = _exp_around_a_write(Graph([X, Y]), X, Y)
    x = pc.ones(3, 4)
    assert same_bits(run_graph(merged, [x, x])[0], pc.ones(3, 4).exp() - 1)


def test_two_weights_may_be_one_tensor() -> None:
    other = Value("other", "float32", (3, 4))
    merged = _exp_around_a_write(Graph([X], [W, other]), W, other)
    weights = {"w": pc.ones(3, 4)}
    weights["other"] = weights["w"].view(12).view(3, 4)
    assert same_bits(run_graph(merged, [X], weights)[0], pc.ones(3, 4).exp() - 1)


def test_an_equal_node_brings_the_results_that_the_first_lacks() -> None:
    graph = Graph([X])
    one, two = Value("1"), Value("2")
    for outputs in ([one, None], [None, two]):
        graph.insert(Node("max.dim", [X, 1, False], list(outputs)))
    graph.outputs = [one, two]
    merged = merge_equal_nodes(graph)
    assert operators(merged) == ["max.dim"]
    values, indices = run_graph(merged, [pc.arange(12.0).reshape(3, 4)])
    assert values.tolist() == [3.0, 7.0, 11.0] and indices.tolist() == [3, 3, 3]


def test_regions_are_changed_too() -> None:
    a = Value("a", "float32", (3, 4))
    inner = Graph([a])
    unused = inner.call("exp", a)
    assert unused.name == "1"
    inner.outputs = [inner.call("add", inner.call("neg", a), inner.call("neg", a))]
    predicate, result = Value("p", "bool", ()), Value("1")
    node = Node("cond", [predicate, (X,)], [(result,)], regions=[inner, inner.copy()])
    graph = Graph([X, predicate], nodes=[node], outputs=[result])
    graph.check()
    text = str(graph)
    changed = remove_dead_nodes(merge_equal_nodes(graph))
    assert str(graph) == text, "a pass leaves its argument as it is"
    assert [operators(region) for region in changed.nodes[0].regions] == [["neg", "add"]] * 2
    x = pc.randn(3, 4)
    for flag in (True, False):
        (one,), (two,) = (run_graph(g, [x, pc.tensor(flag)]) for g in (graph, changed))
        assert same_bits(one, two)


# ---- constants -----------------------------------------------------------------------------------


def test_constants_are_computed_once() -> None:
    graph = Graph([X], [W])
    position = graph.call("cos", graph.call("arange", 4.0))
    scale = graph.call("exp", graph.call("t", W))
    graph.outputs = [
        graph.call("add", graph.call("mul", X, graph.call("t", scale)), position),
        graph.call("clone", W),
    ]
    weights = {"w": pc.randn(3, 4)}
    calls: list[str] = []

    def counted(node: Node, values: Any) -> list[Any]:
        calls.append(node.op)
        return run_node(node, values)

    folded = fold_constants(graph, weights, counted)
    assert sorted(calls) == ["arange", "cos", "exp", "t", "t"]
    assert operators(folded) == ["mul", "add", "clone"]
    assert [value.name for value in folded.weights] == ["w", "constant.5", "constant.2"]
    x = pc.randn(3, 4)
    for one, two in zip(
        run_graph(graph, [x], weights), run_graph(folded, [x], weights), strict=True
    ):
        assert same_bits(one, two)


def test_views_of_weights_and_large_results_stay() -> None:
    graph = Graph([X], [W])
    view = graph.call("t", graph.call("t", W))
    large = graph.call("expand", graph.call("exp", W), (1000, 3, 4))
    zeros = graph.call("zeros", (3, 4))
    graph.outputs = [graph.call("add", X, value) for value in (view, large, zeros)]
    folded = fold_constants(graph, {"w": pc.ones(3, 4)})
    assert operators(folded) == ["t", "t", "expand", "zeros", "add", "add", "add"]
    assert [value.name for value in folded.weights] == ["w", "constant.3"]


def test_a_name_in_use_gets_a_number() -> None:
    other = Value("constant.1", "float32", (3, 4))
    graph = Graph([X], [W, other])
    graph.outputs = [graph.call("add", graph.call("exp", W), other)]
    graph.outputs = [graph.call("add", X, graph.call("exp", W))]
    weights = {"w": pc.ones(3, 4), "constant.1": pc.zeros(3, 4)}
    fold_constants(graph, weights)
    assert sorted(weights) == ["constant.1", "constant.3", "w"]
    graph.nodes = [Node("exp", [W], [Value("1")]), Node("mul", [X, Value("1")], [Value("2")])]
    graph.outputs = [Value("2")]
    fold_constants(graph, weights)
    assert sorted(weights) == ["constant.1", "constant.1.1", "constant.3", "w"]


def test_written_weights_are_not_constant() -> None:
    other = Value("other", "float32", (3, 4))
    graph = Graph([X], [W, other])
    graph.outputs = [graph.call("add", graph.call("exp", W), graph.call("exp", other))]
    graph.call("zero_", other)
    tensors = {"w": pc.ones(3, 4), "other": pc.ones(3, 4)}
    assert operators(fold_constants(graph, tensors)) == ["exp", "add", "zero_"]
    tensor = pc.ones(3, 4)
    shared = {"w": tensor, "other": tensor.view(3, 4)}
    assert operators(fold_constants(graph, shared)) == ["exp", "exp", "add", "zero_"]


def test_what_the_graph_returns_is_new_in_each_run() -> None:
    graph = Graph([X], [W])
    graph.outputs = [graph.call("exp", W)]
    assert operators(fold_constants(graph, {"w": pc.ones(3, 4)})) == ["exp"]


# ---- batch norm ----------------------------------------------------------------------------------


def layer(kind: str, dtype: str = "float32") -> tuple[Graph, dict[str, Any], Value]:
    """Return a graph that ends in a convolution or linear layer with five channels."""
    pc.manual_seed(3)
    size, wide = ((2, 3, 6, 6), (5, 3, 3, 3)) if kind == "conv2d" else ((2, 3), (5, 3))
    graph = Graph([Value("x", dtype, size)])
    weights = {"w": pc.randn(wide), "b": pc.randn(5), "mean": pc.randn(5), "var": pc.rand(5) + 0.1}
    weights |= {"gain": pc.randn(5), "shift": pc.randn(5)}
    weights = {name: tensor.to(pc.dtype(dtype)) for name, tensor in weights.items()}
    graph.weights = [Value(n, dtype, tuple(t.shape)) for n, t in weights.items()]
    return graph, weights, graph.call(kind, graph.inputs[0], graph.value("w"), graph.value("b"))


def norm(graph: Graph, value: Value, how: str) -> Value:
    gain, shift, mean, var = map(graph.value, ("gain", "shift", "mean", "var"))
    if how == "batch_norm":
        return graph.call(how, value, gain, shift, mean, var, False, 0.1, 1e-3)
    if how == "batch_norm_by":
        return graph.call(how, value, mean, var, gain, shift, 1e-3)
    scale = graph.call("mul", graph.call("rsqrt", graph.call("add", var, 1e-3)), gain)
    move = graph.call("add", graph.call("neg", graph.call("mul", mean, scale)), shift)
    wide = (1, 5, 1, 1) if graph.nodes[0].op == "conv2d" else (1, 5)
    move, scale = (graph.call("reshape", each, wide) for each in (move, scale))
    return graph.call("addcmul", move, value, scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["conv2d", "linear"])
@pytest.mark.parametrize("how", ["batch_norm", "batch_norm_by", "addcmul"])
def test_batch_norm_is_folded(how: str, kind: str, dtype: str) -> None:
    graph, weights, value = layer(kind, dtype)
    graph.outputs = [graph.call("relu", norm(graph, value, how), form="inplace")]
    kept = {name: tensor.clone() for name, tensor in weights.items()}
    folded = fold_batch_norm(fold_constants(graph, weights), weights)
    folded.check()
    assert operators(folded) == [kind, "relu_"]
    assert [value.name for value in folded.weights] == ["w.folded", "b.folded"]
    x = pc.randn(graph.inputs[0].shape).to(pc.dtype(dtype))
    one, two = run_graph(graph, [x], kept)[0], run_graph(folded, [x], weights)[0]
    difference = (one - two).abs().max().item() / one.abs().max().item()
    assert difference < {"float32": 1e-6, "float64": 1e-13}[dtype]
    assert all(same_bits(weights[name], tensor) for name, tensor in kept.items())


def test_a_layer_without_bias_gets_one() -> None:
    graph, weights, value = layer("conv2d")
    graph.nodes[0].args[2] = None
    graph.outputs = [norm(graph, value, "batch_norm")]
    folded = fold_batch_norm(graph, weights)
    assert [value.name for value in folded.weights] == ["w.folded", "bias.folded"]
    x = pc.randn(2, 3, 6, 6)
    one, two = run_graph(graph, [x], weights)[0], run_graph(folded, [x], weights)[0]
    assert pc.allclose(one, two, 1e-5, 1e-5)


def _read_twice(graph: Graph, value: Value) -> None:
    graph.outputs.append(graph.call("neg", value))


def _returned(graph: Graph, value: Value) -> None:
    graph.outputs.append(value)


def _written(graph: Graph, value: Value) -> None:
    graph.call("zero_", graph.value("mean"))


def _in_training(graph: Graph, value: Value) -> None:
    graph.nodes[-1].args[5] = True


def _weight_is_an_input(graph: Graph, value: Value) -> None:
    graph.inputs.append(graph.value("w"))
    graph.weights = [each for each in graph.weights if each.name != "w"]


@pytest.mark.parametrize(
    "prevent", [_read_twice, _returned, _written, _in_training, _weight_is_an_input]
)
def test_batch_norm_is_left(prevent: Callable[[Graph, Value], None]) -> None:
    graph, weights, value = layer("conv2d")
    graph.outputs = [norm(graph, value, "batch_norm")]
    prevent(graph, value)
    before = operators(graph)
    assert operators(fold_batch_norm(graph, weights)) == before


def test_the_factor_of_addcmul_must_be_one() -> None:
    for factor, count in ((1, 1), (1.0, 1), (2, 2)):
        graph, weights, value = layer("linear")
        scale, shift = graph.value("gain"), graph.value("shift")
        graph.outputs = [graph.call("addcmul", shift, value, scale, value=factor)]
        assert len(fold_batch_norm(graph, weights).nodes) == count


def test_channels_must_be_those_of_the_layer() -> None:
    graph, weights, value = layer("linear")
    wide = graph.call("reshape", graph.value("gain"), (5, 1))  # one number for each row
    graph.inputs = [Value("x", "float32", (5, 3))]
    graph.nodes[0].args[0] = graph.inputs[0]
    graph.outputs = [graph.call("addcmul", wide, value, wide)]
    folded = fold_constants(graph, weights)
    assert operators(fold_batch_norm(folded, weights)) == operators(folded)
    graph, weights, value = layer("linear")
    graph.inputs = [Value("x", "float32", (2, 5, 3))]  # a batch norm's channels are dimension 1
    graph.nodes[0].args[0] = graph.inputs[0]
    graph.outputs = [norm(graph, value, "batch_norm")]
    assert operators(fold_batch_norm(graph, weights)) == ["linear", "batch_norm"]


# ---- shapes --------------------------------------------------------------------------------------


def test_shapes_are_those_of_a_run() -> None:
    for seed in SEEDS:
        graph, start = random_graph(seed)
        inferred = infer_shapes(graph)
        weights = {value.name: start[value].clone() for value in graph.weights}
        for value, tensor in zip(
            inferred.outputs,
            run_graph(graph, [start[value].clone() for value in graph.inputs], weights),
            strict=True,
        ):
            assert (value.dtype, value.shape) == (tensor.dtype, tuple(tensor.shape))
            if value.strides is not None:
                assert value.strides == tuple(tensor.stride())


def test_shapes_that_depend_on_values_are_not_known() -> None:
    graph = Graph([X])
    where = graph.call("nonzero", X)
    graph.call("add", where, 1)
    graph.call("sum", X)
    texts = [str(node) for node in infer_shapes(graph).nodes]
    assert texts[0] == "%1 = nonzero(%x)"
    assert texts[1] == "%2 = add(%1, 1, 1)"
    assert texts[2].startswith("%3 float32[] = sum(%x")


def test_no_memory_and_no_random_numbers_are_used() -> None:
    graph = Graph()
    graph.outputs = [graph.call("zeros", (2**20, 2**20)), graph.call("rand", (3,))]
    pc.manual_seed(5)
    first = pc.rand(2)
    pc.manual_seed(5)
    shapes = [value.shape for value in infer_shapes(graph).outputs]
    assert shapes == [(2**20, 2**20), (3,)]
    assert same_bits(pc.rand(2), first)


def test_shapes_that_do_not_fit_are_an_error() -> None:
    graph = Graph([X, Value("z", "float32", (5,))])
    graph.call("add", X, graph.inputs[1])
    with pytest.raises(ArgumentError, match=r"infer_shapes: node 0, add: .*\(3, 4\).*\(5,\)"):
        infer_shapes(graph)
