"""Operators that read only one triangle of a matrix.

The test finds them by a change of the other triangle, which must change neither results nor
derivatives. The derivatives are those along symmetric (Hermitian) steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc
from plait_abi import operator
from plait_autograd import forward_ad
from plait_ops import samples, specs
from plait_ops.spec import Operator

Array = np.ndarray[Any, Any]
Call = tuple[dict[str, Any], str, bool]  # arguments, the matrix among them, whether it is the upper


def is_square(value: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind in "fc"
        and value.ndim >= 2
        and value.shape[-1] == value.shape[-2] > 1
    )


def adjoint(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


def run(spec: Operator, values: dict[str, Any]) -> list[Any]:
    """The floating results, without phases and signs, which may be arbitrary: squares of sizes."""
    values = dict(values)
    positional = [values.pop(a.name) for a in spec.schema.arguments if not a.keyword_only]
    result = operator(spec.name)(*positional, **values)
    result = result if isinstance(result, (tuple, list)) else [result]
    selection = [x for i, x in enumerate(result) if i not in spec.auxiliary]
    return [
        operator("real")(x * operator("conj")(x))
        for x in selection
        if x.dtype in (pc.float64, pc.complex128)
    ]


def as_tensors(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: pc.from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


def widened(values: dict[str, Any], complex_: bool) -> dict[str, Any]:
    """The arguments in float64 or complex128, with definite matrices for square ones."""
    rng, result = np.random.default_rng(0), {}
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
            drawn = rng.standard_normal(value.shape)
            if complex_:
                drawn = drawn + 1j * rng.standard_normal(value.shape)
            if is_square(value):
                drawn = drawn @ adjoint(drawn) / 2 + np.eye(value.shape[-1])
            value = drawn
        result[name] = value
    return result


def changed(matrix: Array, upper: bool) -> Array:
    """The matrix with other numbers in the strict upper or lower triangle."""
    size = matrix.shape[-1]
    there = np.triu(np.ones((size, size), bool), 1)
    other = np.random.default_rng(1).standard_normal(matrix.shape)
    return np.where(there if upper else there.T, other, matrix)


def results(spec: Operator, values: dict[str, Any]) -> list[Array]:
    with pa.no_grad():
        return [x.numpy() for x in run(spec, as_tensors(values))]


def is_without(spec: Operator, values: dict[str, Any], name: str, other: Array) -> bool:
    """Return whether the results are the same with another matrix."""
    pairs = zip(results(spec, values), results(spec, {**values, name: other}), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def calls(spec: Operator, complex_: bool) -> Iterator[Call]:
    """The sample calls in which one triangle of a matrix is not read."""
    for sample in samples.draw(spec):
        bound = spec.schema.bind(sample.args, sample.kwargs)
        kinds = {v.dtype.kind for v in bound.values() if isinstance(v, np.ndarray)}
        if bound.get("dtype") is not None or not kinds <= {"f", "c"} or (kinds == {"c"}) > complex_:
            continue
        values = widened(bound, complex_)
        matrices = [name for name, value in values.items() if is_square(value)]
        if not matrices:
            continue
        try:
            for name in matrices:
                without = [
                    is_without(spec, values, name, changed(values[name], upper))
                    for upper in (False, True)
                ]
                if sum(without) == 1:
                    yield values, name, without[1]
        except (TypeError, ValueError, RuntimeError, NotImplementedError):
            continue


def reads_one_triangle(spec: Operator) -> bool:
    if spec.family.split("/")[0] != "linalg" or spec.unpredictable or spec.internal:
        return False
    return next(calls(spec, False), None) is not None


SPECS = [spec for spec in specs.all() if reads_one_triangle(spec)]
DIFFERENTIABLE = [
    spec for spec in SPECS if (spec.vjps or spec.composite) and "ldl" not in spec.name
]
KINDS = pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
EACH = pytest.mark.parametrize("spec", DIFFERENTIABLE, ids=lambda spec: spec.name)


def test_all_documented_operators_are_detected() -> None:
    result = {spec.name for spec in SPECS}
    text = {
        spec.name
        for spec in specs.all()
        if "triangle" in spec.kernel and spec.family.startswith("linalg") and not spec.internal
    }
    assert text and result >= text


def gradients(spec: Operator, values: dict[str, Any], name: str, order: int) -> Array:
    """The first or second derivative by the matrix, for drawn gradients."""
    tensors = as_tensors(values)
    matrix = tensors[name].requires_grad_()
    outputs = run(spec, tensors)
    rng = np.random.default_rng(2)
    seeds = [pc.from_numpy(np.asarray(rng.standard_normal(tuple(x.shape)))) for x in outputs]
    (result,) = pa.grad(outputs, [matrix], seeds, create_graph=order == 2)
    if order == 2:
        weights = pc.from_numpy(np.asarray(rng.standard_normal(tuple(result.shape))))
        (result,) = pa.grad([operator("real")(result * weights).sum()], [matrix])
    return np.asarray(result.detach().numpy())


@KINDS
@EACH
def test_the_other_triangle_does_not_change_derivatives(spec: Operator, complex_: bool) -> None:
    for values, name, upper in calls(spec, complex_):
        other = {**values, name: changed(values[name], upper)}
        for order in (1, 2):
            expected = gradients(spec, values, name, order)
            result = gradients(spec, other, name, order)
            np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)


def along_symmetric_steps(
    spec: Operator, values: dict[str, Any], name: str
) -> tuple[Callable[[Any], list[Any]], Any]:
    """The operator of the matrix plus the symmetric part of another one, and zeros for that."""
    tensors = as_tensors(values)
    matrix = tensors[name]

    def function(step: Any) -> list[Any]:
        half = (step + operator("conj")(step.transpose(-2, -1))) * 0.5
        return run(spec, {**tensors, name: matrix + half})

    return function, pc.zeros(*matrix.shape, dtype=matrix.dtype, requires_grad=True)


@KINDS
@EACH
def test_derivatives_along_symmetric_steps(spec: Operator, complex_: bool) -> None:
    tried = 0
    for values, name, _ in calls(spec, complex_):
        if values[name].size > 18:
            continue
        function, step = along_symmetric_steps(spec, values, name)
        assert pa.gradcheck(function, [step], check_forward_ad=True)
        if values[name].size <= 9:
            assert pa.gradgradcheck(function, [step])
        tried += 1
    assert tried or complex_


@KINDS
@EACH
def test_forward_mode_agrees_with_reverse_mode(spec: Operator, complex_: bool) -> None:
    for values, name, _ in calls(spec, complex_):
        function, step = along_symmetric_steps(spec, values, name)
        direction = np.random.default_rng(3).standard_normal(values[name].shape)
        tangent = pc.from_numpy(direction).to(step.dtype)
        outputs = function(step)
        back = pa.grad(outputs, [step], [pc.ones_like(x.detach()) for x in outputs])[0]
        with forward_ad.dual_level():
            result = function(forward_ad.make_dual(step.detach(), tangent))
            forward = sum(float(forward_ad.unpack_dual(x).tangent.sum()) for x in result)
        assert forward == pytest.approx(float((back.numpy() * direction).sum().real), rel=1e-8)
