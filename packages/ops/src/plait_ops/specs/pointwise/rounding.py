"""Signs and rounding."""

import numpy as np

from plait_ops.alias import under_another_name
from plait_ops.calls import mul, sgn, zeros_like
from plait_ops.spec import Composite, Pointwise


def _unary(name, text, reference, example, dtypes="all", real=False):
    return Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([-1.5, 2.5])).tolist()
    {example}
    """,
        dtypes=dtypes,
        real=real,
        reference=reference,
    )


def _keep_integers(function):
    return lambda x: x if x.dtype.kind in "biu" else function(x)


neg = _unary(
    "neg", "``-self``; unsigned integers wrap around.", np.negative, "[1.5, -2.5]", "arithmetic"
)
abs_ = _unary("abs", "The magnitude.", np.abs, "[1.5, 2.5]", "any", real=True)
sign = _unary(
    "sign",
    "-1, 0 or 1; nan for nan.",
    lambda x: x if x.dtype == bool else np.sign(x),
    "[-1.0, 1.0]",
)
floor = _unary(
    "floor",
    "The largest whole number that is not above.",
    _keep_integers(np.floor),
    "[-2.0, 2.0]",
    "numeric",
)
ceil = _unary(
    "ceil",
    "The smallest whole number that is not below.",
    _keep_integers(np.ceil),
    "[-1.0, 3.0]",
    "numeric",
)
round_ = _unary(
    "round",
    "The nearest whole number; of two, the even one.",
    _keep_integers(np.round),
    "[-2.0, 2.0]",
    "numeric",
)
trunc = _unary(
    "trunc",
    "The whole number without the fraction.",
    _keep_integers(np.trunc),
    "[-1.0, 2.0]",
    "numeric",
)
frac = _unary(
    "frac",
    "The fraction: ``self - trunc(self)``.",
    lambda x: x - np.trunc(x),
    "[-0.5, 0.5]",
    "floating",
)


@neg.vjp("self")
def _(g):
    return -g


@abs_.vjp("self")
def _(g, self):
    return mul(g, sgn(self))


@sign.vjp("self")
@floor.vjp("self")
@ceil.vjp("self")
@round_.vjp("self")
@trunc.vjp("self")
def _(g):
    return zeros_like(g)


@frac.vjp("self")
def _(g):
    return g


positive = Composite(
    "positive(Tensor(a) self) -> Tensor(a)",
    doc="""
    `self` itself: Python's ``+x``.

    >>> import plait_core as pc
    >>> pc.positive(pc.tensor([1.5])).tolist()
    [1.5]
    """,
    dtypes="any",
)


@positive.decompose
def _(self):
    return self


positive.reference(lambda self: self)
positive.samples(lambda s: iter([s(s.array(2, 3)), s(s.array(dtype="int64"))]))
positive.error("TypeError", lambda s: s("x"), contains=["positive", "self"])

absolute = Composite(
    "absolute(Tensor self) -> Tensor",
    doc=under_another_name("`abs` under NumPy's name.", "absolute", abs_),
    inplace=True,
    out=True,
)
negative = Composite(
    "negative(Tensor self) -> Tensor",
    doc=under_another_name("`neg` under NumPy's name.", "negative", neg),
    inplace=True,
    out=True,
)


@absolute.decompose
def _(self):
    return abs_(self)


@negative.decompose
def _(self):
    return neg(self)


absolute.reference(lambda self: np.abs(self))
negative.reference(lambda self: np.negative(self))
for each in (absolute, negative):
    each.samples(lambda s: iter([s(s.array(2, 3)), s(s.array(4, dtype="int64"))]))
    each.error("TypeError", lambda s: s("x"), contains=[each.name, "self"])

_TIES = [0.5, 1.5, -0.5, -2.5, 2.0, np.inf, -np.inf, np.nan, -0.0]
for each in (neg, abs_, sign, floor, ceil, round_, trunc):
    each.samples(
        lambda s: iter(
            [s(np.array(_TIES, dtype)).without_gradient() for dtype in ("float32", "float64")]
        )
    )
