"""`vmap` and `linearize` against PyTorch: indices and writes of each sample, and 0 samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import plait
from plait_torch import _func as func

KEYS: list[Any] = [
    lambda i, j: i, lambda i, j: (i, j), lambda i, j: (i, slice(None), j), lambda i, j: (..., i),
    lambda i, j: (None, i, None), lambda i, j: (i, None, j), lambda i, j: (0, i),
    lambda i, j: (i, 0),
    lambda i, j: (i, slice(1, 3), i), lambda i, j: (i, i, i), lambda i, j: (slice(None), j, i),
    lambda i, j: ([0, 1], slice(None), i), lambda i, j: (i, slice(None), [0, 1]),
    lambda i, j: (j % 4, slice(None), j), lambda i, j: (j % 4, None), lambda i, j: -1 - i,
]  # fmt: skip
X = np.arange(360.0).reshape(3, 4, 5, 6)
NUMBER, PAIR = np.array([0, 1, 3]), np.array([[0, 1], [2, 3], [4, 4]])


@pytest.mark.parametrize("number", range(len(KEYS)))
@pytest.mark.parametrize("shared", [False, True], ids=["", "shared"])
def test_indices_of_each_sample(number: int, shared: bool) -> None:
    key = KEYS[number]

    def write(a: Any, i: Any, j: Any) -> Any:
        a = a.clone() + 0 * i
        a[key(i, j)] = a[key(i, j)] * 2 + 1
        a[key(i, j)] += i
        return a

    x, dims = (X[0], (None, 0, 0)) if shared else (X, (0, 0, 0))
    functions = [lambda a, i, j: a[key(i, j)], write]
    if number == 10:  # PyTorch refuses its own selection as the value
        functions.pop()
    for function in functions:
        wanted = torch.func.vmap(function, dims)(*map(torch.tensor, (x, NUMBER, PAIR)))
        found = func.vmap(function, dims)(*map(plait.tensor, (x, NUMBER, PAIR)))
        assert np.array_equal(found.numpy(), wanted.numpy())


@pytest.mark.parametrize(
    "function",
    [
        lambda t, a: t.sin(a), lambda t, a: a.sum(), lambda t, a: a.max(), lambda t, a: a @ a,
        lambda t, a: t.linalg.svdvals(a), lambda t, a: t.linalg.inv(a),
        lambda t, a: a.softmax(0), lambda t, a: a[a[0].long()], lambda t, a: a.clone().mul_(2),
        lambda t, a: t.nn.functional.cross_entropy(a, a[0].long()),
        lambda t, a: t.nn.functional.layer_norm(a, (3,)),
    ],
)  # fmt: skip
def test_no_samples(function: Any) -> None:
    for dim in (0, -1):
        wanted = torch.func.vmap(lambda a: function(torch, a), out_dims=dim)(torch.zeros(0, 3, 3))
        found = func.vmap(lambda a: function(plait, a), out_dims=dim)(plait.zeros(0, 3, 3))
        assert tuple(found.shape) == tuple(wanted.shape)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Attempted to insert:UserWarning")
def test_linearize() -> None:
    def f(a: Any, b: Any) -> Any:
        return {"product": a["x"] * b.sin(), "sum": [(a["x"] ** 3).sum()]}

    x, y, s, t = np.random.default_rng(0).normal(size=(4, 5))
    results = []
    for library, linearize in ((torch, torch.func.linearize), (plait, func.linearize)):
        given = [library.tensor(each) for each in (x, y, s, t)]
        value, push = linearize(f, {"x": given[0]}, given[1])
        results.append((value, push({"x": given[2]}, given[3])))
    for wanted, found in zip(*results, strict=True):
        assert np.allclose(found["product"].numpy(), wanted["product"].numpy())
        assert np.allclose(found["sum"][0].numpy(), wanted["sum"][0].numpy())


def test_both_refuse() -> None:
    w = {torch: torch.ones(3, requires_grad=True), plait: plait.ones(3, requires_grad=True)}
    for library, vmap in ((torch, torch.func.vmap), (plait, func.vmap)):

        def backward(a: Any, library: Any = library) -> Any:
            (a * w[library]).sum().backward()
            return a

        with pytest.raises(RuntimeError, match="backward"):
            vmap(backward)(library.ones(2, 3))
        assert w[library].grad is None
        with pytest.raises(RuntimeError, match="vmap"):
            vmap(lambda i, library=library: library.zeros(5).index_fill_(0, i, 1.0))(
                library.tensor([[0], [1]])
            )
        for reads in (library.bincount, lambda i, library=library: library.zeros(3)[i > 0]):
            with pytest.raises(RuntimeError):
                vmap(reads)(library.tensor([[0, 1, 2], [0, 0, 1]]))
