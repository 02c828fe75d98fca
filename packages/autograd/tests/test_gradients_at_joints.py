"""Derivatives where functions are joined from pieces: at ties, zeros, bounds and round numbers.

Beside a joint a function has the derivatives of its pieces, which differ. The gradient at the joint
must be one of them, or lie between them: it is a subgradient.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from operator_problems import OPERATORS, problem

import plait_autograd as pa
import plait_core as pc
from plait_abi import operator
from plait_ops import samples
from plait_ops.spec import Operator

NEAR = 1e-7  # how far the points beside a joint are
STEP = 1e-11  # of finite differences there, which stay within a piece
ROOM = 1e-2  # what smooth functions change within NEAR, roots too; pieces differ by more
POLE = 1e5  # derivatives beside a point that is no joint: a pole, or a singular matrix
LARGEST = 200  # elements of a call
DRAWN = 6  # points beside a joint in directions that are drawn
VARIED = 12  # elements that are moved one by one
Array = np.ndarray[Any, Any]
Function = Callable[..., list[Any]]


def real(outputs: list[Any]) -> list[Any]:
    """The results, of which complex ones have one more dimension for their parts."""
    return [operator("view_as_real")(x) if x.dtype == pc.complex128 else x for x in outputs]


def total(function: Function, inputs: list[Any]) -> Any:
    """The sum of all results with weights that are drawn; None if none requires grad."""
    rng = np.random.default_rng(1)
    parts = [
        (x * pc.from_numpy(np.asarray(rng.uniform(0.5, 1.5, tuple(x.shape))))).sum()
        for x in real(function(*inputs))
        if x.requires_grad
    ]
    return sum(parts[1:], parts[0]) if parts else None


def gradient(function: Function, at: list[Array]) -> tuple[float, Array]:
    """The total at a point, and its derivatives by all elements."""
    inputs = [pc.from_numpy(x.copy()).requires_grad_() for x in at]
    value = total(function, inputs)
    if value is None:
        return 0.0, np.zeros(sum(x.size for x in at))
    result = pa.grad(value, inputs, materialize_grads=True)
    return value.item(), np.concatenate([g.numpy().ravel() for g in result])


def places(at: list[Array]) -> list[list[int]]:
    """The elements that are moved one by one, those of different values first."""
    results = []
    for x in at:
        _, first = np.unique(x, return_index=True)
        others = np.setdiff1d(np.arange(x.size), first)
        results.append([int(i) for i in [*first, *others][: VARIED // len(at)]])
    return results


def moves(at: list[Array]) -> Iterator[list[Array]]:
    """Directions to points beside a joint: drawn ones; some with one element in front, or a whole
    argument; and some in which each element has each rank among those of its argument.
    """
    rng = np.random.default_rng(2)

    def drawn() -> list[Array]:
        result = []
        for x in at:  # no two have the same size
            ranks = rng.permutation(x.size).reshape(x.shape) + rng.uniform(0.1, 0.9, x.shape)
            result.append((0.5 + ranks / (2 * max(x.size, 1))) * rng.choice([-1.0, 1.0], x.shape))
        return result

    for _ in range(DRAWN):
        yield drawn()
    if len(at) <= 3:
        for shifts in itertools.product((-2.0, 0.0, 2.0), repeat=len(at)):
            yield [d + shift for d, shift in zip(drawn(), shifts, strict=True)]
            yield [
                np.full(d.shape, shift) if shift else d
                for d, shift in zip(drawn(), shifts, strict=True)
            ]
    for i, choice in enumerate(places(at)):
        for place in choice:
            for sign in (4.0, -4.0):
                result = drawn()
                result[i].flat[place] = sign
                yield result
        size = at[i].size
        for shift in range(min(size, 16)):
            result = drawn()
            result[i] = ((np.arange(size) + shift) % size - size / 2 + 0.25).reshape(at[i].shape)
            yield result


def scaled(at: list[Array], direction: list[Array]) -> list[Array]:
    """Steps that are as long as large numbers ask for, so that they are exact."""
    return [d * np.maximum(np.abs(x), 1.0) for x, d in zip(at, direction, strict=True)]


def moved(at: list[Array], direction: list[Array], step: float) -> list[Array]:
    return [np.asarray(x + step * d) for x, d in zip(at, scaled(at, direction), strict=True)]


def differs(function: Function, at: list[Array], slope: Array) -> bool:
    """Return whether the gradient of a piece is not that of finite differences within it."""
    rng = np.random.default_rng(3)
    along = [rng.uniform(-1.0, 1.0, x.shape) for x in at]
    ahead, behind = (gradient(function, moved(at, along, step))[0] for step in (STEP, -STEP))
    difference = (ahead - behind) / (2 * STEP)
    whole = np.concatenate([d.ravel() for d in scaled(at, along)])
    size = float(np.abs(slope * whole).sum()) + abs(ahead)
    return bool(abs(difference - float(slope @ whole)) > 1e-4 * (1 + size))


def faults(function: Function, varied: list[Any]) -> Iterator[str]:
    """Elements whose derivative at a joint is no mean of those beside it."""
    at = [x.detach().numpy() for x in varied]
    value, here = gradient(function, at)
    if not np.isfinite(value):
        return
    beside: list[Array] = []
    for i, direction in enumerate(moves(at)):
        point = moved(at, direction, NEAR)
        near, slope = gradient(function, point)
        if np.isfinite(near) and np.isfinite(slope).all():
            beside.append(slope)
            if i < 1 and np.abs(slope).max(initial=0) < POLE and differs(function, point, slope):
                yield f"the gradient {slope[:6]} at {point} is not that of finite differences"
        if i == DRAWN - 1 and all(np.allclose(each, here, ROOM, ROOM) for each in beside):
            return  # it is smooth here
    if not beside:
        return
    low, high = np.min(beside, 0), np.max(beside, 0)
    size = np.maximum(np.abs(low), np.abs(high))
    if size.max(initial=0) > POLE:
        return
    room = ROOM * (1 + size) + (high - low) / 4  # not all pieces are met
    right = (low - room <= here) & (here <= high + room)
    endless = np.isinf(here) & (np.where(here > 0, high, -low) > 5)
    begins = np.cumsum([0, *(x.size for x in at)])
    checked = [
        int(begin) + i for begin, each in zip(begins, places(at), strict=False) for i in each
    ]
    for i in checked:
        if not right[i] and not endless[i]:
            values = [float(x) for x in np.concatenate([x.ravel() for x in at])[:8]]
            yield f"{here[i]} of element {i} is not in [{low[i]}, {high[i]}]; elements {values}"


_INFINITE = "it is infinite; ours is 0, as PyTorch's is, so that one such element spoils nothing"
_RANK = "by the rank it is 0 at a whole one, as PyTorch's"
_SINGULAR = "the factors of singular matrices have no derivative: ours is nan, as PyTorch's"
EXCEPTIONS = {
    **dict.fromkeys(("xlogy", "special_xlogy", "pow"), _INFINITE),
    **dict.fromkeys(("quantile", "nanquantile"), _RANK),
    **dict.fromkeys(("linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex"), _SINGULAR),
    **dict.fromkeys(("linalg_qr", "qr"), _SINGULAR),
    "heaviside": "the argument `values` counts at 0 alone",
    **dict.fromkeys(("special_gammainc", "special_gammaincc"), "nan by a shape parameter of 0"),
    "hypot": "at the origin it is nan, as PyTorch's",
    "batch_norm_by": "where the variance is -eps its square root has no inverse",
}
"""Operators whose gradient somewhere is none of the pieces', with the reason."""
BY_PROCESSOR = dict.fromkeys(
    ("linalg_svdvals", "singular_values"),
    "of a matrix of zeros it is made of factors that LAPACK chooses freely, "
    "which are far from those of the few matrices beside it on some processors",
)
"""Operators whose gradient somewhere is within the pieces on some processors alone."""


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_gradients_are_those_of_pieces_or_between_them(spec: Operator) -> None:
    results = []
    for sample in samples.joints(spec):
        result = problem(spec, sample, complex_=False, limit=LARGEST)
        if result is None or any(x.dtype != pc.float64 for x in result[1]):
            continue
        try:
            with np.errstate(all="ignore"):
                lines = list(faults(*result))
        except (ValueError, IndexError, RuntimeError) as error:
            if "derivative of" in str(error) and "singular" not in str(error):
                raise
            continue  # a moved argument that the operator refuses, or a matrix without an inverse
        if lines:
            results.append("\n".join([f"{len(lines)} faults in {sample.args}", *lines[:4]])[:1500])
    if spec.name in BY_PROCESSOR:
        return
    if spec.name in EXCEPTIONS:
        assert results, "no exception any more"
    else:
        assert not results, results[0]


@pytest.mark.parametrize(("slope", "right"), [(1.0, True), (-1.0, True), (0.5, True), (2.0, False)])
def test_a_gradient_outside_of_the_pieces_is_found(slope: float, right: bool) -> None:
    def magnitude(x: Any) -> list[Any]:
        return [operator("where")(x == 0, slope * x, operator("abs")(x))]

    x = pc.tensor([0.0, 2.0], dtype=pc.float64, requires_grad=True)
    assert (not list(faults(magnitude, [x]))) is right
