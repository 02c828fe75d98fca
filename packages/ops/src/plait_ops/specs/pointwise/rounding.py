"""Rounding to whole numbers and to decimal places."""

import numpy as np

from plait_ops.calls import div, mul, zeros_like
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import check, require


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


@floor.vjp("self")
@ceil.vjp("self")
@round_.vjp("self")
@trunc.vjp("self")
def _(g):
    return zeros_like(g)


@frac.vjp("self")
def _(g):
    return g


_TIES = [0.5, 1.5, -0.5, -2.5, 2.0, np.inf, -np.inf, np.nan, -0.0]
for each in (floor, ceil, round_, trunc):
    each.samples(
        lambda s: iter(
            [s(np.array(_TIES, dtype)).without_gradient() for dtype in ("float32", "float64")]
        )
    )


def _rounding(name, public, text):
    return Composite(
        name,
        doc=f"""
    {text}

    Shape: that of `self`. Dtypes: floating; with 0 decimals integers too. Raises: ValueError for |decimals| above 300.

    >>> import plait_core as pc
    >>> pc.{public}(pc.tensor([1.375, 250.0], dtype=pc.float64), decimals=2).tolist()
    [1.38, 250.0]
    >>> pc.{public}(pc.tensor([1.375, 250.0]), decimals=-2).tolist()
    [0.0, 200.0]
    """,
        out=True,
        inplace=public == "round",
        method=public == "round",
    )


decimals_ = _rounding(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    "round",
    "The nearest number with that many `decimals`: ``round(self * 10 ** decimals) / 10 ** decimals``; below 0, a multiple of"
    " ``10 ** -decimals``.",
)
special_round = _rounding(
    "special_round(Tensor self, *, int decimals=0) -> Tensor",
    "special.round",
    "The nearest number with that many `decimals`; see `round`.",
)


@decimals_.decompose
@special_round.decompose
def _(self, decimals):
    if decimals == 0:
        return round_(self)
    require("self", self.dtype, "floating")
    check(
        -300 <= decimals <= 300, f"`decimals` must be in [-300, 300]; got {decimals}", "ValueError"
    )
    if decimals > 0:
        scale = 10.0 ** float(decimals)
        return div(round_(mul(self, scale)), scale)
    step = 10.0 ** float(-decimals)
    return mul(round_(div(self, step)), step)


@decimals_.reference
@special_round.reference
def _(self, decimals=0):
    if decimals == 0:
        return np.round(self).astype(self.dtype)
    scale = 10.0 ** abs(decimals)
    made = np.round(self * scale) / scale if decimals > 0 else np.round(self / scale) * scale
    return made.astype(self.dtype)


@decimals_.samples
@special_round.samples
def _(s):
    for decimals in (0, 1, 2, -1):
        yield s(
            s.array(3, 4, dtype="float64", low=-90.0, high=90.0), decimals=decimals
        ).without_gradient()
    yield s(s.strided(3, 4), decimals=1).without_gradient()
    yield s(s.array(3, dtype="int64"), decimals=0)


for each in (decimals_, special_round):
    each.error(
        "ValueError",
        lambda s: s(s.array(2), decimals=400),
        contains=[each.schema.base, "decimals", "400"],
    )
    each.error(
        "DTypeError", lambda s: s(s.array(2, dtype="int64"), decimals=1), contains=["self", "int64"]
    )
