"""`torch.utils._pytree` and `torch.return_types`: PyTorch's names for containers."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest

Pair = namedtuple("Pair", "one two")


def test_named_results_are_containers(torch: Any) -> None:
    trees = torch.utils._pytree
    result = torch.max(torch.tensor([[1.0, 3.0]]), 1)
    doubled = trees.tree_map(lambda x: x * 2, result)
    assert type(doubled) is type(result)
    assert doubled.values.tolist() == [6.0] and doubled.indices.tolist() == [2]
    assert trees.is_structseq(result) and not trees.is_structseq((1, 2))
    assert not trees.is_structseq_class(Pair) and trees.is_namedtuple_class(Pair)
    assert trees.is_namedtuple(Pair(1, 2)) and not trees._is_namedtuple_instance((1, 2))


def test_pytorchs_other_names(torch: Any) -> None:
    trees = torch.utils._pytree
    assert trees.treespec_leaf() == trees.LeafSpec() == trees.tree_structure(3)
    assert trees._get_node_type(Pair(1, 2)) is namedtuple and trees._get_node_type([]) is list
    assert trees._broadcast_to_and_flatten(0, trees.tree_structure([1, (2, 3)])) == [0, 0, 0]
    assert trees._dict_flatten({"a": 1}) == ([1], ["a"])
    seen: list[int] = []
    tree = [1, "a"]
    assert trees.tree_map_only_(int, seen.append, tree) is tree and seen == [1]
    sizes, spec = trees.tree_flatten(torch.Size([2, 3]))
    assert sizes == [2, 3] and trees.treespec_loads(trees.treespec_dumps(spec)) == spec


def test_classes_of_results(torch: Any) -> None:
    types = torch.return_types
    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    assert type(torch.max(x, 0)) is types.max and type(x.sort()) is types.sort
    assert type(torch.linalg.eigh(x)) is types.linalg_eigh
    assert isinstance(torch.topk(x, 1), types.topk) and not isinstance(x.max(0), types.min)
    output = types.max((x, x))
    assert output.values is x and output.indices is x
    result = types.all_return_types
    assert len(set(result)) == len(result) >= 30 and types.lu_unpack in result
    assert all(kind in torch.utils._pytree.SUPPORTED_NODES for kind in result)
    assert {"max", "linalg_qr", "all_return_types"} <= set(dir(types))
    assert [kind.__name__ for kind in result][:2] == ["cummax", "cummin"]
    types.pytree_register_structseq(types.svd)
    with pytest.raises(TypeError, match="a class of results"):
        types.pytree_register_structseq(int)
    with pytest.raises(AttributeError, match=r"torch\.return_types\.nothing is not available"):
        _ = types.nothing


def test_results_show_as_in_pytorch(torch: Any) -> None:
    result = torch.max(torch.eye(2), 1)
    assert repr(result) == (
        "torch.return_types.max(\nvalues=tensor([1., 1.]),\nindices=tensor([0, 1]))"
    )
    counts = torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), bins=[2, 2])
    assert counts._fields == ("hist", "bin_edges")
