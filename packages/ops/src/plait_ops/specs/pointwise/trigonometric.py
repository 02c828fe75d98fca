"""Trigonometric functions; angles are in radians."""

from plait_ops import calls as op
from plait_ops.spec import Pointwise
from plait_ops.unary import float_function
from plait_ops.words import conjugate, is_complex

sin = float_function(
    "sin",
    "The sine.",
    0.0,
    0.0,
    variants="function function_ method",
    libm="wide",
    zero_preserving=True,
)
cos = float_function(
    "cos", "The cosine.", 0.0, 1.0, variants="function function_ method", libm="wide"
)
tan = float_function(
    "tan",
    "The tangent.",
    0.0,
    0.0,
    (-1.2, 1.2),
    variants="function function_ method",
    libm="wide",
    zero_preserving=True,
)
asin = float_function(
    "asin",
    "The angle between -pi/2 and pi/2 whose sine is `self`; nan outside [-1, 1].",
    0.0,
    0.0,
    (-0.9, 0.9),
    variants="function function_ method",
    widens=True,
    libm="wide",
    zero_preserving=True,
)
acos = float_function(
    "acos",
    "The angle between 0 and pi whose cosine is `self`; nan outside [-1, 1].",
    1.0,
    0.0,
    (-0.9, 0.9),
    variants="function function_ method",
    widens=True,
    libm="wide",
)
atan = float_function(
    "atan",
    "The angle between -pi/2 and pi/2 whose tangent is `self`.",
    0.0,
    0.0,
    variants="function function_ method",
    widens=True,
    libm="wide",
    zero_preserving=True,
)


@sin.vjp("self")
def _(g, self):
    return g * conjugate(cos(self))


@cos.vjp("self")
def _(g, self):
    return -g * conjugate(sin(self))


@tan.vjp("self")
def _(g, result):
    return g * conjugate(op.square(result) + 1.0)


@asin.vjp("self")
def _(g, self):
    return g * conjugate(op.rsqrt(1.0 - op.square(self)))


@acos.vjp("self")
def _(g, self):
    return -g * conjugate(op.rsqrt(1.0 - op.square(self)))


@atan.vjp("self")
def _(g, self):
    return g / conjugate(op.square(self) + 1.0)


PI = 3.141592653589793
DEGREE = 0.017453292519943295
RADIAN = 57.29577951308232
INF = float("inf")
EVEN_ABOVE = 4503599627370496.0  # 2 ** 52: all larger numbers are whole
sinc = float_function(
    "sinc",
    "``sin(pi * self) / (pi * self)``, 1 at 0.",
    0.0,
    1.0,
    variants="function function_ method",
    widens=True,
    libm="wide",
)
deg2rad = float_function(
    "deg2rad",
    "Angles in degrees, converted to radians: ``self * pi / 180``.",
    0.0,
    0.0,
    dtypes="all",
    variants="function function_ method",
    zero_preserving=True,
)
rad2deg = float_function(
    "rad2deg",
    "Angles in radians, converted to degrees: ``self * 180 / pi``.",
    0.0,
    0.0,
    dtypes="all",
    variants="function function_ method",
    zero_preserving=True,
)


@sinc.vjp("self")
def _(g, self):
    # near 0 its series in x = pi * self, as the difference would lose all digits
    near = op.lt(op.abs(self), 0.15)
    away = op.masked_fill(self, near, 1.0)
    slope = op.div(cos(op.mul(self, PI)) - sinc(self), away)
    x2 = op.square(op.mul(op.masked_fill(self, op.logical_not(near), 0.0), PI))
    series = x2 * (-1.0 / 518918400.0) + 1.0 / 3991680.0
    series = x2 * series - 1.0 / 45360.0
    series = x2 * series + 1.0 / 840.0
    series = x2 * series - 1.0 / 30.0
    series = (x2 * series + 1.0 / 3.0) * self * -(PI**2)
    return g * conjugate(op.where(near, series, slope))


@sinc.decompose
def _(self):
    if is_complex(self.dtype):
        y = self * PI
        return op.where(op.eq(self, 0), 1.0, op.sin(y) / y)
    # sin(pi x) = +-sin(pi (x - n)), whose argument is small where the sine is
    n = op.round(self)
    rest = op.where(op.lt(op.abs(self), EVEN_ABOVE), self - n, self - self)
    sine = op.sin(rest * PI)
    half = n * 0.5
    signed = op.where(op.eq(half, op.floor(half)), sine, -sine)
    return op.where(op.eq(self, 0), 1.0, signed / (self * PI))


@deg2rad.decompose
def _(self):
    return self * DEGREE


@rad2deg.decompose
def _(self):
    return self * RADIAN


@deg2rad.vjp("self")
def _(g):
    return g * DEGREE


@rad2deg.vjp("self")
def _(g):
    return g * RADIAN


atan2 = Pointwise(
    "atan2(Tensor self, Tensor other) -> Tensor",
    doc="""
    The angle of the point ``(other, self)``, in radians from -pi to pi.

    >>> import plait_core as pc
    >>> pc.atan2(pc.tensor([0.0]), pc.tensor([1.0])).tolist()
    [0.0]
    """,
    promote="float",
    variants="function method",
    widens=True,
    libm="wide",
)
hypot = Pointwise(
    "hypot(Tensor self, Tensor other) -> Tensor",
    doc="""
    ``sqrt(self ** 2 + other ** 2)``; intermediate results do not overflow.

    >>> import plait_core as pc
    >>> pc.hypot(pc.tensor([3.0]), pc.tensor([4.0])).tolist()
    [5.0]
    """,
    dtypes="floating",
    variants="function method",
    libm="wide",
)


@atan2.vjp("self")  # at (0, 0), where there is none: 0
def _(g, self, other):
    square = self * self + other * other
    slope = op.true_divide(other, op.where(op.eq(square, 0), 1.0, square))
    return g * op.where(op.eq(square, 0), 0.0, slope)


@atan2.vjp("other")
def _(g, self, other):
    square = self * self + other * other
    slope = op.true_divide(self, op.where(op.eq(square, 0), 1.0, square))
    return -g * op.where(op.eq(square, 0), 0.0, slope)


@hypot.vjp("self")
def _(g, self, result):
    return g * op.true_divide(self, result)


@hypot.vjp("other")
def _(g, other, result):
    return g * op.true_divide(other, result)


@hypot.decompose
def _(self, other):
    a = op.abs(self)
    b = op.abs(other)
    high = op.maximum(a, b)
    ratio = op.minimum(a, b) / op.where(op.eq(high, 0), 1.0, high)
    length = high * op.sqrt(ratio * ratio + 1.0)
    return op.where(op.logical_or(op.isinf(a), op.isinf(b)), INF, length)
