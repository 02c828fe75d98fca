"""Orthogonal polynomials of degree n at x; a float n is cut off, a negative one gives 0. No derivatives."""

import math

import numpy as np

from plait_ops.spec import Pointwise


def _recurrence(first, step):
    """Values by p_0 = 1, p_1 = first(x), p_(k + 1) = step(k, x, p_k, p_(k - 1))."""

    def value(x, n):
        if n <= -1:
            return 0.0
        before, here = 1.0, first(x)
        if n < 1:
            return before
        for k in range(1, math.floor(n)):
            before, here = here, step(k, x, here, before)
        return here

    return value


def _polynomial(name, text, first, step, example, shift=False):
    value = _recurrence(first, step)
    operator = Pointwise(
        f"special_{name}(Tensor|Scalar self, Tensor|Scalar n) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.special.{name}(pc.tensor([2.0]), 2).tolist()
    [{example}]
    """,
        promote="float",
        domain=(0.0, 2.5),
        inplace=False,
        method=False,
        reference=np.vectorize(
            lambda x, n: value(2.0 * x - 1.0 if shift else float(x), n), otypes=["float64"]
        ),
    )

    operator.extremes = False  # no degree is infinite

    @operator.samples
    def _(s):
        yield s(s.array(40, 1, dtype="float64", low=-1.0, high=1.0), np.arange(12))
        yield s(s.array(3, dtype="float64", low=-0.9, high=0.9), 60)
        yield s(s.array(3), -1)

    return operator


def _chebyshev(k, x, here, before):
    return 2 * x * here - before


for _kind, _which, _first, _at_2, _shifted in (
    ("t", "first", lambda x: x, 7.0, 17.0),
    ("u", "second", lambda x: 2 * x, 15.0, 35.0),
    ("v", "third", lambda x: 2 * x - 1, 11.0, 29.0),
    ("w", "fourth", lambda x: 2 * x + 1, 19.0, 41.0),
):
    _polynomial(
        f"chebyshev_polynomial_{_kind}",
        f"Chebyshev's polynomial of the {_which} kind, ``{_kind.upper()}_n(self)``.",
        _first,
        _chebyshev,
        _at_2,
    )
    _polynomial(
        f"shifted_chebyshev_polynomial_{_kind}",
        f"Chebyshev's polynomial ``{_kind.upper()}_n(2 * self - 1)``.",
        _first,
        _chebyshev,
        _shifted,
        shift=True,
    )
_polynomial(
    "hermite_polynomial_h",
    "Hermite's polynomial of physics, ``H_n(self)``, orthogonal for the weight ``exp(-x ** 2)``.",
    lambda x: 2 * x,
    lambda k, x, p, q: 2 * (x * p - k * q),
    14.0,
)
_polynomial(
    "hermite_polynomial_he",
    "Hermite's polynomial of probability, ``He_n(self)``, orthogonal for the weight ``exp(-x ** 2 / 2)``.",
    lambda x: x,
    lambda k, x, p, q: x * p - k * q,
    3.0,
)
_polynomial(
    "laguerre_polynomial_l",
    "Laguerre's polynomial ``L_n(self)``, orthogonal for the weight ``exp(-x)`` from 0 on.",
    lambda x: 1 - x,
    lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1),
    -1.0,
)
_polynomial(
    "legendre_polynomial_p",
    "Legendre's polynomial ``P_n(self)``, orthogonal on [-1, 1].",
    lambda x: x,
    lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1),
    5.5,
)
