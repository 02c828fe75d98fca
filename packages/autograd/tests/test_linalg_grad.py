"""Derivatives that hold for symmetric matrices only, or go through several operators of linalg."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc

la = pc.linalg


def draw(*shape: int, seed: int = 0) -> Any:
    x = np.random.default_rng(seed).standard_normal(shape)
    return pc.from_numpy(x).requires_grad_()


def symmetric(x: Any) -> Any:
    return x + x.transpose(-2, -1)


def definite(x: Any) -> Any:
    return x @ x.transpose(-2, -1) + pc.eye(x.shape[-1], dtype=pc.float64)


def signless(vectors: Any) -> Any:
    """What does not depend on the signs of vectors."""
    return vectors * vectors


@pytest.mark.parametrize(
    "function",
    [
        lambda x: la.cholesky(definite(x)),
        lambda x: la.cholesky(definite(x), upper=True),
        lambda x: la.cholesky_ex(definite(x)).L,
        lambda x: pc.cholesky(definite(x), True),
        lambda x: la.eigvalsh(symmetric(x)),
        lambda x: la.eigh(symmetric(x))[0],
        lambda x: signless(la.eigh(symmetric(x), "U")[1]),
        lambda x: signless(la.svd(x)[0]),
        lambda x: la.svdvals(x),
        lambda x: la.pinv(definite(x), hermitian=True),
        lambda x: pc.cholesky_solve(x, la.cholesky(definite(x))),
        lambda x: la.matrix_norm(x, 2),
        lambda x: la.matrix_norm(x, "nuc"),
        lambda x: la.cond(x),
        lambda x: la.lstsq(x, x[..., :1] * 2).solution,
        lambda x: la.solve(x, x[..., 0]),
        lambda x: pc.logdet(definite(x)),
    ],
)
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2)])
def test_gradients(function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    assert pa.gradcheck(function, [draw(*shape)])


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 2)]),
        ("ii->i", [(3, 3)]),
        ("...i,...i->...", [(2, 3), (2, 3)]),
        ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 2)]),
        ("i,j->ji", [(2,), (3,)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [draw(*shape, seed=i) for i, shape in enumerate(shapes)]
    assert pa.gradcheck(lambda *x: pc.einsum(equation, *x), operands)


def test_chains_and_blocks() -> None:
    a, b, c = draw(2, 3), draw(3, 4, seed=1), draw(4, seed=2)
    assert pa.gradcheck(lambda *x: la.multi_dot(x), [a, b, c])
    assert pa.gradcheck(lambda *x: pc.block_diag(*x), [a, c])
    assert pa.gradcheck(lambda x, y: pc.tensordot(x, y, ([1], [0])), [a, b])


def test_what_has_no_derivative_says_so() -> None:
    wide = draw(2, 3)
    with pytest.raises(NotImplementedError, match="full_matrices"):
        la.svd(wide)[1].sum().backward()
    with pytest.raises(NotImplementedError, match="mode"):
        la.qr(wide, "r").R.sum().backward()
    with pytest.raises(NotImplementedError, match="linalg_eigvals"):
        la.eigvals(draw(2, 2)).real.sum().backward()
