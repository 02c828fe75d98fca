"""The representation of floating-point numbers: neighbours, mantissa and exponent."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import (
    bfloat16,
    default_dtype,
    float16,
    float64,
    int32,
    is_complex,
    is_floating,
    require,
    require_common,
    to_dtype,
)

LARGEST_BFLOAT16, LARGEST_16 = 3.3895313892515355e38, 65504.0


nextafter_elements = Pointwise(
    "nextafter_elements(Tensor self, Tensor other) -> Tensor",
    doc="`nextafter` of float32 and float64.",
    dtypes="floating",
    internal=True,
)


@nextafter_elements.vjp("self")
def _(g, self, other):
    return op.where(op.eq(self, other), 0.0, g)


half_nextafter_ = Composite(
    "half_nextafter(Tensor self, Tensor other, int digits, int least, float largest) -> Tensor",
    doc="""
    `nextafter` for float16 and bfloat16, computed in float64: their numbers have `digits` binary digits, are multiples of
    ``2 ** least``, and are at most `largest`.
    """,
    internal=True,
    dtypes="floating",
)


@half_nextafter_.decompose
def _(self, other, digits, least, largest):
    a = to_dtype(self, float64)
    b = to_dtype(other, float64)
    mantissa, exponent = frexp(a)
    inwards = op.lt(a * op.sgn(b - a), 0)
    # below a power of 2 numbers are twice as close
    closer = op.where(op.bitwise_and(inwards, op.eq(op.abs(mantissa), 0.5)), 1, 0)
    place = op.clamp_min(exponent - digits - closer, least)
    place = op.where(op.eq(a, 0), least, place)
    moved = op.copysign(a + ldexp(op.sgn(b - a), place), op.where(op.eq(a, 0), b, a))
    moved = op.where(
        op.isinf(a), op.copysign(op.full([], largest, dtype=float64, device=a.device), a), moved
    )
    return op.where(op.eq(a, b), b, op.where(op.isnan(a), a, op.where(op.isnan(b), b, moved)))


nextafter = Composite(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    doc="""
    The number next to `self`, among those that the dtype can hold, in the direction of `other`.

    Shapes: both broadcast. Dtypes: floating-point dtypes. Raises: DTypeError for other dtypes.

    >>> import plait_core as pc
    >>> pc.nextafter(pc.tensor([0.0]), pc.tensor([1.0])).item() > 0
    True
    """,
    inplace=True,
    dtypes="floating",
    variants="function method",
)


@nextafter.decompose
def _(self, other):
    require("self", self.dtype, "floating")
    require("other", other.dtype, "floating")
    dtype = require_common("self", self, "other", other)
    if dtype == float16:
        return to_dtype(op.half_nextafter(self, other, 11, -24, LARGEST_16), dtype)
    if dtype == bfloat16:
        return to_dtype(op.half_nextafter(self, other, 8, -133, LARGEST_BFLOAT16), dtype)
    return nextafter_elements(self, other)


ldexp = Composite(
    "ldexp(Tensor self, Tensor other) -> Tensor",
    doc="""
    ``self * 2 ** other``, computed in float64.

    Shapes: both broadcast. Dtypes: the result has the dtype to which both promote, or the default dtype if both hold
    integers.

    >>> import plait_core as pc
    >>> pc.ldexp(pc.tensor([1.5]), pc.tensor([2])).tolist()
    [6.0]
    """,
    inplace=True,
    dtypes="any",
    variants="function function_ method",
)


@ldexp.decompose
def _(self, other):
    # in float64, where no power of a float32's exponent overflows
    power = op.exp2(other if is_complex(other.dtype) else to_dtype(other, float64))
    wide = op.mul(self if is_complex(self.dtype) else to_dtype(self, float64), power)
    made = require_common("self", self, "other", other)
    inexact = is_floating(made) or is_complex(made)
    return to_dtype(wide, made if inexact else default_dtype())


frexp_mantissa = Pointwise(
    "frexp_mantissa(Tensor self) -> Tensor",
    doc="The first result of `frexp`.",
    dtypes="floating",
    internal=True,
    zero_preserving=True,
)
frexp_exponent = Pointwise(
    "frexp_exponent(Tensor self) -> Tensor",
    doc="The second result of `frexp`, as a floating-point number.",
    dtypes="floating",
    internal=True,
    zero_preserving=True,
)


@frexp_mantissa.vjp("self")
def _(g, self):
    return g * op.exp2(-frexp_exponent(self))


@nextafter_elements.vjp("other")
@frexp_exponent.vjp("self")
def _(g):
    return op.zeros_like(g)


frexp = Composite(
    "frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    doc="""
    Mantissa and exponent: ``self = mantissa * 2 ** exponent``. The magnitude of the mantissa is in [0.5, 1), the exponent
    is int32. For 0, infinity and nan the mantissa is the number itself and the exponent is 0.

    Shapes: those of `self`. Dtypes: floating; DTypeError for others.

    >>> import plait_core as pc
    >>> [t.tolist() for t in pc.frexp(pc.tensor([6.0]))]
    [[0.75], [3]]
    """,
    dtypes="floating",
    variants="function method",
)


@frexp.decompose
def _(self):
    mantissa = frexp_mantissa(self)
    return mantissa, to_dtype(frexp_exponent(self), int32)
