"""Test data of reduction/integrals: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.reduction.integrals import (
    cumulative_trapezoid_,
    cumulative_trapezoid_x_,
    trapezoid_,
    trapezoid_x_,
    trapz,
    trapz_x,
)


def _halves(y, x, dx, dim):
    result = np.moveaxis(y, dim, -1)
    dtype = y.dtype if y.dtype.kind in "fc" else np.dtype("float32")
    if x is None:
        steps = dx
    elif x.ndim == 1:
        steps = np.diff(x)
    else:
        steps = np.diff(np.moveaxis(x, dim, -1), axis=-1)
    return ((result[..., 1:] + result[..., :-1]) * steps / 2).astype(dtype)


for _each in (trapezoid_, trapz):
    _each.reference(lambda y, dx=1, dim=-1: np.asarray(_halves(y, None, dx, dim).sum(-1)))
for _each in (trapezoid_x_, trapz_x):
    _each.reference(lambda y, x, dim=-1: np.asarray(_halves(y, x, 1, dim).sum(-1)))
cumulative_trapezoid_.reference(
    lambda y, dx=1, dim=-1: np.moveaxis(_halves(y, None, dx, dim).cumsum(-1), -1, dim)
)
cumulative_trapezoid_x_.reference(
    lambda y, x, dim=-1: np.moveaxis(_halves(y, x, 1, dim).cumsum(-1), -1, dim)
)
for _each in (trapezoid_, trapz, cumulative_trapezoid_):
    _each.samples(
        lambda s: iter(
            [
                s(s.array(5)).loosely(4),
                s(s.array(3, 4), dx=0.5, dim=0).loosely(4),
                s(s.array(3, 4), dim=1).loosely(4),
                s(s.array(4, dtype="int64")),
                s(s.array(1)),
            ]
        )
    )
    _each.error("IndexError", lambda s: s(s.array(2), dim=1), contains=["dim", "(2,)"])
for _each in (trapezoid_x_, trapz_x, cumulative_trapezoid_x_):
    _each.samples(
        lambda s: iter(
            [
                s(s.array(5), s.array(5)).loosely(4),
                s(s.array(3, 4), s.array(3), dim=0).loosely(4),
                s(s.array(3, 4), s.array(3, 4), dim=1).loosely(4),
            ]
        )
    )
    _each.error(
        "ShapeError", lambda s: s(s.array(3, 4), s.array(3)), contains=["`x`", "(3,)", "(3, 4)"]
    )
