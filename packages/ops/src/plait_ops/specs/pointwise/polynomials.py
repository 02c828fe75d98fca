"""Orthogonal polynomials of degree n at x; a float n is cut off, a negative one gives 0. No derivatives."""

from plait_ops.spec import Pointwise


def _polynomial(name, text, example, libm=""):
    operator = Pointwise(
        f"special_{name}(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.special.{name}(pc.tensor([2.0]), 2).tolist()
    [{example}]
    """,
        promote="float",
        domain=(0.0, 2.5),
        inplace=False,
        libm=libm,
    )

    return operator


chebyshev_t = _polynomial(
    "chebyshev_polynomial_t",
    "Chebyshev's polynomial of the first kind, ``T_n(x)``.",
    7.0,
    libm="wide",
)
shifted_chebyshev_t = _polynomial(
    "shifted_chebyshev_polynomial_t",
    "Chebyshev's polynomial ``T_n(2 * x - 1)``.",
    17.0,
    libm="wide",
)
chebyshev_u = _polynomial(
    "chebyshev_polynomial_u",
    "Chebyshev's polynomial of the second kind, ``U_n(x)``.",
    15.0,
    libm="wide",
)
shifted_chebyshev_u = _polynomial(
    "shifted_chebyshev_polynomial_u",
    "Chebyshev's polynomial ``U_n(2 * x - 1)``.",
    35.0,
    libm="wide",
)
chebyshev_v = _polynomial(
    "chebyshev_polynomial_v",
    "Chebyshev's polynomial of the third kind, ``V_n(x)``.",
    11.0,
    libm="wide",
)
shifted_chebyshev_v = _polynomial(
    "shifted_chebyshev_polynomial_v",
    "Chebyshev's polynomial ``V_n(2 * x - 1)``.",
    29.0,
    libm="wide",
)
chebyshev_w = _polynomial(
    "chebyshev_polynomial_w",
    "Chebyshev's polynomial of the fourth kind, ``W_n(x)``.",
    19.0,
    libm="wide",
)
shifted_chebyshev_w = _polynomial(
    "shifted_chebyshev_polynomial_w",
    "Chebyshev's polynomial ``W_n(2 * x - 1)``.",
    41.0,
    libm="wide",
)
hermite_polynomial_h = _polynomial(
    "hermite_polynomial_h",
    "Hermite's polynomial of physics, ``H_n(x)``, orthogonal for the weight ``exp(-x ** 2)``.",
    14.0,
)
hermite_polynomial_he = _polynomial(
    "hermite_polynomial_he",
    "Hermite's polynomial of probability, ``He_n(x)``, orthogonal for the weight ``exp(-x ** 2 / 2)``.",
    3.0,
)
laguerre_polynomial_l = _polynomial(
    "laguerre_polynomial_l",
    "Laguerre's polynomial ``L_n(x)``, orthogonal for the weight ``exp(-x)`` from 0 on.",
    -1.0,
)
legendre_polynomial_p = _polynomial(
    "legendre_polynomial_p", "Legendre's polynomial ``P_n(x)``, orthogonal on [-1, 1].", 5.5
)
