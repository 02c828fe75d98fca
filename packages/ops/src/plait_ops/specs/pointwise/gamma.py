"""The gamma function's logarithm and derivatives, incomplete gamma functions, Hurwitz's zeta function."""

import math

import numpy as np

from plait_ops.calls import add, exp, log, zeros_like
from plait_ops.calls import digamma as digamma_
from plait_ops.calls import lgamma as lgamma_
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import check

LOG_PI = math.log(math.pi)
each = np.vectorize


def _zeta(s, q):
    """Sum to 1000 and add what Euler and Maclaurin say about the rest."""
    if not (s >= 1 and q > 0):
        return math.nan if s < 1 else math.inf
    if s == 1:
        return math.inf
    k = np.arange(1000) + float(q)
    last = q + 1000
    tail = last ** (1 - s) / (s - 1) + last**-s / 2 + s * last ** (-s - 1) / 12
    return float(np.sum(k**-s)) + tail


def _lgamma(x):
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _digamma(x):
    """Shift past 30; there two terms of the expansion are exact in float64's sense."""
    if x == 0:
        return math.copysign(math.inf, -x)
    if x < 0:
        whole = x == math.floor(x)
        return math.nan if whole else _digamma(1 - x) - math.pi / math.tan(math.pi * x)
    steps = 0.0
    while x < 30:
        steps, x = steps + 1 / x, x + 1
    z = 1 / (x * x)
    tail = z / 12 - z**2 / 120 + z**3 / 252 - z**4 / 240
    return math.log(x) - 0.5 / x - tail - steps


def _polygamma(x, n):
    return _digamma(x) if n == 0 else (-1) ** (n + 1) * math.factorial(n) * _zeta(n + 1.0, x)


def _gammainc(a, x):
    """Sum of x^k / (a + 1) ... (a + k), all terms positive."""
    if a < 0 or x < 0 or (a == 0 and x == 0):
        return math.nan
    if a == 0 or x == 0:
        return 1.0 if a == 0 else 0.0
    k = np.arange(1, 400)
    total = 1 + float(np.sum(np.exp(np.cumsum(np.log(x / (a + k))))))
    return total * math.exp(a * math.log(x) - x - math.lgamma(a + 1))


