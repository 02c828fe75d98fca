"""Results of a pass with ``create_graph=True`` can be differentiated for every function:
where its derivative is zero, it is zeros, and never an error.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from operator_problems import OPERATORS, problem

import plait_autograd as pa
import plait_core as pc
from plait_ops import samples
from plait_ops.spec import Operator

SAMPLES = 3  # of each operator

# the derivative for the shape has none for it: `gamma_sample_grad`
DERIVED_ONCE = {"special_gammainc": {"self"}, "special_gammaincc": {"self"}}


def number(x: Any) -> Any:
    return (x.real if x.is_complex() else x).sum()


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("drawn", [False, True], ids=["constant", "variable"])
def test_gradients_of_all_operators_have_gradients(spec: Operator, drawn: bool) -> None:
    """For constant gradients of the results, and for some that require grad themselves."""
    constants = DERIVED_ONCE.get(spec.name, ())
    result = (problem(spec, each, False, constants) for each in samples.draw(spec))
    for function, varied in [each for each in result if each is not None][:SAMPLES]:
        outputs = [y for y in function(*varied) if y.requires_grad]
        if not outputs:
            continue
        seeds = [pc.ones_like(y.detach()).requires_grad_(drawn) for y in outputs]
        first = pa.grad(outputs, varied, seeds, create_graph=True, allow_unused=True)
        for g in first:
            assert g is None or g.requires_grad
            second = () if g is None else pa.grad(number(g), varied, retain_graph=True)
            for x, h in zip(varied, second, strict=False):
                assert h.shape == x.shape and h.dtype == x.dtype


LINEAR: list[Callable[[Any], Any]] = [
    lambda x: x * 2,
    lambda x: x.sum(),
    lambda x: x,
    lambda x: x.clone(),
    lambda x: x[1:].reshape(-1),
    lambda x: pc.cat([x, x]),
]


@pytest.mark.parametrize("function", LINEAR)
def test_all_orders_of_a_linear_function(function: Callable[[Any], Any]) -> None:
    x = pc.randn(3).requires_grad_()
    (g,) = pa.grad(function(x).sum(), x, create_graph=True)
    for _ in range(3):
        assert g.requires_grad
        (g,) = pa.grad(g.sum(), x, create_graph=True)
        assert g.tolist() == [0.0, 0.0, 0.0]


def test_an_input_without_influence_on_a_derivative() -> None:
    x, bias = pc.randn(3).requires_grad_(), pc.randn(3).requires_grad_()
    y = (x.tanh() + bias).sum()
    (g,) = pa.grad(y, x, create_graph=True)
    of_x, of_bias = pa.grad((g * g).sum(), [x, bias], retain_graph=True)
    assert of_x.abs().sum() > 0 and of_bias.tolist() == [0.0, 0.0, 0.0]
    assert pa.grad((g * g).sum(), [x, bias], allow_unused=True, retain_graph=True)[1] is None
    (g * g).sum().backward()
    assert bias.grad is None


def test_the_given_gradient_itself() -> None:
    x, v = pc.ones(2, requires_grad=True), pc.ones(2, requires_grad=True)
    (g,) = pa.grad(x.clone(), x, v, create_graph=True)
    of_x, of_v = pa.grad(g.sum(), [x, v])
    assert of_x.tolist() == [0.0, 0.0] and of_v.tolist() == [1.0, 1.0]


def test_an_unused_input_of_a_function_is_still_an_error() -> None:
    x, other = pc.ones(2, requires_grad=True), pc.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="not used"):
        pa.grad(x.sum(), other)
    with pytest.raises(RuntimeError, match="not used"):
        pa.grad((x * x).sum(), other, create_graph=True)


def test_gradients_that_are_not_recorded_do_not_require_grad() -> None:
    x = pc.ones(2, requires_grad=True)
    (g,) = pa.grad(x.sum(), x)
    assert not g.requires_grad
    x.sum().backward()
    assert not x.grad.requires_grad


def test_gradients_in_leaves_and_results() -> None:
    x = pc.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.sum().backward(create_graph=True)
    for g in (x.grad, y.grad):
        assert pa.grad(g.sum(), x, retain_graph=True)[0].tolist() == [0.0, 0.0]


def test_gradients_in_hooks() -> None:
    """The result of a hook may depend on the input although nothing was recorded."""
    x = pc.ones(2, requires_grad=True)
    calls: list[Any] = []

    def hook(g: Any) -> Any:
        calls.append(g)
        return x.detach() * g.detach()

    y = x * 2
    y.register_hook(hook)
    (g,) = pa.grad(y.sum(), x, create_graph=True)
    assert pa.grad(calls[0].sum(), x)[0].tolist() == [0.0, 0.0]
    assert not g.requires_grad


class Square(pa.Function):
    """Its backward reads a value without a history."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.value = x.detach()
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * ctx.value * g


