"""Gradients through some outputs of an operator: those of the others are 0, and what is multiplied
by them is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from operator_problems import OPERATORS, problem

import plait_autograd as pa
import plait_core as pc
from plait_ops import samples
from plait_ops.spec import Operator

SEVERAL = [spec for spec in OPERATORS if len(spec.schema.results) > 1]


def close(a: Any, b: Any) -> bool:
    """Compare two gradients, of which None is 0."""
    x, y = (0.0 if each is None else each.detach().numpy() for each in (a, b))
    return np.allclose(x, y, rtol=1e-8, atol=1e-10)


def second(gradients: Any, varied: list[Any]) -> list[Any]:
    """Return derivatives of gradients; None where one is infinite, or has none."""
    terms = [g for g in gradients if g is not None and g.requires_grad]
    if not terms or not all(np.isfinite(g.detach().numpy()).all() for g in terms):
        return [None] * len(varied)
    weights = [pc.ones_like(g) for g in terms]
    return list(pa.grad(terms, varied, weights, retain_graph=True, allow_unused=True))


@pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("spec", SEVERAL, ids=lambda spec: spec.name)
def test_an_unused_output_counts_as_a_gradient_of_zeros(spec: Operator, complex_: bool) -> None:
    generator = pc.Generator().manual_seed(0)
    problems = (problem(spec, sample, complex_) for sample in samples.draw(spec))
    for function, varied in [each for each in problems if each is not None][:3]:
        try:
            outputs = [x for x in function(*varied) if x.requires_grad]
        except (TypeError, ValueError, NotImplementedError):  # it takes no complex numbers
            continue
        if len(outputs) < 2 or not all(np.isfinite(x.detach().numpy()).all() for x in outputs):
            continue
        for used in outputs:
            weight = pc.randn(*used.shape, dtype=used.dtype, generator=generator)
            weights = [weight if x is used else pc.zeros_like(x) for x in outputs]
            options: dict[str, Any] = {"create_graph": True, "allow_unused": True}
            alone = pa.grad(used, varied, weight, **options)
            together = pa.grad(outputs, varied, weights, **options)
            assert all(map(close, alone, together))
            assert all(map(close, second(alone, varied), second(together, varied)))


def test_halves_that_are_computed_in_float32_leave_the_same_out() -> None:
    x = pc.arange(6.0, dtype=pc.bfloat16).reshape(2, 3).requires_grad_()
    variance, mean = pc.var_mean(x, 1)
    third = pc.tensor(1 / 3, dtype=pc.bfloat16).item()
    assert pa.grad(mean.sum(), x, retain_graph=True)[0].tolist() == [[third] * 3] * 2
    assert pa.grad(variance.sum(), x)[0].tolist() == [[-1.0, 0.0, 1.0]] * 2


def test_what_is_multiplied_by_zeros_is_not_computed() -> None:
    """Equal singular values have no derivative of the vectors: 0 times infinity would be nan."""
    a = pc.eye(3).requires_grad_()
    assert pa.grad(pc.linalg.svd(a).S.sum(), a)[0].isfinite().all()
    assert pa.grad(pc.linalg.eigh(a).eigenvalues.sum(), a)[0].tolist() == pc.eye(3).tolist()


def test_a_hook_sees_no_gradient_of_an_unused_output() -> None:
    x = pc.tensor([[3.0, 1.0]]).requires_grad_()
    values, indices = x.sort(-1)
    seen: list[Any] = []
    values.grad_fn.register_prehook(lambda gradients: seen.extend(gradients))
    assert pa.grad(values, x, pc.tensor([[1.0, 2.0]]))[0].tolist() == [[2.0, 1.0]]
    assert indices.tolist() == [[1, 0]] and seen[1] is None
