"""Signs, steps, neighbours, what is not finite; greatest common divisors."""

import numpy as np

from plait_ops.calls import abs as abs_of
from plait_ops.calls import (
    bitwise_and,
    clamp_min,
    clone,
    copysign,
    eq,
    frexp,
    full,
    half_nextafter,
    isfinite,
    isinf,
    isnan,
    ldexp,
    lt,
    mul,
    nan_to_num,
    sgn,
    sub,
    view_as_complex,
    view_as_real,
    where,
    zeros_like,
)
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import (
    bfloat16,
    float16,
    float64,
    is_complex,
    is_floating,
    require,
    require_common,
    to_dtype,
)

LARGEST_64, LARGEST_32 = 1.7976931348623157e308, 3.4028234663852886e38
LARGEST_BFLOAT16, LARGEST_16 = 3.3895313892515355e38, 65504.0
HALVES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 6e-8, -6e-8, 6.1e-5, 0.3, 65504.0]
NONFINITE = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30]


def _test(name, text, reference, example, dtypes="all"):
    operator = Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([-float("inf"), 1.0])).tolist()
    {example}
    """,
        promote="bool",
        dtypes=dtypes,
        inplace=False,
        reference=reference,
    )

    @operator.samples
    def _(s):
        for dtype in ("float32", "float64"):
            yield s(np.array(NONFINITE, dtype))

    return operator


def _floats(function):
    return lambda x: function(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


signbit = _test(
    "signbit",
    "Whether the sign is set: of numbers below 0 and of -0.",
    lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0,
    "[True, False]",
)
isposinf = _test("isposinf", "Whether an element is +inf.", _floats(np.isposinf), "[False, False]")
isneginf = _test("isneginf", "Whether an element is -inf.", _floats(np.isneginf), "[True, False]")
isreal = _test(
    "isreal",
    "Whether an element has no imaginary part; True for real dtypes.",
    np.isreal,
    "[True, True]",
    "any",
)


heaviside = Pointwise(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    doc="""
    The step function: 0 where `self` is below 0 or nan, 1 above, `values` at 0.

    >>> import plait_core as pc
    >>> pc.heaviside(pc.tensor([-2.0, 0.0, 3.0]), pc.tensor([0.5])).tolist()
    [0.0, 0.5, 1.0]
    """,
    reference=lambda x, values: np.where(x == 0, values, x > 0),
)


@heaviside.vjp("self")
def _(g):
    return zeros_like(g)


@heaviside.vjp("values")
def _(g, self):
    return where(eq(self, 0), g, 0.0)


nextafter_elements = Pointwise(
    "nextafter_elements(Tensor self, Tensor other) -> Tensor",
    doc="`nextafter` of float32 and float64.",
    dtypes="floating",
    internal=True,
    reference=np.nextafter,
)


@nextafter_elements.vjp("self")
def _(g, self, other):
    return where(eq(self, other), 0.0, g)


@nextafter_elements.vjp("other")
def _(g):
    return zeros_like(g)


half_nextafter_ = Composite(
    "half_nextafter(Tensor self, Tensor other, int digits, int least, float largest) -> Tensor",
    doc="""
    `nextafter` in float64, of numbers with so many binary `digits`, multiples of ``2 ** least``, up to `largest`.
    """,
    internal=True,
    dtypes="floating",
)


@half_nextafter_.decompose
def _(self, other, digits, least, largest):
    a = to_dtype(self, float64)
    b = to_dtype(other, float64)
    mantissa, exponent = frexp(a)
    inwards = lt(a * sgn(b - a), 0)
    # below a power of 2 numbers are twice as close
    closer = where(bitwise_and(inwards, eq(abs_of(mantissa), 0.5)), 1, 0)
    place = clamp_min(exponent - digits - closer, least)
    place = where(eq(a, 0), least, place)
    moved = copysign(a + ldexp(sgn(b - a), place), where(eq(a, 0), b, a))
    moved = where(isinf(a), copysign(full([], largest, dtype=float64, device=a.device), a), moved)
    return where(eq(a, b), b, where(isnan(a), a, where(isnan(b), b, moved)))


@half_nextafter_.reference
def _(self, other, digits, least, largest):
    return np.nextafter(self, other).astype("float64")


half_nextafter_.samples(
    lambda s: iter(
        [
            s(
                np.array(HALVES[:-1], "float16")[:, None],
                np.array(HALVES[:-1], "float16"),
                11,
                -24,
                LARGEST_16,
            ).without_gradient()
        ]
    )
)
half_nextafter_.error("TypeError", lambda s: s("x"), contains=["half_nextafter", "self"])


nextafter = Composite(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    doc="""
    The next number that the dtype has after `self` on the way to `other`.

    Shapes: both broadcast. Dtypes: floating-point ones; DTypeError for others.

    >>> import plait_core as pc
    >>> pc.nextafter(pc.tensor([0.0]), pc.tensor([1.0])).item() > 0
    True
    """,
    inplace=True,
    out=True,
    dtypes="floating",
)


@nextafter.decompose
def _(self, other):
    require("self", self.dtype, "floating")
    require("other", other.dtype, "floating")
    dtype = require_common("self", self, "other", other)
    if dtype == float16:
        return to_dtype(half_nextafter(self, other, 11, -24, LARGEST_16), dtype)
    if dtype == bfloat16:
        return to_dtype(half_nextafter(self, other, 8, -133, LARGEST_BFLOAT16), dtype)
    return nextafter_elements(self, other)


nextafter.reference(lambda self, other: np.nextafter(self, other))


@nextafter.samples
def _(s):
    yield s(s.array(3, 4), s.array(4)).without_gradient()
    yield s(s.strided(3, 4, dtype="float64"), s.array(3, 4, dtype="float64")).without_gradient()
    values = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38], "float32")
    yield s(values[:, None], values).without_gradient()
    halves = np.array(HALVES, "float16")
    yield s(halves[:, None], halves).without_gradient()


nextafter.error(
    "DTypeError", lambda s: s(s.array(2, dtype="int64"), s.array(2)), contains=["self", "int64"]
)


rsub = Composite(
    "rsub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    doc="""
    ``other - alpha * self``: `sub` with its operands exchanged.

    Shapes: both broadcast. Dtypes: those of `sub`.

    >>> import plait_core as pc
    >>> pc.rsub(pc.tensor([1, 2]), 10).tolist()
    [9, 8]
    """,
    dtypes="arithmetic",
)


@rsub.decompose
def _(self, other, alpha):
    return sub(other, self, alpha=alpha)


rsub.reference(lambda self, other, alpha=1: sub(other, self * np.asarray(alpha, self.dtype)))
rsub.samples(
    lambda s: iter(
        [s(s.array(2, 3), s.array(3)), s(s.array(3, dtype="int64"), 4), s(s.array(3), 1, alpha=2)]
    )
)
rsub.error("ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["(2, 3)", "(4,)"])


replace_nonfinite = Pointwise(
    "replace_nonfinite(Tensor self, float nan=0, float posinf=0, float neginf=0) -> Tensor",
    doc="`self` with these numbers in the place of nan, inf and -inf: a part of `nan_to_num`.",
    internal=True,
    dtypes="floating",
    reference=lambda x, nan=0, posinf=0, neginf=0: np.nan_to_num(
        x, nan=nan, posinf=posinf, neginf=neginf
    ),
)


@replace_nonfinite.vjp("self")
def _(g, self):
    return mul(g, isfinite(self))


nan_to_num = Composite(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    doc="""
    `self` with numbers in the place of nan (default: 0), inf (default: the largest number of the dtype) and -inf (default: the
    lowest).

    Shape: that of `self`. Dtypes: floating and complex ones, whose parts are replaced; integers and bool have nothing to
    replace.

    >>> import plait_core as pc
    >>> pc.nan_to_num(pc.tensor([float("nan"), float("inf"), 1.0]), posinf=2.0).tolist()
    [0.0, 2.0, 1.0]
    """,
    inplace=True,
    out=True,
    dtypes="any",
)


@nan_to_num.decompose
def _(self, nan, posinf, neginf):
    if is_complex(self.dtype):
        parts = nan_to_num(view_as_real(self), nan, posinf, neginf)
        return view_as_complex(parts)
    if not is_floating(self.dtype):
        return clone(self)
    largest = LARGEST_32
    if self.dtype == float64:
        largest = LARGEST_64
    if self.dtype == float16:
        largest = LARGEST_16
    if self.dtype == bfloat16:
        largest = LARGEST_BFLOAT16
    return replace_nonfinite(
        self,
        nan if nan is not None else 0.0,
        posinf if posinf is not None else largest,
        neginf if neginf is not None else -largest,
    )


nan_to_num.reference(
    lambda self, nan=None, posinf=None, neginf=None: np.nan_to_num(
        self, nan=nan or 0.0, posinf=posinf, neginf=neginf
    )
)


@nan_to_num.samples
def _(s):
    for dtype in ("float32", "float64"):
        yield s(np.array(NONFINITE, dtype)).without_gradient()
        yield s(np.array(NONFINITE, dtype), 1.0, 2.0, -3.0).without_gradient()
    yield s(s.strided(3, 4))
    yield s(s.array(3, dtype="int32"))
    yield s(np.array([complex("nan+1j"), complex("inf-infj"), 2j], "complex64")).without_gradient()


nan_to_num.error("TypeError", lambda s: s("x"), contains=["nan_to_num", "self"])


def _divisors(name, text, function, example):
    operator = Pointwise(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([12, -4]), pc.tensor([8, 6])).tolist()
    {example}
    """,
        dtypes="integer",
        reference=function,
    )

    @operator.samples
    def _(s):
        yield s(np.array([0, 0, 5, -5, 12, 2**40]), np.array([0, 7, 0, 15, 18, 2**33]))

    return operator


gcd = _divisors(
    "gcd", "The greatest common divisor, never negative; ``gcd(0, 0)`` is 0.", np.gcd, "[4, 2]"
)
lcm = _divisors(
    "lcm", "The least common multiple, never negative; 0 where one is 0.", np.lcm, "[24, 12]"
)