def _unary(name, text, reference, at, value, domain):
    operator = Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([{at}])).tolist()
    [{value}]
    """,
        promote="float",
        reference=each(reference, otypes=["float64"]),
        domain=domain,
    )
    operator.samples(lambda s: iter([s(s.array(100, dtype="float64", low=0.3, high=40.0))]))
    return operator


lgamma = _unary(
    "lgamma",
    "``log(abs(gamma(self)))``: infinite at 0, -1, -2, ...",
    _lgamma,
    1.0,
    0.0,
    (0.3, 3),
)
digamma = _unary(
    "digamma",
    "The derivative of `lgamma`: nan at -1, -2, ..., infinite at 0.",
    _digamma,
    0.0,
    "-inf",
    (0.3, 3),
)


@digamma.samples
def _(s):
    yield s(np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, 1e10, -2.5])).without_gradient()
    yield s(s.array(60, dtype="float64", low=-0.9, high=-0.1))
    yield s(s.array(60, dtype="float64", low=0.3, high=40.0))


@lgamma.vjp("self")
def _(g, self):
    return g * digamma_(self)


@digamma.vjp("self")
def _(g, self):
    return g * polygamma_elements(self, 1)


polygamma_elements = Pointwise(
    "polygamma_elements(Tensor self, int n=1) -> Tensor",
    doc="`polygamma` with its arguments in the order that kernels want.",
    promote="float",
    internal=True,
    reference=lambda x, n: each(_polygamma, otypes=["float64"])(x, n),
    domain=(0.3, 3),
)


@polygamma_elements.vjp("self")
def _(g, self, n):
    return g * polygamma_elements(self, n + 1)


polygamma = Composite(
    "polygamma(Tensor self, int n) -> Tensor",
    doc="""
    The n-th derivative of `digamma`; also as ``polygamma(n, self)``.

    Shape: that of `self`. Dtypes: floating; integers and bool become the default dtype.
    Raises: ValueError if `n` is negative.

    >>> import plait_core as pc
    >>> round(pc.polygamma(1, pc.tensor([1.0])).item(), 4)
    1.6449
    >>> round(pc.tensor([1.0]).polygamma_(1).item(), 4)
    1.6449
    """,
    inplace=True,
    out=True,
)
polygamma_n = Composite(
    "polygamma.n(int n, Tensor self) -> Tensor",
    doc="`polygamma` with its arguments the other way round.",
    out=True,
)


@polygamma.decompose
@polygamma_n.decompose
def _(self, n):
    check(n >= 0, f"`n` must not be negative; got {n}", "ValueError")
    return polygamma_elements(self, n)


polygamma.reference(lambda self, n: polygamma_elements(self, n))
polygamma_n.reference(lambda n, self: polygamma_elements(self, n))
polygamma.samples(
    lambda s: iter(
        [s(s.array(3, 4, low=0.3), n) for n in (0, 1, 2, 5)]
        + [s(s.strided(3, 4, dtype="float64", low=0.3), 3), s(s.array(3, dtype="int64", low=1), 1)]
    )
)
polygamma_n.samples(lambda s: iter([s(n, s.array(3, low=0.3)) for n in (0, 1, 2)]))
polygamma.error("ValueError", lambda s: s(s.array(2), -1), contains=["polygamma", "n", "-1"])
polygamma_n.error("ValueError", lambda s: s(-1, s.array(2)), contains=["polygamma", "n", "-1"])


mvlgamma = Composite(
    "mvlgamma(Tensor self, int p) -> Tensor",
    doc="""
    The logarithm of the multivariate gamma function of dimension `p`:
    ``p * (p - 1) / 4 * log(pi) + sum(lgamma(self - i / 2) for i in range(p))``.

    Shape: that of `self`. Dtypes: floating; integers and bool become the default dtype.
    Raises: ValueError unless `p` is in [1, 10000].

    >>> import plait_core as pc
    >>> round(pc.mvlgamma(pc.tensor([2.0]), 2).item(), 4)
    0.4516
    """,
    inplace=True,
    out=True,
)


@mvlgamma.decompose
def _(self, p):
    check(1 <= p <= 10000, f"`p` must be in [1, 10000]; got {p}", "ValueError")
    total = lgamma_(self) + p * (p - 1) / 4.0 * LOG_PI
    for i in range(1, p):
        total = total + lgamma_(self - i * 0.5)
    return total


@mvlgamma.reference
def _(self, p):
    x = self.astype("float32") if self.dtype.kind in "biu" else self
    log_gamma = each(_lgamma, otypes=["float64"])
    total = p * (p - 1) / 4 * LOG_PI + sum(log_gamma(x - i / 2) for i in range(p))
    return np.asarray(total).astype(x.dtype)


mvlgamma.samples(
    lambda s: iter(
        [
            s(s.array(3, 4, low=2.0), 3),
            s(s.array(3, low=0.5), 1),
            s(s.strided(2, 3, dtype="float64", low=3.0, high=9.0), 4),
            s(s.array(3, dtype="int64", low=1), 2),
        ]
    )
)
mvlgamma.error("ValueError", lambda s: s(s.array(2), 0), contains=["mvlgamma", "p", "0"])


def _binary(name, text, reference, example, first="self", second="other"):
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
        reference=each(reference, otypes=["float64"]),
        inplace=False,
        method=False,
    )


zeta = _binary(
    "special_zeta",
    "Hurwitz's zeta function: the sum of ``(other + k) ** -self`` over k = 0, 1, ... for `self` above 1.",
    _zeta,
    ("2.0", 1, 1.6449),
)
gammainc = _binary(
    "special_gammainc",
    "The regularised lower incomplete gamma function: the integral of ``t ** (self - 1) * exp(-t)`` from 0 to `other`, divided"
    " by ``gamma(self)``.",
    _gammainc,
    ("1.0", 1, 0.6321),
)
gammaincc = _binary(
    "special_gammaincc",
    "The regularised upper incomplete gamma function: ``1 - gammainc(self, other)``.",
    lambda a, x: 1 - _gammainc(a, x),
    ("1.0", 1, 0.3679),
)


@zeta.vjp("other")
def _(g, self, other):
    s = add(zeros_like(other), self)
    return -(g * s * zeta(s + 1.0, other))


@gammainc.vjp("other")
def _(g, self, other):
    a = add(zeros_like(other), self)
    return g * exp((a - 1.0) * log(other) - other - lgamma_(a))


@gammaincc.vjp("other")
def _(g, self, other):
    a = add(zeros_like(other), self)
    return -g * exp((a - 1.0) * log(other) - other - lgamma_(a))


polygamma_elements.extremes = False  # no order is infinite

zeta.extremes = False  # the reference is for finite numbers
