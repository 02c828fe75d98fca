"""Exponential functions."""

import math

import numpy as np

from plait_ops.spec import Pointwise
from plait_ops.unary import float_function
from plait_ops.words import conjugate

exp = float_function("exp", "``e ** self``.", np.exp, 0.0, 1.0)
expm1 = float_function("expm1", "``e ** self - 1``, exact near 0.", np.expm1, 0.0, 0.0)


@exp.vjp("self")
def _(g, result):
    return g * conjugate(result)


@expm1.vjp("self")
def _(g, result):
    return g * conjugate(result + 1.0)


_SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, 80.0, -80.0, 1e30]


for each in (exp, expm1):
    each.samples(
        lambda s: iter(
            [s(np.array(_SPECIAL, dtype)).without_gradient() for dtype in ("float32", "float64")]
            + [s(s.array(1000, high=9.0, low=0.0))]
        )
    )

LOG_2 = 0.6931471805599453
NONFINITE = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, 80.0, -80.0, 1e30]

exp2 = Pointwise(
    "exp2(Tensor self) -> Tensor",
    doc="""
    ``2 ** self``.

    >>> import plait_core as pc
    >>> pc.exp2(pc.tensor([0.0, 3.0])).tolist()
    [1.0, 8.0]
    """,
    promote="float",
    reference=np.exp2,
    dtypes="any",
)


@exp2.vjp("self")
def _(g, result):
    return g * conjugate(result * LOG_2)


@exp2.samples
def _(s):
    for dtype in ("float32", "float64"):
        yield s(
            np.array([*NONFINITE, 127.5, 128.0, -126.0, -149.0, 1023.5], dtype)
        ).without_gradient()
    yield s(s.array(1000, low=-140.0, high=120.0))
