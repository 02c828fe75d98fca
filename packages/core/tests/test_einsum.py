"""`einsum` against NumPy's, and its errors."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import plait_core as pc

SIZES = dict(zip("ijklmnb", (2, 3, 4, 5, 2, 3, 2), strict=True))


def draw(term: str, seed: int, dtype: str = "float64") -> np.ndarray[Any, Any]:
    shape = [SIZES[letter] for letter in term.replace("...", "mn")]
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize(
    "equation",
    [
        "i->i", "i->", "ij->ji", "ij", "ji", "ii->i", "ii", "iij->j", "iji->ij",
        "i,i->i", "i,i->", "i,j->ij", "i,j->ji", "ij,j->i", "ij,jk->ik", "ij,jk", "ij,kj->ik",
        "bij,bjk->bik", "bij,bjk->ikb", "bij,jk->bik", "bij,bij->b", "bij,bij->", "ij,ij->ij",
        "ij,jk,kl->il", "ij,jk,kl->", "bi,bj,bk->bijk", "i,i,i->i", "ij,j,i->", "ijk,jil->kl",
        "...i->...", "...ij,...jk->...ik", "i...,i...->...", "...,...->...", "i...j->j...i",
        "...ij,jk->...ik", "...i,...i", "ii,ij->j", "ij,ik,il->jkl", "bik,bjk,bij->b",
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_equations(equation: str, dtype: str) -> None:
    terms = equation.split("->")[0].split(",")
    arrays = [draw(term, i, dtype) for i, term in enumerate(terms)]
    result = pc.einsum(equation, *[pc.from_numpy(x) for x in arrays])
    want = np.einsum(equation, *arrays)
    assert tuple(result.shape) == want.shape
    np.testing.assert_array_equal(result.numpy(), want)


def test_sublists_and_lists_of_operands() -> None:
    a, b = pc.from_numpy(draw("ij", 0)), pc.from_numpy(draw("jk", 1))
    want = a.numpy() @ b.numpy()
    np.testing.assert_array_equal(pc.einsum(a, [0, 1], b, [1, 2]).numpy(), want)
    np.testing.assert_array_equal(pc.einsum(a, [0, 30], b, [30, 2], [2, 0]).numpy(), want.T)
    np.testing.assert_array_equal(pc.einsum(a, [..., 1], b, [1, 2], [..., 2]).numpy(), want)
    np.testing.assert_array_equal(pc.einsum("ij, jk -> ik", [a, b]).numpy(), want)


def test_sizes_of_one_stand_for_all() -> None:
    rng = np.random.default_rng(0)
    for a, b in itertools.product([(3, 1), (3, 4)], [(1, 2), (4, 2)]):
        x, y = rng.random(a), rng.random(b)
        n = max(a[1], b[0])
        want = np.broadcast_to(x, (3, n)) @ np.broadcast_to(y, (n, 2))
        result = pc.einsum("ij,jk->ik", pc.from_numpy(x), pc.from_numpy(y)).numpy()
        np.testing.assert_allclose(result, want)
    x, y = rng.random((2, 1, 3)), rng.random((4, 3))
    result = pc.einsum("...i,...i->...", pc.from_numpy(x), pc.from_numpy(y)).numpy()
    np.testing.assert_allclose(result, (x * y).sum(-1))


def test_empty_and_complex() -> None:
    result = pc.einsum("ij,jk->ik", pc.zeros(2, 0), pc.zeros(0, 3))
    assert result.tolist() == [[0.0] * 3] * 2
    x = np.array([[1 + 2j, 3], [0, 1j]], "complex64")
    t = pc.from_numpy(x)
    np.testing.assert_allclose(pc.einsum("ij,jk->ik", t, t).numpy(), x @ x)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: pc.einsum("ij,jk->ik", x), "subscripts for 2 operands; got 1"),
        (lambda x: pc.einsum("i", x), "operand 0 has 2 dimensions"),
        (lambda x: pc.einsum("ijk", x), "operand 0 has 2 dimensions"),
        (lambda x: pc.einsum("ijk...", x), "at least 3"),
        (lambda x: pc.einsum("i1", x), "subscripts are letters"),
        (lambda x: pc.einsum("ij->k", x), "names 'k', which no operand has"),
        (lambda x: pc.einsum("ij->ii", x), "names 'i' twice"),
        (lambda x: pc.einsum("ii", x), "stands twice in one operand, for sizes 2 and 3"),
        (lambda x: pc.einsum("ij,ij", x, x.T), "have sizes 2 and, in operand 1 of shape (3, 2), 3"),
        (lambda x: pc.einsum(x, [0, 52]), "numbers in [0, 52)"),
    ],
)
def test_refusals(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match="^einsum: .*" + re.escape(text)):
        call(pc.ones(2, 3))
    with pytest.raises(TypeError, match="operand 0 must be a Tensor"):
        pc.einsum("i", 3)