def test_what_a_function_hides_is_not_taken_for_zero() -> None:
    x, w = pc.ones(2, requires_grad=True), pc.ones(2, requires_grad=True)
    (g,) = pa.grad((2 * Square.apply(x)).sum(), x, create_graph=True)
    assert not g.requires_grad
    (g,) = pa.grad((w * Square.apply(x)).sum(), x, create_graph=True)
    assert pa.grad(g.sum(), w, retain_graph=True)[0].tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="not used"):
        pa.grad(g.sum(), x)
    y = Square.apply(x) + 3 * w  # the other input's gradient does not pass the function
    (g,) = pa.grad(y.sum(), w, create_graph=True)
    assert pa.grad(g.sum(), [x, w])[0].tolist() == [0.0, 0.0]


def test_tangents_do_not_require_grad() -> None:
    x, t = pc.eye(2), pc.ones(2, 2)
    with pa.forward_ad.dual_level():
        dual = pa.forward_ad.make_dual(x, t)
        for y in (pc.linalg.inv(dual), dual.sum(), dual @ dual, pc.cumsum(dual, 0), dual.mT):
            assert not pa.forward_ad.unpack_dual(y).tangent.requires_grad


def test_a_recorded_gradient_keeps_nothing_that_it_does_not_need() -> None:
    x = pc.ones(2, requires_grad=True)
    factor = pc.full((2,), 3.0)
    reference = weakref.ref(factor)
    (g,) = pa.grad((x * factor.clone()).sum() + (x * factor).sum(), x, create_graph=True)
    del factor
    gc.collect()
    assert g.tolist() == [6.0, 6.0] and reference() is None


def test_strict_derivatives_name_independent_inputs() -> None:
    def linear(x: Any) -> Any:
        return 3 * x

    x = pc.ones(2)
    pa.functional.jacobian(linear, x, strict=True)
    with pytest.raises(RuntimeError, match="must depend on the inputs"):
        pa.functional.jacobian(linear, x, strict=True, create_graph=True)
    with pytest.raises(RuntimeError, match="must depend on the inputs"):
        pa.functional.vjp(linear, x, x, strict=True, create_graph=True)
    with pytest.raises(RuntimeError, match="must depend on the inputs"):
        pa.functional.hessian(lambda x: (x * x).sum(), x, strict=True, create_graph=True)


def test_derivatives_of_linear_functions_are_constants_for_functional() -> None:
    x = pc.ones(2, requires_grad=True)
    for f in (pa.functional.jacobian, lambda *a, **k: pa.functional.vjp(*a, pc.ones(2), **k)[1]):
        assert not f(lambda x: 3 * x, x, create_graph=True).requires_grad
        assert f(lambda x: x * x, x, create_graph=True).requires_grad


def test_hessians_of_linear_functions() -> None:
    x = pc.ones(2)
    assert pa.functional.hessian(lambda x: x.sum(), x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert pa.functional.hvp(lambda x: x.sum(), x, x)[1].tolist() == [0.0, 0.0]
    assert pa.functional.vhp(lambda x: x.sum(), x, x)[1].tolist() == [0.0, 0.0]
