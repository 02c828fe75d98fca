"""Graphs with regions that nobody vouches for: clear errors of the program, no crash."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

import plait_core as pc
from plait_graph import _graph

FLOAT: dict[str, Any] = {"dtype": "float32", "shape": [2, 3]}
BOOL: dict[str, Any] = {"dtype": "bool", "shape": []}


def tensor(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **copy.deepcopy(FLOAT), **more}


def node(op: str, inputs: list[Any], out: list[Any], **more: Any) -> dict[str, Any]:
    return {"op": op, "in": inputs, "out": out, **more}


def sound() -> dict[str, Any]:
    """Return a graph with a branch and with a loop that has a branch in its body."""
    double = {"inputs": [tensor("a")], "nodes": [node("mul", ["%a", 2.0], ["%b"])]}
    double["outputs"] = ["%b"]
    same = {"inputs": [tensor("a")], "nodes": [], "outputs": ["%a"]}
    condition = {
        "inputs": [tensor("x"), tensor("w")],
        "nodes": [
            node("sum", ["%x", None, False, None], ["%s"]),
            node("lt", ["%s", 100.0], ["%go"]),
        ],
        "outputs": ["%go"],
    }
    body = {
        "inputs": [tensor("x"), tensor("w")],
        "nodes": [
            node("add", ["%x", "%w", 1], ["%x"], form="inplace"),
            node("sum", ["%x", None, False, None], ["%s"]),
            node("gt", ["%s", 50.0], ["%large"]),
            node("cond", ["%large", ["%x"]], [["%y"]], regions=[double, same]),
        ],
        "outputs": ["%y"],
    }
    graph = {
        "plait_graph": 1,
        "inputs": [tensor("x"), {"name": "p", **copy.deepcopy(BOOL)}],
        "weights": [tensor("w")],
        "numbers": [{"name": "n", "value": 1.5}],
        "nodes": [
            node("cond", ["%p", ["%x"]], [["%y"]], regions=[double, same]),
            node("while_loop", [["%y"], ["%w"]], [["%z"]], regions=[condition, body]),
        ],
        "outputs": ["%z"],
    }
    return copy.deepcopy(graph)  # the two branches appear twice


def run(graph: Any) -> list[Any]:
    program = _graph.Program(graph if isinstance(graph, str) else json.dumps(graph))
    program.bind([pc.ones(2, 3)])
    return [program.run([pc.full((2, 3), 3.5), pc.tensor(p)])[0].tolist() for p in (True, False)]


def test_the_sound_graph() -> None:
    # 7 or 3.5; then 1 is added in each round, and what is more than 50 / 6 is doubled
    assert run(sound()) == [[[18.0] * 3] * 2, [[17.0] * 3] * 2]


OTHER = tensor("q", shape=[3, 2])
INT = tensor("q", dtype="int64")
ADD = node("add", ["%a", "%a", 1], ["%a"], form="inplace")


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("nodes.0.regions", None, "a list or an object is expected, found null"),
        ("nodes.0.regions", [], "2 regions are required, got 0"),
        ("nodes.0.regions", [{}, {}, {}], "2 regions are required, got 3"),
        ("nodes.0.regions.0", 7, "region 0: an object is expected, found an integer"),
        ("nodes.0.regions.1", {}, 'node 0 .*"cond".*: region 1: the key "inputs" is missing'),
        ("nodes.0.regions.0.weights", [tensor("w")], "region 0: a region has inputs, nodes and"),
        ("nodes.0.regions.0.numbers", [{"name": "n", "value": 1}], 'only, found "numbers"'),
        ("nodes.0.regions.0.nodes.0.in.0", "%x", 'node 0 .*"mul".*`self`: the name "%x" is used'),
        ("nodes.0.regions.0.nodes.0.in.1", "%n", '"%n" is used before it is defined'),
        ("nodes.0.regions.0.nodes.0.out.0", "%a", "region 0: .*|dtype"),
        ("nodes.0.regions.0.outputs", [], "cond: the first branch has 0 outputs; 1 are required"),
        ("nodes.0.regions.0.outputs", ["%y"], '"%y" is used before it is defined'),
        ("nodes.0.regions.1.inputs", [], '"%a" is used before'),
        ("nodes.0.regions.1.inputs", [tensor("a"), OTHER], "the second branch has 2 inputs; the"),
        ("nodes.0.regions.0.inputs.0.shape", [3, 2], "operand 0 is float32.2, 3.; input 0 of"),
        ("nodes.0.regions.0.inputs.0.dtype", "int64", "operand 0 is float32.*is int64"),
        ("nodes.0.regions.0.inputs.0.strides", [2**62, 1], "larger|more than"),
        ("nodes.0.regions.0.nodes.0.in.1", {"float": "x"}, 'there is no float "x"'),
        ("nodes.0.regions.0.nodes", [ADD], '"%b" is used before'),
        ("nodes.0.regions.0", {"inputs": [tensor("a")], "nodes": [ADD], "outputs": ["%a"]},
         "the first branch writes to its input 0; only the body of a loop may write"),
        ("nodes.0.regions.0.nodes.0", node("to.dtype", ["%a", {"dtype": "int64"}, False, False],
                                           ["%b"]), "operator|result 0 is int64"),
        ("nodes.0.regions.0.nodes.0", node("gt", ["%a", 1.0], ["%b"]),
         r"cond: result 0 is bool\(2, 3\) in the first branch, and float32\(2, 3\) in the second"),
        ("nodes.0.regions.0.nodes.0", node("nonzero", ["%a"], ["%b"]), "depends on values"),
        ("nodes.0.in.0", "%x", r"the predicate must be a bool with one element, got float32\(2, 3"),
        ("nodes.0.in.1", "%x", "`operands`: a list or an object is expected"),
        ("nodes.0.in.1", [], "the first branch has 1 inputs; the node has 0 operands"),
        ("nodes.0.in.1", ["%x", "%w"], "the first branch has 1 inputs; the node has 2 operands"),
        ("nodes.0.in.1", [None], "null is given in a list whose tensors are not optional"),
        ("nodes.0.in", ["%p"], "the operator has 2 arguments, got 1"),
        ("nodes.0.out", ["%y"], "the result must be a list"),
        ("nodes.0.out", [["%x"]], "the results are new tensors, none of before"),
        ("nodes.0.out", [["%w"]], 'the name "%w" is defined twice'),
        ("nodes.0.out", [["%y", None]], "the first branch has 1 outputs; 2 are required"),
        ("nodes.0.form", "inplace", "the operator has no such form"),
        ("nodes.0.op", "cond\0", "there is no operator"),
        ("nodes.0.op", "while_loop", "`carried`: a list or an object is expected"),
        ("nodes.1.op", "cond", "`predicate`: a string is expected"),
        ("nodes.1.in.0", ["%y", "%y"], "it has 2 carried values and 1 results"),
        ("nodes.1.in.1", [], "the condition has 2 inputs; the node has 1 operands"),
        ("nodes.1.regions.0.outputs", ["%x"], "the predicate must be a bool with one element"),
        ("nodes.1.regions.0.outputs", ["%go", "%go"], "the condition has 2 outputs; 1 are requi"),
        ("nodes.1.regions.1.outputs", ["%s"], r"carried value 0 is float32\(2, 3\), and float32"),
        ("nodes.1.regions.1.nodes.0.in.0", "%w", "has its first argument as the result"),
        ("nodes.1.regions.0.inputs.0.strides", [1, 2], "must have the strides of C order"),
        ("nodes.1.regions.0.nodes.0", node("add", ["%x", "%w", 1], ["%x"], form="inplace"),
         '"%s" is used before'),
        ("nodes.1.regions.1.nodes.0", node("add", ["%w", "%x", 1], ["%w"], form="inplace"),
         "the body writes to its input 1; only the body of a loop may write, to carried"),
        ("nodes.1.regions.1.nodes.3.regions.0.nodes.0.op", "mule", 'there is no operator "mule"'),
    ],
)  # fmt: skip
def test_an_error_says_what_is_wrong(path: str, value: Any, text: str) -> None:
    graph = sound()
    put(graph, path, value)
    with pytest.raises((ValueError, RuntimeError, TypeError), match=text) as error:
        run(graph)
    assert len(str(error.value)) < 600


def put(graph: Any, path: str, value: Any) -> None:
    *keys, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    at = graph
    for key in keys:
        at = at[key]
    at[last] = value


@pytest.mark.parametrize(("levels", "works"), [(10, True), (14, True), (16, False), (1000, False)])
def test_regions_within_regions(levels: int, works: bool) -> None:
    begin = '{"inputs": [{"name": "p", "dtype": "bool", "shape": []}], "nodes": ['
    end = '], "outputs": ["%p"]}'
    same = begin + end
    text = same
    for _ in range(levels):
        inner = '{"op": "cond", "in": ["%p", ["%p"]], "out": [["%q"]], "regions": ['
        text = f"{begin}{inner}{text}, {same}]}}{end}"
    text = '{"plait_graph": 1, "weights": [], ' + text[1:]
    if works:
        assert _graph.Program(text).run([pc.tensor(True)])[0].item() is True
        return
    with pytest.raises(ValueError, match="nested deeper than 64 levels"):
        _graph.Program(text)


def test_endless_work_in_a_region() -> None:
    long = {"dtype": "bool", "shape": [2**56]}
    region = {"inputs": [{"name": "a", **long}], "nodes": [node("unbind", ["%a", 0], [["%b"]])]}
    region["outputs"] = ["%b"]
    graph = {
        "plait_graph": 1,
        "inputs": [{"name": "x", **long}, {"name": "p", **BOOL}],
        "weights": [],
        "nodes": [node("cond", ["%p", ["%x"]], [["%y"]], regions=[region, region])],
        "outputs": ["%y"],
    }
    with pytest.raises(ValueError, match=r'"unbind".: more than \d+ operator calls are needed'):
        _graph.Program(json.dumps(graph))


def places(at: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all parts of a value in JSON."""
    items = at.items() if isinstance(at, dict) else enumerate(at) if isinstance(at, list) else ()
    return [path] * bool(path) + [p for key, each in items for p in places(each, (*path, key))]


