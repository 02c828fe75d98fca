"""Signs, magnitudes and the step function."""

import numpy as np

from plait_ops.alias import under_another_name
from plait_ops.calls import conj, eq, mul, where, zeros_like
from plait_ops.calls import real as real_
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import is_complex

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


signbit = _test(
    "signbit",
    "Whether the sign is set: of numbers below 0 and of -0.",
    lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0,
    "[True, False]",
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


_TIES = [0.5, 1.5, -0.5, -2.5, 2.0, np.inf, -np.inf, np.nan, -0.0]


abs_ = _unary("abs", "The magnitude.", np.abs, "[1.5, 2.5]", "any", real=True)
sign = _unary(
    "sign",
    "-1, 0 or 1; nan for nan.",
    lambda x: x if x.dtype == bool else np.sign(x),
    "[-1.0, 1.0]",
)


@abs_.vjp("self")
def _(g, self):
    return mul(g, sgn(self))


@sign.vjp("self")
def _(g):
    return zeros_like(g)


absolute = Composite(
    "absolute(Tensor self) -> Tensor",
    doc=under_another_name("`abs` under NumPy's name.", "absolute", abs_),
    inplace=True,
    out=True,
)


@absolute.decompose
def _(self):
    return abs_(self)


absolute.reference(lambda self: np.abs(self))
absolute.samples(lambda s: iter([s(s.array(2, 3)), s(s.array(4, dtype="int64"))]))
absolute.error("TypeError", lambda s: s("x"), contains=[absolute.name, "self"])
for each in (abs_, sign):
    each.samples(
        lambda s: iter(
            [s(np.array(_TIES, dtype)).without_gradient() for dtype in ("float32", "float64")]
        )
    )
copysign = Pointwise(
    "copysign(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    The magnitude of `self` with the sign of `other` (that of -0.0 counts).

    >>> import plait_core as pc
    >>> pc.copysign(pc.tensor([1.0, 2.0]), -1.0).tolist()
    [-1.0, -2.0]
    """,
    promote="float",
)
copysign.reference(np.copysign)


@copysign.vjp("self")
def _(g, self, result):
    return where(eq(result, self), g, -g)


@copysign.vjp("other")
def _(g):
    return zeros_like(g)


copysign.error(
    "TypeError", lambda s: s(1, 2.0), contains=[copysign.schema.base, "self", "Tensor", "number"]
)
copysign.error("TypeError", lambda s: s(s.array(2), "x"), contains=[copysign.schema.base])
sgn = Pointwise(
    "sgn(Tensor self) -> Tensor",
    doc="""
    ``self / abs(self)``, and 0 at 0: the direction of a complex number, the sign of a real one.

    >>> import plait_core as pc
    >>> pc.sgn(pc.tensor([3 + 4j, 0j])).tolist()
    [(0.6000000238418579+0.800000011920929j), 0j]
    """,
    dtypes="any",
    reference=lambda x: (
        x
        if x.dtype == bool
        else np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))
        if x.dtype.kind == "c"
        else np.sign(x)
    ),
)


@sgn.vjp("self")
def _(g, self, result):
    if not is_complex(self.dtype):
        return zeros_like(g)
    # what changes the length alone changes nothing
    along = result * real_(g * conj(result))
    return where(eq(self, 0), 0.0, (g - along) / abs_(self))
