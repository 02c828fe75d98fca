"""Graphs: text, rewriting, checks, JSON and the picture."""

from __future__ import annotations

import contextlib
import json
import math
import random
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn
from plait_abi import ArgumentError
from plait_graph import Graph, Node, Number, Value
from plait_graph.interpreter import run_graph

X, W = Value("x", "float32", (8, 3)), Value("w", "float32", (4, 3))
ONE = Value("1")


def small() -> Graph:
    graph = Graph([X], [W], [Number("lr", 0.5)])
    y = graph.call("linear", X, W)
    graph.call("add", y, graph.numbers[0], form="inplace")
    graph.outputs = [graph.call("relu", y), y]
    return graph


# ---- text ----------------------------------------------------------------------------------------


def test_text() -> None:
    graph = small()
    values, _ = graph.call("max.dim", graph.outputs[0], -1)
    graph.nodes[-1].outputs[1] = None
    first = graph.call("split", values, 3)
    graph.nodes[-1].outputs = [(*first, Value("p"))]
    graph.call("neg", X, out=graph.call("empty_like", X))
    graph.call("sum", X, dtype="float64")
    graph.call("zeros", (2, 3), device="cpu")
    graph.call("clamp", X, float("-inf"), None)
    graph.call("div", X, 2, rounding_mode="floor")
    assert str(graph).splitlines() == [
        "inputs   %x float32[8, 3]",
        "weights  %w float32[4, 3]",
        "numbers  %lr = 0.5",
        "%1 = linear(%x, %w, None)",
        "%1 = add_(%1, %lr, 1)",
        "%2 = relu(%1)",
        "%3, _ = max.dim(%2, -1, False)",
        "[%5, %p] = split(%3, 3, 0)",
        "%6 = empty_like(%x, None, None, 'preserve_format')",
        "%6 = neg(%x, out)",
        "%7 = sum(%x, None, False, float64)",
        "%8 = zeros([2, 3], None, cpu)",
        "%9 = clamp(%x, -inf, None)",
        "%10 = div(%x, 2, 'floor')",
        "outputs  %2, %1",
    ]
    assert repr(graph) == "<Graph: 1 inputs, 1 weights, 11 nodes, 2 outputs>"


