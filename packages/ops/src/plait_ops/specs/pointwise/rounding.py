"""Rounding to whole numbers and to decimal places."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.unary import function_of_one
from plait_ops.words import check, is_floating, require

floor = function_of_one(
    "floor",
    "The largest whole number that is not larger than `self`.",
    "[-2.0, 2.0]",
    "numeric",
    zero_preserving=True,
)
ceil = function_of_one(
    "ceil",
    "The smallest whole number that is not smaller than `self`.",
    "[-1.0, 3.0]",
    "numeric",
    zero_preserving=True,
)
round_ = function_of_one(
    "round",
    "The nearest whole number; halfway between two, the even one.",
    "[-2.0, 2.0]",
    "numeric",
    zero_preserving=True,
)
trunc = function_of_one(
    "trunc",
    "`self` without its fraction: rounded towards 0.",
    "[-1.0, 2.0]",
    "numeric",
    zero_preserving=True,
)
frac = function_of_one(
    "frac", "The fraction: ``self - trunc(self)``.", "[-0.5, 0.5]", "floating", zero_preserving=True
)


@floor.vjp("self")
@ceil.vjp("self")
@round_.vjp("self")
@trunc.vjp("self")
def _(g):
    return op.zeros_like(g)


@frac.vjp("self")
def _(g):
    return g


@ceil.decompose
def _(self):
    return -op.floor(-self) if is_floating(self.dtype) else op.clone(self)


@trunc.decompose
def _(self):
    if not is_floating(self.dtype):
        return op.clone(self)
    return op.where(op.lt(self, 0), -op.floor(-self), op.floor(self))


@frac.decompose
def _(self):
    return self - op.trunc(self)


def _rounding(name, public, text, variants="function"):
    return Composite(
        name,
        doc=f"""
    {text}

    Shape: that of `self`. Dtypes: floating-point dtypes; with ``decimals=0`` integers too. Raises: ValueError if the
    magnitude of `decimals` is above 300.

    >>> import plait_core as pc
    >>> pc.{public}(pc.tensor([1.375, 250.0], dtype=pc.float64), decimals=2).tolist()
    [1.38, 250.0]
    >>> pc.{public}(pc.tensor([1.375, 250.0]), decimals=-2).tolist()
    [0.0, 200.0]
    """,
        inplace="method" in variants,
        variants=variants,
        zero_preserving=True,
    )


decimals_ = _rounding(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    "round",
    "The nearest number with `decimals` decimal places: ``round(self * 10 ** decimals) / 10 ** decimals``. For negative `decimals`, the nearest multiple of"
    " ``10 ** -decimals``.",
    variants="function function_ method",
)
special_round = _rounding(
    "special_round(Tensor self, *, int decimals=0) -> Tensor",
    "special.round",
    "The nearest number with `decimals` decimal places; see `round`.",
)
decimals_.shard("elements")
special_round.shard("elements")


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
        return op.div(round_(op.mul(self, scale)), scale)
    step = 10.0 ** float(-decimals)
    return op.mul(round_(op.div(self, step)), step)
