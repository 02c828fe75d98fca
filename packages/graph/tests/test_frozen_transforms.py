"""Transforms of plait.func within compiled functions: calls on all samples are in the graph."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc
from plait_func import grad, hessian, jacfwd, jacrev, vmap
from plait_graph import compile, export, load

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import assert_same

W = pc.tensor([0.5, -1.0, 2.0, 0.25])


def loss(w: Any, x: Any) -> Any:
    return (w * x).sum() ** 2


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda x: vmap(lambda row: row.sin() * row.sum())(x),
    "view in vmap": lambda x: vmap(lambda row: (row.view(2, 2).t() * 2).sum(0)[1:])(x),
    "nested vmap": lambda x: vmap(vmap(lambda a, b: a * b, (None, 0)), (0, None))(x[:, 0], W),
    "write in vmap": lambda x: vmap(lambda row: row.clone().mul_(row[0]))(x),
    "gradients of samples": lambda x: vmap(grad(loss), (None, 0))(W, x),
    "jacrev": lambda x: jacrev(lambda v: v.sin() * v.sum())(x[0]),
    "jacfwd": lambda x: jacfwd(lambda v: v.sin() * v.sum())(x[0]),
    "hessian": lambda x: hessian(lambda v: (v**3).sum())(x[0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms_are_frozen(name: str) -> None:
    function = FUNCTIONS[name]
    compiled = compile(function, frozen=True)
    for k in range(4):
        x = pc.randn(3, 4)
        assert_same(compiled(x), function(x))
        assert k < 2 or len(compiled.graphs()) == 1


def test_a_file_has_gradients_of_samples(tmp_path: Path) -> None:
    function = FUNCTIONS["gradients of samples"]
    export(function, (pc.randn(3, 4),), tmp_path / "f")
    x = pc.randn(3, 4)
    assert pc.equal(load(tmp_path / "f")(x), function(x))