def test_values_say_what_is_not_the_default() -> None:
    assert str(Value("a")) == "%a"
    assert str(Value("a", "int64", (), (), "meta")) == "%a int64[] meta"
    assert Value("a", "float32", (2, 3), (3, 1)) == Value("a", "float32", (2, 3), device="cpu")
    assert Value("a", "float32", (2, 3), (1, 2)).description == "float32[2, 3] strides [1, 2]"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("",), "Value: `name` must be a str that is not empty, got ''"),
        (("a", "float32", (-1,)), "`shape` must be a list of ints from 0 below .* got .-1"),
        (("a", "float32", (2**63,)), "`shape` must be a list of ints"),
        (("a", "float32", (1.0,)), "`shape` must be a list of ints"),
        (("a", "float32", 3), "`shape` must be a list of ints .* got 3"),
        (("a", "float32", (2,), (1, 1)), "`strides` .* must be as many"),
    ],
)
def test_values_are_checked(args: tuple[Any, ...], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        Value(*args)


def test_numbers_are_checked() -> None:
    with pytest.raises(ArgumentError, match="`value` must be an int or a float, got True"):
        Number("n", True)
    with pytest.raises(ArgumentError, match="Number: `name`"):
        Number("", 1)


# ---- rewriting -----------------------------------------------------------------------------------


def test_a_pass_is_a_few_lines() -> None:
    graph = small()
    for node in list(graph.nodes):
        if node.op == "relu":
            graph.replace(node.outputs[0], graph.call("silu", *node.reads(), before=node))
            graph.remove(node)
    graph.check()
    assert [node.op for node in graph.nodes] == ["linear", "add", "silu"]
    x, w = pc.randn(8, 3), pc.randn(4, 3)
    out = run_graph(graph, [x], {"w": w})[0]
    assert out.tolist() == nn.functional.silu(nn.functional.linear(x, w) + 0.5).tolist()


def test_a_copy_has_nodes_of_its_own() -> None:
    graph = small()
    other = graph.copy()
    other.nodes[0].args[0] = W
    other.outputs.pop()
    other.replace(graph.value("1"), X)
    assert str(graph) == str(small())
    nested = _one_path(2)
    text = str(nested)
    nested.copy().nodes[0].regions[0].nodes.clear()
    assert str(nested) == text


def test_users_are_nodes_that_read_or_write() -> None:
    graph = small()
    target = graph.call("empty_like", X)
    graph.call("neg", X, out=target)
    y = graph.value("1")
    assert [node.op for node in graph.users(y)] == ["add", "relu"]
    assert [node.op for node in graph.users(target)] == ["neg"]
    assert graph.users(Value("other")) == []
    both = graph.call("mul", y, y)
    assert [node.op for node in graph.users(y)] == ["add", "relu", "mul"]
    assert graph.users(both) == []


def test_replacing_keeps_the_node_that_makes_the_value() -> None:
    graph = small()
    y = graph.value("1")
    graph.replace(y, X)
    assert [str(node) for node in graph.nodes] == [
        "%1 = linear(%x, %w, None)",
        "%x float32[8, 3] = add_(%x float32[8, 3], %lr, 1)".replace("(%x float32[8, 3]", "(%x"),
        "%2 = relu(%x)",
    ]
    assert graph.outputs[1] == X


def test_what_is_used_is_not_removed() -> None:
    graph = small()
    with pytest.raises(ArgumentError, match=r"Graph.remove: `%1 = add_.*` reads what `%1 = linear"):
        graph.remove(graph.nodes[0])
    with pytest.raises(ArgumentError, match="the graph returns what `%2 = relu"):
        graph.remove(graph.nodes[2])
    graph.outputs = []
    graph.remove(graph.nodes[2])
    assert len(graph.nodes) == 2
    other = Node("relu", [X], [Value("1")])
    for call in (graph.remove, lambda node: graph.insert(other, before=node)):
        with pytest.raises(ArgumentError, match="is not a node of this graph"):
            call(other)


def test_new_names_are_free() -> None:
    graph = Graph([Value("7", "float32", ()), Value("q", "float32", ())])
    assert [graph.new_value().name for _ in range(2)] == ["8", "9"]
    with pytest.raises(ArgumentError, match="there is no value 'z'"):
        graph.value("z")


def test_calls_are_bound_as_operators_bind_them() -> None:
    graph = Graph([X])
    assert graph.call("copy_", X, X) == X
    assert [value.name for value in graph.call("chunk", X, 1)] == ["1"]
    graph.call("conv2d", X, X, stride=2)
    assert graph.nodes[-1].args[3:] == [(2, 2), (0, 0), (1, 1), 1]
    with pytest.raises(TypeError, match="missing argument `other`"):
        graph.call("add", X)
    with pytest.raises(ArgumentError, match="there is no operator 'nosuch'; a plug-in"):
        graph.call("nosuch", X)
    with pytest.raises(ArgumentError, match="no operator 'relu_'; 'relu' with the form 'inplace'"):
        graph.call("relu_", X)


# ---- checks --------------------------------------------------------------------------------------


def one_node(op: str, args: list[Any], outputs: Any = (ONE,), form: str = "function") -> Graph:
    index = Value("i", "int64", (3,))
    return Graph([X, index], [W], [Number("n", 1)], [Node(op, args, list(outputs), form)])


@pytest.mark.parametrize(
    ("graph", "text"),
    [
        (one_node("nosuch", []), "node 0, nosuch: there is no operator 'nosuch'"),
        (one_node("relu", []), r"relu: 1 arguments are required \(relu\(Tensor self.*, got 0"),
        (one_node("relu", [None]), "relu: `self` must be a tensor, got None"),
        (one_node("relu", [Number("n", 1)]), "relu: `self` must be a tensor, got %n"),
        (one_node("add", [X, "a", 1]), "add: `other` must be a tensor or a number, got 'a'"),
        (one_node("add", [X, 1, None]), "add: `alpha` must be a number, got None"),
        (one_node("sum", [X, 1, False, None]), "sum: `dim` must be a list of ints or None, got 1"),
        (one_node("sum", [X, (1.0,), False, None]), "`dim` must be a list of ints or None"),
        (one_node("sum", [X, None, 0, None]), "sum: `keepdim` must be a bool, got 0"),
        (one_node("sum", [X, None, False, "f"]), "sum: `dtype` must be a dtype or None, got 'f'"),
        (one_node("select", [X, True, 0]), "select: `dim` must be an int, got True"),
        (one_node("cat", [(X, None), 0]), "cat: `tensors` must be a list of tensors"),
        (
            one_node("rand_like", [X, "g", None, None, "preserve_format"]),
            "must be None, as a graph has no generators",
        ),
        (
            one_node("conv2d", [X, X, None, (1,), (0, 0), (1, 1), 1]),
            r"conv2d: `stride` must be a list of 2 ints, got \[1\]",
        ),
        (one_node("relu", [Value("y")]), "relu: %y is not defined before it is used"),
        (one_node("relu", [Value("x")]), r"%x is `%x` here and `%x float32\[8, 3\]` where it is"),
        (one_node("relu", [X], []), "relu: 1 results are required, got 0"),
        (one_node("relu", [X], [(Value("1"),)]), "relu: result 0 must be a value"),
        (one_node("chunk", [X, 1, 0]), "chunk: result 0 must be a list of values"),
        (one_node("relu", [X], [W]), "relu: %w is defined twice"),
        (one_node("relu", [X], [X], "inside"), "`form` must be one of function, inplace, out, got"),
        (one_node("matmul", [X, X], [X], "inplace"), "matmul: the operator has no form `inplace`"),
        (one_node("copy_", [X, X, False], [X], "inplace"), "copy_: the operator has no form"),
        (one_node("relu", [X], [W], "inplace"), "must be the first argument"),
        (one_node("relu", [X], [Value("1")], "out"), "relu: %1 is not defined"),
        (one_node("relu", [X], [None], "out"), "relu: result 0 must be a value"),
        (one_node("t", [X], [X], "out"), "t: the operator has no form `out`"),
        (Graph([X], [X]), "graph: %x is defined twice"),
        (Graph([X], numbers=[Number("x", 1)]), "graph: %x is defined twice"),
        (Graph([Value("y")]), "graph: %y needs a dtype and a shape"),
        (Graph([X], outputs=[W]), "graph: %w is not defined"),
    ],
)
def test_wrong_graphs(graph: Graph, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        graph.check()


def test_right_graphs() -> None:
    index = Value("i", "int64", (3,))
    nodes = [
        Node("index", [X, (None, index)], [Value("1")]),
        Node("add", [X, Number("n", 1), Number("n", 1)], [Value("2")]),
        Node("relu", [X], [X], "inplace"),
        Node("neg", [X], [Value("2")], "out"),
        Node("positive", [X], [X]),
        Node("copy_", [X, X, False], [None]),
        Node("scatter.value", [X, 1, Value("1"), 0.0], [X], "inplace"),
        Node("unbind", [index, 0], [(Value("3"), None, Value("4"))]),
        Node("dropout", [X, 1, False], [Value("5")]),
        Node("zeros", [(Number("n", 1), 2), None, None], [Value("6")]),
    ]
    Graph([X, index], [W], [Number("n", 1)], nodes, [X, W]).check()


def region(count: int = 1, outputs: int = 1, name: str = "a") -> Graph:
    inputs = [Value(f"{name}{i}", "float32", (8, 3)) for i in range(count)]
    return Graph(inputs, outputs=inputs[:outputs])


@pytest.mark.parametrize(
    ("regions", "text"),
    [
        ([region()], "cond: 2 regions are required, got 1"),
        ([region(), region(2)], "cond, region 1: 1 inputs are required, got 2"),
        ([region(1, 0), region()], "cond, region 0: 1 outputs are required, got 0"),
        ([region(), Graph([X], [W], outputs=[X])], "region 1: a region has inputs, nodes and"),
        (
            [Graph([X], nodes=[Node("relu", [W], [Value("1")])], outputs=[X]), region()],
            "cond, region 0, node 0, relu: %w is not defined",
        ),
    ],
)
def test_wrong_regions(regions: list[Graph], text: str) -> None:
    flag = Value("flag", "bool", ())
    node = Node("cond", [flag, (X,)], [(Value("1"),)], regions=regions)
    with pytest.raises(ArgumentError, match=text):
        Graph([X, flag], [W], nodes=[node]).check()


def test_regions_end_somewhere() -> None:
    with pytest.raises(ArgumentError, match="regions are nested deeper than 14"):
        _one_path(16).check()
    text = "[" * 100_000
    with pytest.raises(ArgumentError, match="nested too deep"):
        Graph.from_json(text)


def _one_path(depth: int) -> Graph:
    """Return a graph whose regions lie within each other."""
    flag = Value("flag", "bool", ())
    graph = Graph([flag], outputs=[flag])
    for _ in range(depth):
        inner = [graph, Graph([flag], outputs=[flag])]
        node = Node("cond", [flag, (flag,)], [(Value("1"),)], regions=inner)
        graph = Graph([flag], nodes=[node], outputs=[flag])
    return graph


# ---- JSON ----------------------------------------------------------------------------------------


def test_json_has_every_kind_of_argument() -> None:
    special = [math.inf, -math.inf, math.nan, 1e300, 5e-324, -0.0, 1.0, 0.1]
    graph = Graph([X], [W], [Number("n", 1, 1), Number("r", math.inf, -0.5)])
    for number in [*special, 1, True, -(2**63), 2**63 - 1, 1 - 2j, complex(math.nan, math.inf)]:
        graph.call("add", X, number)
    graph.call("div", X, 2, rounding_mode="floor")
    graph.call("sum", X, (0, -1), True, dtype="float64")
    graph.call("zeros", (2, 0), device="meta")
    graph.call("index", X, (None, graph.call("argmax", X, 0)))
    graph.call("mul", graph.call("t", X), graph.numbers[1], form="inplace")
    graph.call("neg", X, out=X)
    graph.nodes.append(Node("max.dim", [X, 0, False], [None, Value("top")]))
    graph.nodes.append(Node("unbind", [X, 1], [(Value("a"), None, Value("c"))]))
    graph.outputs = [Value("c"), X]
    graph.check()
    again = Graph.from_json(graph.to_json())
    assert again.to_json() == graph.to_json() and str(again) == str(graph)
    assert [type(node.args[-1]) for node in again.nodes] == [type(n.args[-1]) for n in graph.nodes]
    assert math.copysign(1, again.nodes[5].args[1]) == -1
    form = json.loads(graph.to_json())
    assert [node["in"][1] for node in form["nodes"][:3]] == [
        {"float": "inf"},
        {"float": "-inf"},
        {"float": "nan"},
    ]
    assert form["nodes"][12]["in"][1] == {"complex": [1.0, -2.0]}
    assert form["nodes"][14]["in"][2] == {"string": "floor"}
    assert form["numbers"][1] == {"name": "r", "value": {"float": "inf"}, "step": -0.5}
    one_path = _one_path(5)
    assert Graph.from_json(one_path.to_json()).to_json() == one_path.to_json()


def changed(change: str, to: str) -> str:
    text = small().to_json()
    assert change in text
    return text.replace(change, to, 1)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "this is not JSON"),
        ("[]", "an object with `plait_graph`, a version, is required"),
        ("{}", "an object with `plait_graph`"),
        (
            changed('"plait_graph": 1', '"plait_graph": 2'),
            "version 2, this package reads version 1",
        ),
        (changed('"plait_graph": 1', '"plait_graph": true'), "`plait_graph`, a version"),
        (changed('"numbers"', '"state"'), "there is no key 'state'"),
        (changed(',\n "outputs": ["%2", "%1"]', ""), "`outputs` is missing"),
        (changed('"outputs"', '"inputs"'), "the key 'inputs' stands twice"),
        (changed('"%2", "%1"', '"%lr"'), "outputs: the name of a tensor is required, got '%lr'"),
        (changed('"%2", "%1"', '"%3"'), "outputs: %3 is not defined"),
        (changed('["%2", "%1"]', "{}"), "`outputs` must be a list"),
        (changed('"float32"', '"float31"'), "graph, inputs 0: .*float31"),
        (changed('"float32"', "3"), "inputs 0: `dtype` and `device` must be strings"),
        (changed('"cpu"', '"gpu"'), "graph, inputs 0: .*gpu"),
        (changed("[8, 3]", "[8, -3]"), "inputs 0: Value 'x': `shape`"),
        (changed("[8, 3]", "[8, 1e3]"), "inputs 0: Value 'x': `shape`"),
        (changed('"name": "x"', '"name": 3'), "inputs 0: Value: `name`"),
        (changed('"name": "w"', '"name": "x"'), "weights 0: %x is defined twice"),
        (changed('"value": 0.5', '"value": true'), "numbers 0: Number 'lr': `value`"),
        (changed('"op": "relu"', '"op": 3'), "node 2: `op` must be the name of an operator"),
        (changed('"op": "relu"', '"op": "r"'), "node 2, r: there is no operator 'r'"),
        (changed('"form": "inplace"', '"form": "x"'), "node 1, add: `form` must be one of"),
        (changed('"in": ["%1"]', '"in": "%1"'), "node 2, relu: `in` must be a list"),
        (changed('"in": ["%1"]', '"in": ["x"]'), "node 2, relu: this is not an argument: 'x'"),
        (changed('"in": ["%1"]', '"in": [[[1]]]'), "relu: a list in a list is not an argument"),
        (changed('"in": ["%1"]', '"in": [{"a": 1}]'), "relu: this is not an argument: {'a': 1}"),
        (changed('"in": ["%1"]', '"in": [{"dtype": "x"}]'), "graph, node 2, relu: .*x"),
        (changed('"in": ["%1"]', '"in": [NaN]'), "NaN is not JSON"),
        (changed('"in": ["%1"]', f'"in": [{2**63}]'), "relu: this is not an argument: 9223"),
        (
            changed('"in": ["%1"]', f'"in": [{"9" * 5000}]'),
            "this is not JSON|this is not an argument",
        ),
        (changed('"in": ["%1"]', '"in": [1.5]'), "relu: `self` must be a tensor, got 1.5"),
        (
            changed('"out": ["%2"]', '"out": ["%"]'),
            "relu: a result must be null, '%name' or a list",
        ),
        (changed('"out": ["%2"]', '"out": ["%lr"]'), "relu: %lr is defined twice"),
        (changed('"out": ["%2"]', '"out": [["%2", 1]]'), "relu: a result must be null"),
        (changed('"out": ["%2"]', '"out": [[["%2"]]]'), "relu: a list of results must hold names"),
    ],
)
def test_wrong_json(text: str, error: str) -> None:
    with pytest.raises(ArgumentError, match=error):
        Graph.from_json(text)


def test_damaged_json_is_a_graph_or_an_error() -> None:
    text, draw = small().to_json(), random.Random(1)
    read = 0
    for _ in range(1500):
        letters = list(text)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(letters))
            letters[at : at + draw.randint(0, 3)] = draw.choices('[]{},:"%0123456789.-enull x', k=1)
        with contextlib.suppress(ArgumentError):
            read += bool(Graph.from_json("".join(letters)).inputs)
    assert 0 < read < 1500
