"""Derivatives that hold for symmetric matrices only, or go through several operators of linalg."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_autograd as pa
import plait_core as pc

la = pc.linalg


def draw(*shape: int, seed: int = 0, dtype: str = "float64") -> Any:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype == "complex128":
        x = x + 1j * rng.standard_normal(shape)
    return pc.from_numpy(x).requires_grad_()


def adjoint(x: Any) -> Any:
    return pc.conj(x.transpose(-2, -1))


def symmetric(x: Any) -> Any:
    return x + adjoint(x)


def definite(x: Any) -> Any:
    return x @ adjoint(x) + pc.eye(x.shape[-1], dtype=x.dtype)


def signless(vectors: Any) -> Any:
    """Return a value that does not depend on the signs or phases of vectors."""
    return pc.abs(vectors).square()


def spanned(vectors: Any) -> Any:
    """Return a value that depends only on the span of vectors."""
    return vectors @ adjoint(vectors)


def residuals_and_solution(a: Any, b: Any) -> Any:
    result = la.lstsq(a, b, driver="gelsd")
    return pc.cat([result.residuals.flatten().to(a.dtype), result.solution.flatten()])


def distinct(x: Any) -> Any:
    """Draw matrices whose eigenvalues are far apart."""
    n = x.shape[-1]
    return x * 0.3 + pc.diag(pc.arange(1.0, n + 1, dtype=pc.float64)).to(x.dtype)


FUNCTIONS = [
    lambda x: la.cholesky(definite(x)),
    lambda x: la.cholesky(definite(x), upper=True),
    lambda x: la.cholesky_ex(definite(x)).L,
    lambda x: pc.cholesky(definite(x), True),
    lambda x: pc.cholesky_solve(x, la.cholesky(definite(x))),
    lambda x: pc.cholesky_solve(x, la.cholesky(definite(x), upper=True), True),
    lambda x: pc.cholesky_inverse(la.cholesky(definite(x))),
    lambda x: la.eigvalsh(symmetric(x)),
    lambda x: la.eigh(symmetric(x))[0],
    lambda x: signless(la.eigh(symmetric(x), "U")[1]),
    lambda x: la.eigvals(distinct(x)),
    lambda x: (la.eigvals(x) ** 3).sum(-1),
    lambda x: la.eig(distinct(x))[0],
    lambda x: signless(la.eig(distinct(x))[1]),
    lambda x: la.eig(x)[1] @ la.inv(la.eig(x)[1]) @ x.to(pc.complex128),
    lambda x: signless(la.svd(x)[0]),
    lambda x: la.svd(x)[0] @ la.svd(x)[2],
    lambda x: la.svd(x)[0][..., :1] @ la.svd(x)[2][..., :1, :],
    lambda x: la.svdvals(x),
    lambda x: la.pinv(definite(x), hermitian=True),
    lambda x: la.matrix_norm(x, 2),
    lambda x: la.matrix_norm(x, "nuc"),
    lambda x: la.cond(x),
    lambda x: la.lstsq(x, x[..., :1] * 2).solution,
    lambda x: la.solve(x, x[..., 0]),
    lambda x: la.solve_ex(x, x[..., :1] * 2).result,
    lambda x: la.slogdet(x)[1],
    lambda x: la.slogdet(x)[0] * 1,
    lambda x: la.matrix_exp(x),
    lambda x: la.lu(x)[1] + la.lu(x)[2],
    lambda x: la.lu_factor(x).LU,
    lambda x: la.lu_factor_ex(x).LU,
    lambda x: la.lu_solve(*la.lu_factor(x), x[..., :1] * 2),
    lambda x: la.lu_solve(*la.lu_factor(x), x, left=False, adjoint=True),
    lambda x: la.householder_product(x, x[..., 0, :-1]),
    lambda x: pc.logdet(definite(x)),
]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2)])
def test_gradients(function: Callable[..., Any], shape: tuple[int, ...], dtype: str) -> None:
    assert pa.gradcheck(function, [draw(*shape, dtype=dtype)])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_second_derivatives(function: Callable[..., Any], dtype: str) -> None:
    assert pa.gradgradcheck(function, [draw(2, 2, dtype=dtype)])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 2)])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: la.lu_factor(x).LU,
        lambda x: la.lu(x)[1] @ la.lu(x)[2] + la.lu(x)[2].sum(),
        lambda x: la.qr(x).Q,
        lambda x: la.qr(x).R,
        lambda x: la.pinv(x),
        lambda x: signless(la.svd(x, full_matrices=False)[0]),
        lambda x: la.svd(x, full_matrices=False)[0] @ la.svd(x, full_matrices=False)[2],
        lambda x: la.svd(x)[1],
        lambda x: signless(la.svd(x)[0][..., :2]),
        lambda x: spanned(la.svd(x)[0][..., x.shape[-1] :]),
        lambda x: spanned(adjoint(la.svd(x)[2])[..., x.shape[-2] :]) + la.svd(x)[1].sum(),
        lambda x: la.lstsq(x, x[..., :1] + 1, driver="gelsd").solution,
        lambda x: residuals_and_solution(x, x[..., :1].square() + 1),
    ],
)
def test_rectangles(function: Callable[..., Any], shape: tuple[int, ...], dtype: str) -> None:
    assert pa.gradcheck(function, [draw(*shape, dtype=dtype)])
    assert pa.gradgradcheck(function, [draw(*shape, dtype=dtype)], atol=1e-4)


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
    with pytest.raises(NotImplementedError, match="mode"):
        la.qr(wide, "r").R.sum().backward()
    with pytest.raises(NotImplementedError, match="geqrf"):
        pc.geqrf(draw(2, 2))[0].sum().backward()


@pytest.mark.parametrize("dtype", [pc.float64, pc.complex128])
@pytest.mark.parametrize("matrix", [pc.eye(3), pc.ones(3, 3), pc.zeros(3, 3), pc.ones(2, 3)])
@pytest.mark.parametrize("kind", ["eigh", "svd", "eig"])
def test_equal_values_have_gradients_where_vectors_do_not_count(
    kind: str, matrix: Any, dtype: Any
) -> None:
    """Equal eigenvalues, equal singular values, and singular values of 0."""
    if kind != "svd" and (matrix.shape[0] != matrix.shape[1] or matrix[0, 1] == matrix[0, 0] == 1):
        return  # not square, or eigenvectors of a matrix that has too few for `eig`
    values = {
        "eigh": lambda a: la.eigh(a)[0],
        "svd": lambda a: la.svd(a, full_matrices=False)[1],
        "eig": lambda a: la.eig(a)[0],
    }[kind]
    alone = {"eigh": la.eigvalsh, "svd": la.svdvals, "eig": la.eigvals}[kind]
    result = []
    for function in (values, alone):
        a = matrix.to(dtype).requires_grad_()
        total = function(a).sum()
        (total.real if total.is_complex() else total).backward()
        result.append(a.grad.numpy())
    assert np.isfinite(result[0]).all()
    np.testing.assert_allclose(*result, atol=1e-12)


def test_derivatives_of_values_alone_have_the_vectors_of_the_call() -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("the matrix is decomposed again")

    x = draw(2, 4, 4)
    u, _s, vh = np.linalg.svd(x.detach().numpy())
    with plait_abi.kernel("linalg_svd", refuse), plait_abi.kernel("linalg_eigh", refuse):
        (by_svd,) = pa.grad(la.svdvals(x).sum(), [x])
        (by_eigh,) = pa.grad((la.eigvalsh(x) ** 2).sum() / 2, [x])
        with pa.no_grad():
            assert la.svdvals(x).shape == (2, 4)
        with pytest.raises(AssertionError, match="decomposed again"):
            pa.grad(la.svdvals(x).sum(), [x], create_graph=True)
    np.testing.assert_allclose(by_svd.numpy(), u @ vh, atol=1e-12)
    lower = np.tril(x.detach().numpy())
    want = lower + np.tril(lower, -1).swapaxes(-1, -2)  # sum of w v v^H
    np.testing.assert_allclose(by_eigh.numpy(), want, atol=1e-12)


SYSTEMS = (  # shapes of A and B, and whether A is on the left
    ((3, 3), (3, 2), True), ((3, 3), (2, 3), False), ((3, 3), (3,), True),
    ((2, 3, 3), (2, 3), True), ((2, 3, 3), (3, 2), True), ((3, 3), (2, 2, 3), False),
    ((2, 1, 3, 3), (2, 3, 1), True), ((2, 3, 3), (2, 0, 3), False), ((2, 0, 0), (2, 0, 3), True),
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("a", "b", "left"), SYSTEMS)
def test_solutions(a: tuple[int, ...], b: tuple[int, ...], left: bool, dtype: str) -> None:
    """Derivatives of all orders, which solve with the factors of the first call."""
    regular = (draw(*a, dtype=dtype) + 4 * pc.eye(a[-1])).detach().requires_grad_()
    right = draw(*b, seed=1, dtype=dtype)
    for variables in ((regular, right), (regular, right.detach()), (regular.detach(), right)):

        def solution(*given: Any, all_of: Any = variables) -> Any:
            rest = iter(given)
            A, B = (next(rest) if x.requires_grad else x for x in all_of)
            return la.solve(A, B, left=left)

        leaves = [x for x in variables if x.requires_grad]
        assert pa.gradcheck(solution, leaves)
        assert pa.gradgradcheck(solution, leaves)
    with pa.no_grad():
        plain = la.solve(regular, right, left=left)
    recorded = la.solve(regular, right, left=left)
    assert recorded.detach().numpy().tobytes() == plain.numpy().tobytes()


def test_a_derivative_of_any_order_factors_once() -> None:
    A, B = (draw(3, 3) + 4 * pc.eye(3)).detach().requires_grad_(), draw(3, 2, seed=1)
    la.solve(A, B)  # loads the kernels
    names = ("regular_factors", "linalg_solve_ex", "linalg_lu_factor_ex")
    kernels = {
        (each.name, each.provider)
        for each in plait_abi.records()
        if each.kind == "kernel" and each.name in names and each.provider.startswith("plait_cpu")
    }
    with contextlib.ExitStack() as stack:
        probes = {each: stack.enter_context(plait_abi.Probe(*each)) for each in kernels}
        x = la.solve(A, B)
        for _ in range(3):
            first, second = pa.grad(x.square().sum(), (A, B), create_graph=True)
            x = first @ second
        calls = [name for (name, _), probe in probes.items() for _ in range(probe.counts.accepted)]
    assert calls == ["regular_factors"]


def test_a_singular_matrix_is_the_same_error_if_derivatives_are_wanted() -> None:
    A = pc.stack([pc.eye(2), pc.zeros(2, 2)]).requires_grad_()
    texts = []
    for each in (A, A.detach()):
        with pytest.raises(RuntimeError, match=r"`A` at batch index \(1,\) is singular") as error:
            la.solve(each, pc.ones(2, 2, 1))
        texts.append(str(error.value))
    assert texts[0] == texts[1].replace("linalg_solve_ex: ", "")
