"""Infinities and nan: tests for them, and their replacement by numbers."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Pointwise
from plait_ops.unary import predicate
from plait_ops.words import bfloat16, float16, float64, is_complex, is_floating

INF = float("inf")
LARGEST_64, LARGEST_32 = 1.7976931348623157e308, 3.4028234663852886e38
LARGEST_BFLOAT16, LARGEST_16 = 3.3895313892515355e38, 65504.0


isposinf = predicate(
    "isposinf", "Whether an element is +inf.", "[False, False]", zero_preserving=True
)
isneginf = predicate(
    "isneginf", "Whether an element is -inf.", "[True, False]", zero_preserving=True
)


@isposinf.decompose
def _(self):
    return op.eq(self, INF)


@isneginf.decompose
def _(self):
    return op.eq(self, -INF)


replace_nonfinite = Pointwise(
    "replace_nonfinite(Tensor self, float nan=0, float posinf=0, float neginf=0) -> Tensor",
    doc="`self` with the given numbers in place of nan, inf and -inf: a part of `nan_to_num`.",
    internal=True,
    dtypes="floating",
    zero_preserving=True,
)


@replace_nonfinite.vjp("self")
def _(g, self):
    return op.mul(g, op.isfinite(self))


@replace_nonfinite.decompose
def _(self, nan, posinf, neginf):
    low = op.where(op.eq(self, -INF), neginf, self)
    finite = op.where(op.eq(self, INF), posinf, low)
    return op.where(op.ne(self, self), nan, finite)


nan_to_num = Composite(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    doc="""
    `self` with numbers in place of nan (default: 0), inf (default: the largest number of the dtype) and -inf (default: the
    lowest).

    Shape: that of `self`. Dtypes: floating and complex dtypes (real and imaginary parts are replaced separately); integers
    and bool are returned as they are.

    >>> import plait_core as pc
    >>> pc.nan_to_num(pc.tensor([float("nan"), float("inf"), 1.0]), posinf=2.0).tolist()
    [0.0, 2.0, 1.0]
    """,
    inplace=True,
    dtypes="any",
    variants="function function_ method",
    zero_preserving=True,
)
nan_to_num.shard("elements")


@nan_to_num.decompose
def _(self, nan, posinf, neginf):
    if is_complex(self.dtype):
        parts = nan_to_num(op.view_as_real(self), nan, posinf, neginf)
        return op.view_as_complex(parts)
    if not is_floating(self.dtype):
        return op.clone(self)
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


def _predicate(name, text, example, zero_preserving=False):
    operator = Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    Whether an element is {text}.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1.0, pc.nan, pc.inf])).tolist()
    {example}
    """,
        promote="bool",
        dtypes="any",
        inplace=False,
        variants="function method",
        zero_preserving=zero_preserving,
    )

    return operator


isnan = _predicate("isnan", "nan", "[False, True, False]", zero_preserving=True)
isinf = _predicate("isinf", "inf or -inf", "[False, False, True]", zero_preserving=True)
isfinite_ = _predicate("isfinite", "neither nan nor infinite", "[True, False, False]")


@isnan.decompose
def _(self):
    return op.ne(self, self)


@isinf.decompose
def _(self):
    if is_complex(self.dtype):
        return op.logical_or(isinf(op.real(self)), isinf(op.imag(self)))
    return op.eq(op.abs(self), INF)


@isfinite_.decompose
def _(self):
    if is_complex(self.dtype):
        return op.logical_and(isfinite_(op.real(self)), isfinite_(op.imag(self)))
    return op.lt(op.abs(self), INF)
