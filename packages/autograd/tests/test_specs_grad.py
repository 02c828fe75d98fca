"""The derivative of every operator against finite differences, at the points of its spec's
samples.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest
from operator_problems import OPERATORS, problem

import plait_autograd as pa
import plait_core as pc
from plait_abi import operator
from plait_autograd import forward_ad
from plait_ops import samples, specs
from plait_ops.spec import Operator

# their extra results are parts of one computation; the composites above them are checked
CHECKED_ELSEWHERE = {
    "linear_int8",  # which takes no float64
    "native_batch_norm",
    "native_batch_norm_activation",
    "native_batch_norm_add_activation",
    "batch_norm_backward",
    "native_layer_norm",
    "layer_norm_backward",
    "layer_norm_backward_input",
    "cross_entropy_backward",
    "solve_by_factors",  # whose factors are constants: `linalg_solve` has the derivatives
}
# not to be tried with imaginary parts that are drawn: what must be Hermitian, has real diagonals,
# or has arbitrary phases (test_linalg_grad.py has these), and what is for real numbers alone
OF_THEIR_OWN_DOMAIN = {
    *("cholesky", "cholesky_backward", "cholesky_inverse", "cholesky_solve", "linalg_cholesky"),
    *("linalg_cholesky_ex", "linalg_eig", "linalg_eigh", "linalg_eigvals", "linalg_eigvalsh"),
    *("linalg_svd", "svd", "extreme_backward"),
}
# the derivative for the shape has one for the argument alone: `gamma_sample_grad`
DERIVED_ONCE = {"special_gammainc": {"self"}, "special_gammaincc": {"self"}}


def accepted(function: Callable[..., Any], varied: list[Any]) -> bool:
    """Return whether the operator takes complex numbers."""
    try:
        with pa.no_grad():
            function(*varied)
    except (TypeError, ValueError, NotImplementedError):
        return False
    return True


def problems(
    spec: Operator, complex_: bool = False, constants: Collection[str] = ()
) -> list[tuple[Callable[..., Any], list[Any]]]:
    result = (problem(spec, sample, complex_, constants) for sample in samples.draw(spec))
    output = [each for each in result if each is not None]
    if not complex_:
        return output
    return [each for each in output if accepted(*each) and spec.name not in OF_THEIR_OWN_DOMAIN]


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_gradients(spec: Operator) -> None:
    tried = 0
    for function, varied in problems(spec):
        outputs = function(*varied)
        # at a pole there is nothing to compare
        if outputs and all(np.isfinite(x.detach().numpy()).all() for x in outputs):
            tried += 1
            assert pa.gradcheck(function, varied)
    assert tried or not spec.vjps or spec.name in CHECKED_ELSEWHERE


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_complex_gradients(spec: Operator) -> None:
    for function, varied in problems(spec, complex_=True):
        outputs = function(*varied)
        if outputs and all(np.isfinite(x.detach().numpy()).all() for x in outputs):
            assert pa.gradcheck(function, varied)


@pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_second_derivatives(spec: Operator, complex_: bool) -> None:
    for function, varied in problems(spec, complex_, DERIVED_ONCE.get(spec.name, ()))[:3]:
        outputs = function(*varied)
        if any(x.requires_grad for x in outputs) and sum(x.numel() for x in varied) <= 24:
            assert pa.gradgradcheck(function, varied)


def inner(these: list[Any], those: list[Any]) -> float:
    """The real part of the inner product of all elements; None is zeros."""
    pairs = zip(these, those, strict=True)
    pairs = [(a.detach().numpy(), b.numpy()) for a, b in pairs if a is not None and b is not None]
    return float(sum(np.vdot(b, a).real for a, b in pairs))


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_forward_derivatives_are_those_of_reverse_mode(spec: Operator) -> None:
    """For random directions ``<u, J t>`` is ``<J^H u, t>``."""
    generator = pc.Generator().manual_seed(0)

    def direction(x: Any) -> Any:
        return pc.randn(*x.shape, dtype=x.dtype, generator=generator)

    for function, varied in problems(spec):
        outputs = function(*varied)
        weights = [direction(x) for x in outputs]
        recorded = [(x, u) for x, u in zip(outputs, weights, strict=True) if x.requires_grad]
        finite = all(np.isfinite(x.detach().numpy()).all() for x in outputs)
        if not recorded or not finite:
            continue
        back = pa.grad(
            [x for x, _ in recorded], varied, [u for _, u in recorded], allow_unused=True
        )
        tangents = [direction(x) for x in varied]
        with forward_ad.dual_level():
            duals = [
                forward_ad.make_dual(x.detach(), t) for x, t in zip(varied, tangents, strict=True)
            ]
            forth = [forward_ad.unpack_dual(x).tangent for x in function(*duals)]
        want = inner(list(back), tangents)
        assert inner(forth, weights) == pytest.approx(want, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_forward_over_reverse_is_reverse_over_reverse(spec: Operator, complex_: bool) -> None:
    """A backward pass of dual tensors gives the tangents of the gradients."""
    generator = pc.Generator().manual_seed(0)

    def direction(x: Any) -> Any:
        return pc.randn(*x.shape, dtype=x.dtype, generator=generator)

    for function, varied in problems(spec, complex_, DERIVED_ONCE.get(spec.name, ()))[:3]:
        outputs = [x for x in function(*varied) if x.requires_grad]
        if not outputs or not all(np.isfinite(x.detach().numpy()).all() for x in outputs):
            continue
        weights = [direction(x) for x in outputs]
        tangents = [direction(x) for x in varied]
        back = [direction(x) for x in varied]
        first = pa.grad(outputs, varied, weights, create_graph=True, materialize_grads=True)
        recorded = [(g, u) for g, u in zip(first, back, strict=True) if g.requires_grad]
        twice = (
            pa.grad([g for g, _ in recorded], varied, [u for _, u in recorded], allow_unused=True)
            if recorded
            else [None] * len(varied)
        )
        with forward_ad.dual_level():
            duals = [
                forward_ad.make_dual(x.detach().requires_grad_(), t)
                for x, t in zip(varied, tangents, strict=True)
            ]
            result = [x for x in function(*duals) if x.requires_grad]
            gradients = pa.grad(result, duals, weights, materialize_grads=True)
            forth = [forward_ad.unpack_dual(g).tangent for g in gradients]
        want = inner(list(twice), tangents)
        assert inner(forth, back) == pytest.approx(want, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", ["sinc", "special_i1", "special_bessel_j1"])
def test_removable_singularities_have_all_derivatives(name: str) -> None:
    x = pc.zeros(1, dtype=pc.float64, requires_grad=True)
    near = pc.tensor([0.005], dtype=pc.float64, requires_grad=True)
    results = []
    for at in (x, near):
        y, orders = operator(name)(at), []
        for _ in range(3):
            (y,) = pa.grad(y, at, create_graph=True)
            orders.append(y.item())
        results.append(orders)
    np.testing.assert_allclose(*results, atol=0.4)
    assert pa.gradcheck(operator(name), [x], eps=1e-4) and pa.gradgradcheck(operator(name), [x])


def test_what_is_written_twice_gives_its_gradient_to_the_last_value() -> None:
    x = pc.tensor([1.0, 2.0, 3.0], dtype=pc.float64, requires_grad=True)
    values = pc.tensor([5.0, 6.0, 7.0], dtype=pc.float64, requires_grad=True)
    number = pc.tensor(5.0, dtype=pc.float64, requires_grad=True)
    indices = pc.tensor([0, 0, 2])

    def assigned(x: Any, values: Any) -> Any:
        y = x * 1
        y[indices] = values
        return y * y

    for function, value in (
        (assigned, values),
        (assigned, number),
        (lambda x, v: x.scatter(0, indices, v).square(), values),
        (lambda x, v: x.index_fill(0, indices, v).square(), number),
        (lambda x, v: x.index_copy(0, indices, v).square(), values),
        (lambda x, v: x.put(indices, v).square(), values),
    ):
        assert pa.gradcheck(function, [x, value])
        assert pa.gradgradcheck(function, [x, value])


def test_products_that_are_scattered_have_second_derivatives_at_zeros() -> None:
    x = pc.tensor([2.0, 0.0], dtype=pc.float64, requires_grad=True)
    addends = pc.tensor([0.0, 0.0, 4.0, 5.0, 3.0], dtype=pc.float64, requires_grad=True)
    indices = pc.tensor([0, 0, 0, 1, 1])
    for include_self in (True, False):

        def function(x: Any, v: Any, include_self: bool = include_self) -> Any:
            return pc.scatter_reduce(x, 0, indices, v, "prod", include_self=include_self)

        assert pa.gradcheck(function, [x, addends])
        assert pa.gradgradcheck(function, [x, addends])


def test_an_unwritten_gradient_is_an_error() -> None:
    logits = pc.zeros(2, 3, requires_grad=True)
    weight = pc.ones(3, requires_grad=True)
    loss = operator("nll_loss")(logits, pc.tensor([0, 1]), weight)
    with pytest.raises(NotImplementedError, match=r"nll_loss.*`weight`.*detach"):
        loss.backward()


WITHOUT_DERIVATIVE = {
    # views, which the engine differentiates, and indices, which have no derivative
    *("argmax", "argmin", "as_strided", "detach"),
    *("nonzero_rows", "search_sorted"),
    # which boxes are kept, and overlaps, which are for matching
    *("nms_kept", "box_iou_rotated"),
    # not implemented, as in PyTorch; requesting a gradient is an error
    *("beta_sample_grad", "geqrf"),
    *("linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_ldl_solve"),
    "special_airy_ai",
    "special_spherical_bessel_j0",
    *(
        f"special_{shifted}chebyshev_polynomial_{kind}"
        for shifted in ("", "shifted_")
        for kind in "tuvw"
    ),
    *("special_hermite_polynomial_h", "special_hermite_polynomial_he"),
    *("special_laguerre_polynomial_l", "special_legendre_polynomial_p"),
}


def test_every_floating_operator_says_whether_it_is_differentiable() -> None:
    """Operators with neither a derivative nor a decomposition are on this list on purpose."""
    without = {
        spec.name
        for spec in specs.all()
        if spec.dtypes in ("all", "any", "arithmetic", "numeric", "inexact", "floating")
        and not spec.vjps
        and spec.decompose_function is None
        and not spec.unpredictable
        and any(argument.is_tensor for argument in spec.schema.arguments)
        and getattr(spec, "promote", "") != "bool"
        and getattr(spec, "result", "") not in ("bool", "int64")
    }
    assert without == WITHOUT_DERIVATIVE
