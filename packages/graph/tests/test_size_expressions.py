"""Expressions of sizes: texts, values, and those that fit numbers of several recordings."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest

from plait_graph import Graph, SizeExpression, SizeQuotient, SizeRange, Value
from plait_graph._graph import SizedProgram
from plait_graph._size_expressions import (
    evaluate,
    expression_text,
    holds,
    parse_expression,
    parse_relation,
    relation_text,
)
from plait_graph._size_fitting import SizeFit
from plait_graph._templates import spans


def graph_with(sizes: Any, shape: list[Any], more: Any = ()) -> str:
    """Return a graph that makes a tensor of a shape."""
    node = {"op": "zeros", "in": [[*shape], {"dtype": "uint8"}, None], "out": ["%y"]}
    return json.dumps(
        {
            "plait_graph": 1,
            "sizes": sizes,
            "inputs": [{"name": "x", "dtype": "uint8", "shape": list(sizes) or [1]}],
            "weights": [],
            "nodes": [node],
            "outputs": ["%y"],
            **dict(more),
        }
    )


N = {"n": {"min": 0, "max": 2**63 - 1, "value": 4}}


def random_expression(source: random.Random, depth: int) -> Any:
    if depth == 0 or source.random() < 0.2:
        return source.choice(["n", "m", source.randrange(-9, 10)])
    op = source.choice(["+", "-", "*", "//", "%", "min", "max"])
    return op, random_expression(source, depth - 1), random_expression(source, depth - 1)


def test_texts_are_read_as_they_are_written() -> None:
    import plait_core as pc

    source = random.Random(0)
    sizes = {"n": 5, "m": 3}
    ranges = {name: {"min": 0, "max": 9, "value": n} for name, n in sizes.items()}
    compared = 0
    for _ in range(300):
        expression = random_expression(source, 4)
        text = expression_text(expression)
        try:
            expected = evaluate(expression, sizes)
        except ValueError:
            with pytest.raises(ValueError, match="zero"):
                evaluate(parse_expression(text), sizes)
            continue
        assert evaluate(parse_expression(text), sizes) == expected
        assert expected == eval(text, {"min": min, "max": max}, dict(sizes))
        shape = [{"size": f"({text} - ({expected})) * 7 + 2"}]
        program = SizedProgram(graph_with(ranges, shape))
        program.bind([])
        assert program.run([pc.zeros(5, 3, dtype=pc.uint8)])[0].shape == (2,)
        compared += 1
    assert compared > 200


def test_relations() -> None:
    for text in ("n % 2 == 0", "n != m", "n < 5", "n <= 5", "n > m * 2", "n >= 6"):
        relation = parse_relation(text)
        assert relation_text(relation) == text
        for n, m in ((4, 2), (5, 5), (6, 3)):
            assert holds(relation, {"n": n, "m": m}) == eval(text, {}, {"n": n, "m": m})


BAD = {
    "": "no expression",
    "n +": "no expression",
    "n n": "no expression",
    "(n": "no expression",
    "n)": "no expression",
    "n / 2": "no expression",
    "n ** 2": "no expression",
    "min(n)": "no expression",
    "min": "no expression",
    "1.5": "no expression",
    "0x10": "no expression",
    "__import__('os')": "no expression|no size",
    "k": "no size",
    "9223372036854775808": "no expression",
    "n // 0": "zero",
    "n % (n - 4)": "zero",
    "9223372036854775807 + n": "64 bits",
    "(-9223372036854775807 - 1) // (3 - n)": "64 bits",
    "n * 9223372036854775807": "64 bits",
    "-(-9223372036854775807 - 1)": "64 bits",
    "0" * 1001: "1000",
    "(" * 100 + "n" + ")" * 100: "levels",
    "-" * 100 + "n": "levels",
    "n" + " + n" * 100: "levels",
    "0 - n": "negative|size",
}


@pytest.mark.parametrize("text", BAD)
def test_texts_of_others(text: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=BAD[text]) as error:
        SizedProgram(graph_with(N, [{"size": text}]))
    assert len(str(error.value)) < 400
    if text != "0 - n":
        with pytest.raises(ValueError, match="sizes: "):
            evaluate(parse_expression(text), {"n": 4})


@pytest.mark.parametrize(
    ("sizes", "more", "message"),
    [
        ({"n": {"min": 5, "max": 9, "value": 4}}, {}, "from 5 to 9"),
        ({"n": {"min": -1, "max": 9, "value": 4}}, {}, "from -1 to 9"),
        ({"n": {"min": 1, "value": 4}}, {}, "max"),
        ({"n": {"min": 1.5, "max": 9, "value": 4}}, {}, "integer"),
        ({"a b": {"min": 1, "max": 9, "value": 4}}, {}, "no name of a size"),
        ({"min": {"min": 1, "max": 9, "value": 4}}, {}, "no name of a size"),
        ({f"n{i}": {"min": 1, "max": 9, "value": 1} for i in range(65)}, {}, "more than 64"),
        (N, {"guards": ["n > 4"]}, "n > 4; got n = 4"),
        (N, {"guards": ["n"]}, "no expression"),
        (N, {"guards": [3]}, "string"),
        (N, {"shapes": {"y": ["n"]}}, "not "),
        (N, {"inputs": [{"name": "x", "dtype": "uint8", "shape": ["n + 1"]}]}, "not a dimension"),
        (N, {"inputs": [{"name": "x", "dtype": "uint8", "shape": ["n", "n*2**3"]}]}, "expression"),
        (N, {"sizes": [3]}, "object"),
    ],
)
def test_sizes_of_others(sizes: Any, more: Any, message: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=message):
        SizedProgram(graph_with(sizes, [3], more))


def test_graphs_in_python_refuse_the_same() -> None:
    x = Value("x", "float32", ("n", 4))
    for graph, message in [
        (Graph([x], sizes={}), "no size 'n'"),
        (Graph([x], sizes={"n": SizeRange(1, 9, 2), "m": SizeRange(1, 9, 2)}), "not a dimension"),
        (Graph([x], [Value("w", "int8", ("n",))], sizes={"n": SizeRange(1, 9, 2)}), "a weight"),
        (Graph([x], sizes={"n": SizeRange(1, 9, 2)}, guards=["k > 2"]), "no size 'k'"),
    ]:
        with pytest.raises(ValueError, match=message):
            graph.check()
    graph = Graph([x], sizes={"n": SizeRange(2, 9, 2)}, guards=["n % 2 == 0"])
    for sizes, message in [({"n": 10}, "2 to 9"), ({"n": 3}, "n % 2 == 0"), ({}, "are required")]:
        with pytest.raises(ValueError, match=message):
            graph.at_sizes(sizes)
    for make in (
        lambda: SizeRange(3, 2, 2),
        lambda: SizeExpression("n +"),
        lambda: SizeQuotient(math.inf),
        lambda: Value("x", "float32", ("n +",)),
    ):
        with pytest.raises(ValueError, match="ize"):
            make()
    for form in ({"sizes": {"n": 3}}, {"sizes": []}, {"guards": {}}, {"shapes": {"y": [-1]}}):
        with pytest.raises(ValueError, match="Graph"):
            Graph.from_json(json.dumps({"plait_graph": 1, "inputs": [], "nodes": [], **form}))


def test_expressions_that_fit() -> None:
    samples = [{"n": n, "h": h} for n, h in [(4, 32), (5, 32), (4, 33), (6, 37), (9, 16), (3, 22)]]
    assert spans(samples) and not spans([{"n": n, "m": 2 * n} for n in range(9)])
    assert not spans([{"n": n, "h": h} for n, h in [(4, 6), (5, 6), (9, 9), (7, 6), (8, 9)]])
    for text in ("n * 3 + 1", "n * h", "h - 3", "(h + 1) // 2", "n * h * 2", "n * n", "h + n - 1"):
        expression = parse_expression(text)
        fit = SizeFit(samples)
        found = fit.whole([evaluate(expression, sample) for sample in samples])
        assert found is not None
        for sizes in ({"n": 11, "h": 64}, {"n": 8, "h": 51}):
            assert evaluate(found, sizes) == evaluate(expression, sizes), text
    fit = SizeFit(samples)
    assert fit.whole([1, 5, 2, 8, 3, 9]) is None
    found = fit.quotient([0.1 * s["n"] / (s["n"] - 1) for s in samples])
    assert found is not None and found.value({"n": 21, "h": 1}) == 0.1 * 21 / 20
    assert fit.quotient([1.5, 2.5, 1.25, 9.75, math.nan, 1.0]) is None
