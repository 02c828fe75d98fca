"""The gamma function's logarithm and derivatives, incomplete gamma functions, Hurwitz's zeta function."""

import math

from plait_ops import calls as op
from plait_ops.spec import Composite, Pointwise
from plait_ops.unary import float_function
from plait_ops.words import check

LOG_PI = math.log(math.pi)


lgamma = float_function(
    "lgamma",
    "``log(abs(gamma(self)))``: infinite at 0, -1, -2, ...",
    1.0,
    0.0,
    (0.3, 3),
    "all",
    "function method",
    libm="wide",
)
digamma = float_function(
    "digamma",
    "The derivative of `lgamma`: nan at -1, -2, ..., infinite at 0.",
    0.0,
    "-inf",
    (0.3, 3),
    "all",
    "function method",
    libm="wide",
)


@lgamma.vjp("self")
def _(g, self):
    return g * op.digamma(self)


@digamma.vjp("self")
def _(g, self):
    return g * polygamma_elements(self, 1)


polygamma_elements = Pointwise(
    "polygamma_elements(Tensor self, int n=1) -> Tensor",
    doc="`polygamma` with the tensor as first argument.",
    promote="float",
    internal=True,
    domain=(0.3, 3),
    libm="all",
)


@polygamma_elements.vjp("self")
def _(g, self, n):
    return g * polygamma_elements(self, n + 1)


polygamma = Composite(
    "polygamma(Tensor self, int n) -> Tensor",
    doc="""
    The n-th derivative of `digamma`. ``polygamma(n, self)`` is the same.

    Args:
        n: The order of the derivative of digamma; not negative.

    Shape: that of `self`. Dtypes: floating-point dtypes; integers and bool give the default dtype.
    Raises: ValueError if `n` is negative.

    >>> import plait_core as pc
    >>> round(pc.polygamma(1, pc.tensor([1.0])).item(), 4)
    1.6449
    >>> round(pc.tensor([1.0]).polygamma_(1).item(), 4)
    1.6449
    """,
    inplace=True,
    variants="function method",
)
polygamma_n = Composite(
    "polygamma.n(int n, Tensor self) -> Tensor", doc="`polygamma` with `n` as first argument."
)


@polygamma.decompose
@polygamma_n.decompose
def _(self, n):
    check(n >= 0, f"`n` must not be negative; got {n}", "ValueError")
    return polygamma_elements(self, n)


mvlgamma = Composite(
    "mvlgamma(Tensor self, int p) -> Tensor",
    doc="""
    The logarithm of the multivariate gamma function of dimension `p`:
    ``p * (p - 1) / 4 * log(pi) + sum(lgamma(self - i / 2) for i in range(p))``.

    Args:
        p: The number of dimensions.

    Shape: that of `self`. Dtypes: floating-point dtypes; integers and bool give the default dtype.
    Raises: ValueError unless `p` is in [1, 10000].

    >>> import plait_core as pc
    >>> round(pc.mvlgamma(pc.tensor([2.0]), 2).item(), 4)
    0.4516
    """,
    inplace=True,
    variants="function method",
    widens=True,
)


@mvlgamma.decompose
def _(self, p):
    check(1 <= p <= 10000, f"`p` must be in [1, 10000]; got {p}", "ValueError")
    total = op.lgamma(op.contiguous(self)) + p * (p - 1) / 4.0 * LOG_PI
    for i in range(1, p):
        total = total + op.lgamma(self - i * 0.5)
    return total


def _binary(name, text, example, first="self", second="other"):
    public = name.removeprefix("special_")
    return Pointwise(
        f"{name}(Tensor|Scalar {first}, Tensor|Scalar {second}) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> round(pc.special.{public}(pc.tensor([{example[0]}]), {example[1]}).item(), 4)
    {example[2]}
    """,
        promote="float",
        domain=(1.2, 6.0),
        inplace=False,
        widens=True,
        libm="all",
    )


zeta = _binary(
    "special_zeta",
    "Hurwitz's zeta function: the sum of ``(other + k) ** -self`` over k = 0, 1, ... for `self` above 1.",
    ("2.0", 1, 1.6449),
)
gammainc = _binary(
    "special_gammainc",
    "The regularised lower incomplete gamma function: the integral of ``t ** (self - 1) * exp(-t)`` from 0 to `other`, divided"
    " by ``gamma(self)``.",
    ("1.0", 1, 0.6321),
)
gammaincc = _binary(
    "special_gammaincc",
    "The regularised upper incomplete gamma function: ``1 - gammainc(self, other)``.",
    ("1.0", 1, 0.3679),
)


@zeta.vjp("other")
def _(g, self, other):
    s = op.add(op.zeros_like(other), self)
    return -(g * s * zeta(s + 1.0, other))


@gammainc.vjp("other")
def _(g, self, other):
    a = op.add(op.zeros_like(other), self)
    return g * op.exp(op.xlogy(a - 1.0, other) - other - op.lgamma(a))


@gammaincc.vjp("other")
def _(g, self, other):
    a = op.add(op.zeros_like(other), self)
    return -g * op.exp(op.xlogy(a - 1.0, other) - other - op.lgamma(a))
