"""Pictures of graphs."""

from __future__ import annotations

import random
import xml.etree.ElementTree

import pytest

from plait_graph import Graph, Value

X, W = Value("x", "float32", (8, 3)), Value("w", "float32", (4, 3))


SVG = "{http://www.w3.org/2000/svg}"


def boxes(text: str) -> list[tuple[float, float, float, float]]:
    """Return left, top, right and bottom of the boxes in a picture."""
    root = xml.etree.ElementTree.fromstring(text)
    results = []
    for rect in root.iter(f"{SVG}rect"):
        if "x" in rect.attrib:
            x, y, w, h = (float(rect.attrib[k]) for k in ("x", "y", "width", "height"))
            results.append((x, y, x + w, y + h))
    return results


def apart(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    return one[2] < two[0] or two[2] < one[0] or one[3] < two[1] or two[3] < one[1]


@pytest.mark.parametrize("seed", range(8))
def test_boxes_do_not_overlap_and_stand_below_what_they_read(seed: int) -> None:
    draw = random.Random(seed)
    graph = Graph([X])
    values = [X, graph.call("zeros", (8, 3))]
    for _ in range(draw.choice([0, 1, 30, 80])):
        values.append(graph.call("add", draw.choice(values), draw.choice(values[-5:])))
    graph.outputs = [values[-1]]
    found = boxes(graph.picture())
    assert len(found) == 1 + len(graph.nodes) + 1
    for i, one in enumerate(found):
        assert all(apart(one, two) for two in found[:i])
    bottoms = dict(zip(values, [found[0][3], *(box[3] for box in found[1:-1])], strict=True))
    for node, box in zip(graph.nodes, found[1:], strict=False):
        assert all(bottoms[value] < box[1] for value in node.reads())


def test_a_node_that_reads_nothing_stands_above_its_user() -> None:
    graph = Graph([X])
    zeros, value = graph.call("zeros", (8, 3)), X
    for _ in range(5):
        value = graph.call("exp", value)
    graph.call("add", value, zeros)
    found = boxes(graph.picture())
    top_of_zeros, *others, last = (box[1] for box in found[1:])
    assert abs(top_of_zeros - others[-1]) < 20
    assert top_of_zeros < last


def test_a_picture_names_weights_and_what_comes_from_far() -> None:
    graph = Graph([X], [W])
    value = first = graph.call("linear", X, W)
    for _ in range(20):
        value = graph.call("exp", value)
    graph.outputs = [graph.call("sub", value, first)]
    text = graph.picture()
    assert ">%w<" in text and ">from above: %1<" in text
    assert Graph().picture().startswith("<svg")
    odd = Graph([Value("<&>", "float32", (8, 3))])
    assert "%&lt;&amp;&gt;" in odd.picture()