def value_at(graph: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        graph = graph[key]
    return graph


SOUND = sound()
PLACES = places(SOUND)
KINDS = {
    path: ([k for k in path if isinstance(k, str)][-1], type(value_at(SOUND, path)))
    for path in PLACES
}


def changed(draw: random.Random) -> dict[str, Any]:
    """Return the sound graph with one or two changes, most of them by a part of the same kind."""
    graph = copy.deepcopy(SOUND)
    for _ in range(draw.randint(1, 2)):
        path = draw.choice(PLACES)
        alike = [each for each in PLACES if KINDS[each] == KINDS[path]]
        other = value_at(SOUND, draw.choice(alike))
        value = draw.choice([other] * 8 + [None, -1, 2**62, [], {}, "%x"])
        try:
            at = value_at(graph, path[:-1])
            if draw.random() < 0.1:
                del at[path[-1]]
            else:
                at[path[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue  # the first change removed it
    return graph


def test_random_changes() -> None:
    draw = random.Random(0)
    outcomes = {True: 0, False: 0}
    for _ in range(600):
        try:
            _graph.Program(json.dumps(changed(draw)))
            outcomes[True] += 1
        except (ValueError, RuntimeError, TypeError) as error:
            assert 0 < len(str(error)) < 1000
            outcomes[False] += 1
    assert min(outcomes.values()) > 60, outcomes
