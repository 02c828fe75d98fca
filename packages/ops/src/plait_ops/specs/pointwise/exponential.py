"""Exponential functions."""

from plait_ops import calls as op
from plait_ops.spec import Pointwise
from plait_ops.unary import float_function
from plait_ops.words import conjugate

exp = float_function(
    "exp", "``e ** self``.", 0.0, 1.0, variants="function function_ method", libm="wide"
)
expm1 = float_function(
    "expm1",
    "``e ** self - 1``, exact near 0.",
    0.0,
    0.0,
    variants="function function_ method",
    libm="wide",
    zero_preserving=True,
)


@exp.vjp("self")
def _(g, result):
    return g * conjugate(result)


@expm1.vjp("self")
def _(g, self):
    # not the result + 1, which is 0 or rounded where the result is near -1
    return g * conjugate(op.exp(self))


LOG_2 = 0.6931471805599453

exp2 = Pointwise(
    "exp2(Tensor self) -> Tensor",
    doc="""
    ``2 ** self``.

    >>> import plait_core as pc
    >>> pc.exp2(pc.tensor([0.0, 3.0])).tolist()
    [1.0, 8.0]
    """,
    promote="float",
    dtypes="any",
    variants="function function_ method",
    libm="wide",
)


@exp2.vjp("self")
def _(g, result):
    return g * conjugate(result * LOG_2)


@exp2.decompose
def _(self):
    return op.pow(2.0, self)
