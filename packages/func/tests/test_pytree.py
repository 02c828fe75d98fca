"""Containers, their structures, and paths to their leaves."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest

from plait_func import pytree as trees

Pair = namedtuple("Pair", "one two")


def test_structures_of_every_container() -> None:
    tree = {
        "a": [1, (2, 3)],
        "b": OrderedDict(x=4),
        "c": deque([5], maxlen=3),
        "d": defaultdict(int, y=6),
        "e": Pair(7, [8]),
    }
    leaves, spec = trees.tree_flatten(tree)
    assert leaves == list(range(1, 9)) and spec.num_leaves == 8 and spec.num_children == 5
    again = trees.tree_unflatten(leaves, spec)
    assert again == tree and again["c"].maxlen == 3 and again["d"].default_factory is int
    assert type(again["e"]) is Pair and spec.child(4).type is namedtuple
    assert spec.num_nodes == 8 + 8 and not spec.is_leaf() and spec.children()[0].num_leaves == 3
    assert repr(trees.tree_structure([1])) == "TreeSpec(list, None, [*])"
    for wrong in (leaves[1:], [*leaves, 9]):
        with pytest.raises(ValueError, match=f"8 leaves are required; got {len(wrong)}"):
            spec.unflatten(wrong)


def test_leaves() -> None:
    leaf = trees.LeafSpec()
    assert leaf == trees.tree_structure(3) and leaf.is_leaf()
    assert isinstance(trees.tree_structure([3]).child(0), trees.LeafSpec)
    spec = trees.TreeSpec(list, None, [leaf, trees.LeafSpec()])
    assert spec == trees.tree_structure([1, 2]) and trees.tree_unflatten("ab", spec) == ["a", "b"]
    flatten = trees.SUPPORTED_NODES[namedtuple].flatten_fn
    assert flatten(Pair(1, 2)) == ([1, 2], Pair)
    assert trees.tree_is_leaf(3) and not trees.tree_is_leaf([3])
    assert trees.tree_is_leaf([3], is_leaf=lambda x: isinstance(x, list))


def test_paths() -> None:
    tree = {"a": [1, {"b": 2}], "c": Pair(3, (4,))}
    leaves, _ = trees.tree_flatten_with_path(tree)
    texts = [trees.keystr(path) for path, _ in leaves]
    assert texts == ["['a'][0]", "['a'][1]['b']", "['c'].one", "['c'].two[0]"]
    assert all(trees.key_get(tree, path) == leaf for path, leaf in leaves)
    assert trees.tree_leaves_with_path(tree) == leaves
    named = trees.tree_map_with_path(lambda path, x, y: (len(path), x + y), [1, [2]], [10, [20]])
    assert named == [(1, 11), [(2, 22)]]

    class Box:
        def __init__(self, inside: Any) -> None:
            self.inside = inside

    trees.register_pytree_node(Box, lambda box: ([box.inside], None), lambda x, _: Box(*x))
    try:
        with pytest.raises(ValueError, match="flatten_with_keys_fn"):
            trees.tree_leaves_with_path(Box(1))
    finally:
        del trees.SUPPORTED_NODES[Box]
    assert trees.tree_is_leaf(Box(1))


def test_several_trees_agree() -> None:
    assert trees.tree_map(lambda x, y: (x, y), [1, 2], ["a", ["b", "c"]]) == [
        (1, "a"),
        (2, ["b", "c"]),
    ]
    with pytest.raises(ValueError, match="flatten_up_to"):
        trees.tree_map(lambda x, y: x, [1, [2]], [1, 2])
    with pytest.raises(ValueError, match="flatten_up_to"):
        trees.tree_map(lambda x, y: x, {"a": 1}, {"b": 1})
    broadcast, spec = trees.broadcast_to_and_flatten, trees.tree_structure([1, (2, 3)])
    assert broadcast([0, None], spec) == [0, None, None] and broadcast([0], spec) is None
    assert broadcast(0, spec) == [0, 0, 0] and broadcast([[0], 1], spec) is None


def test_dataclasses() -> None:
    @dataclass
    class Point:
        x: Any
        y: Any = 0
        note: str = field(default="", compare=False)

    with pytest.raises(ValueError, match="no field 'z'"):
        trees.register_dataclass(Point, field_names=["z"])
    with pytest.raises(ValueError, match="a dataclass"):
        trees.register_dataclass(int)
    trees.register_dataclass(Point, drop_field_names=["note"])
    try:
        leaves, spec = trees.tree_flatten_with_path(Point(1, [2], "n"))
        assert [trees.keystr(path) for path, _ in leaves] == [".x", ".y[0]"]
        assert spec.unflatten([3, 4]) == Point(3, [4])
    finally:
        del trees.SUPPORTED_NODES[Point]
