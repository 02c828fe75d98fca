"""Reductions that leave nan out, and two in one: smallest and largest, deviation and mean."""

import numpy as np

from plait_ops.calls import (
    amax,
    amin,
    bitwise_not,
    div,
    eq,
    isnan,
    reshape,
    std_mean,
    sum,
    var_mean,
    where,
)
from plait_ops.calls import sqrt as sqrt_of
from plait_ops.spec import Composite
from plait_ops.words import accumulated, check, is_integral, numel, require, wrap_dim


def _axes(dim):
    if dim is None or (isinstance(dim, (tuple, list)) and not len(dim)):
        return None
    return tuple(dim) if isinstance(dim, (tuple, list)) else dim


def _reduction(name, text, reference, example, dtypes):
    operator = Composite(
        f"{name}(Tensor self, int[]? dim|axis=None, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
        doc=f"""
    {text}

    Shape: `dim` names what is reduced (None or an empty list: everything); with `keepdim` it stays with size 1.
    Raises: IndexError for a `dim` out of range, ValueError for a repeated one, DTypeError.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1.0, float("nan"), 3.0])).item()
    {example}
    """,
        out=True,
        dtypes=dtypes,
    )

    @operator.reference
    def _(self, dim=None, keepdim=False, dtype=None):
        made = dtype or ("int64" if self.dtype.kind in "biu" else self.dtype)
        with np.errstate(all="ignore"):
            return np.asarray(
                reference(
                    self.astype("float64") if self.dtype.kind == "f" else self,
                    axis=_axes(dim),
                    keepdims=keepdim,
                )
            ).astype(made)

    @operator.samples
    def _(s):
        x = s.array(3, 4)
        x[x > 1] = np.nan
        yield s(x)
        yield s(x, 1)
        yield s(x, (0, 1), True)
        yield s(x.T, (-1,), True)
        yield s(np.full((2, 3), np.nan, "float32"), 0).without_gradient()
        yield s(s.array(2, 3), 0, dtype="float64")
        yield s(s.array(0, 2), 0).without_gradient()

    operator.error(
        "IndexError", lambda s: s(s.array(2, 3), 2), contains=["sum", "dim", "(2, 3)", "2"]
    )
    return operator


nansum = _reduction(
    "nansum",
    "The sum of the elements along `dim` that are not nan; of none it is 0.",
    np.nansum,
    "4.0",
    "all",
)
nanmean = _reduction(
    "nanmean",
    "The mean of the elements along `dim` that are not nan; of none it is nan.",
    np.nanmean,
    "2.0",
    "floating",
)


@nansum.decompose
def _(self, dim, keepdim, dtype):
    chosen = dtype if dtype is not None else accumulated(self.dtype)
    if is_integral(self.dtype):
        return sum(self, dim, keepdim, dtype=chosen)
    return sum(where(isnan(self), 0.0, self), dim, keepdim, dtype=chosen)


@nanmean.decompose
def _(self, dim, keepdim, dtype):
    require("self", self.dtype, "floating")
    chosen = dtype if dtype is not None else self.dtype
    missing = isnan(self)
    count = sum(bitwise_not(missing), dim, keepdim, dtype=chosen)
    return div(sum(where(missing, 0.0, self), dim, keepdim, dtype=chosen), count)


nansum.samples(lambda s: iter([s(s.array(3, 4, dtype="int64"), 1), s(s.array(5, dtype="bool"))]))
nanmean.error(
    "DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=["nanmean", "self", "int64"]
)

aminmax = Composite(
    "aminmax(Tensor self, *, int? dim|axis=None, bool keepdim|keepdims=False) -> (Tensor, Tensor)",
    doc="""
    The smallest and the largest elements along `dim`, of all for None: `amin` and `amax`.

    Raises: ShapeError for an empty reduction, IndexError for a `dim` out of range, DTypeError for complex numbers.

    >>> import plait_core as pc
    >>> [x.item() for x in pc.aminmax(pc.tensor([3, 1, 2]))]
    [1, 3]
    """,
    out=True,
)


@aminmax.decompose
def _(self, dim, keepdim):
    if dim is not None:
        at = wrap_dim("dim", dim, self.shape)
        if self.ndim == 0:
            return amin(self), amax(self)
        return amin(self, [at], keepdim), amax(self, [at], keepdim)
    check(
        numel(self.shape) > 0,
        f"`self` of shape {self.shape} has no elements, and an empty reduction has no value",
    )
    if keepdim:
        shape = [1] * self.ndim
        return reshape(amin(self), shape), reshape(amax(self), shape)
    return amin(self), amax(self)


@aminmax.reference
def _(self, dim=None, keepdim=False):
    at = dim if self.ndim else None
    return tuple(np.asarray(each(self, axis=at, keepdims=keepdim)) for each in (np.min, np.max))


aminmax.samples(
    lambda s: iter(
        [
            s(s.distinct(3, 4)),
            s(s.distinct(3, 4), dim=1),
            s(s.distinct(3, 4), dim=0, keepdim=True),
            s(s.distinct(3, 4), keepdim=True),
            s(s.array(5, dtype="int64")),
            s(s.array(), dim=0),
        ]
    )
)
aminmax.error("ShapeError", lambda s: s(s.array(0, 3)), contains=["aminmax", "self", "(0, 3)"])
aminmax.error(
    "IndexError", lambda s: s(s.array(2), dim=1), contains=["aminmax", "dim", "(2,)", "1"]
)

std_mean_ = Composite(
    "std_mean(Tensor self, int[]? dim|axis=None, *, Scalar? correction=1, bool keepdim|keepdims=False) -> (Tensor, Tensor)",
    doc="""
    `std` and `mean` in one go; see `var_mean`.

    >>> import plait_core as pc
    >>> [x.item() for x in pc.std_mean(pc.tensor([1.0, 3.0]), correction=0)]
    [1.0, 2.0]
    """,
    dtypes="floating",
)
std_mean_unbiased = Composite(
    "std_mean.unbiased(Tensor self, int[]? dim|axis=None, bool unbiased=True, bool keepdim|keepdims=False)"
    " -> (Tensor, Tensor)",
    doc="`std_mean` with `correction` 1 if `unbiased`, else 0.",
    dtypes="floating",
)


@std_mean_.decompose
def _(self, dim, correction, keepdim):
    variance, centre = var_mean(self, dim, correction=correction, keepdim=keepdim)
    # the derivative of a root at 0 is taken as 0, as by `std`
    none = eq(variance, 0)
    return where(none, 0.0, sqrt_of(where(none, 1.0, variance))), centre


@std_mean_unbiased.decompose
def _(self, dim, unbiased, keepdim):
    return std_mean(self, dim, correction=1 if unbiased else 0, keepdim=keepdim)


@std_mean_.reference
def _(self, dim=None, correction=1, keepdim=False):
    variance, centre = var_mean(self, dim, correction=correction, keepdim=keepdim)
    return np.sqrt(variance), centre


std_mean_unbiased.reference(
    lambda self, dim=None, unbiased=True, keepdim=False: std_mean_(
        self, dim, correction=int(unbiased), keepdim=keepdim
    )
)
std_mean_.samples(
    lambda s: iter(
        [
            s(s.array(3, 5)),
            s(s.array(3, 5), 1, correction=0),
            s(s.array(3, 5), (0, 1), keepdim=True),
        ]
    )
)
std_mean_unbiased.samples(
    lambda s: iter([s(s.array(3, 4), 0, False), s(s.array(3, 4), None, True)])
)
std_mean_.error(
    "DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=["var_mean", "self", "int64"]
)
std_mean_unbiased.error(
    "IndexError", lambda s: s(s.array(2, 3), 2, False), contains=["var_mean", "dim", "(2, 3)", "2"]
)

std_mean_flag = Composite(
    "std_mean.flag(Tensor self, bool unbiased) -> (Tensor, Tensor)",
    doc="`std_mean` of all elements with `correction` 1 if `unbiased`, else 0.",
    dtypes="inexact",
)


@std_mean_flag.decompose
def _(self, unbiased):
    return std_mean(self, None, correction=1 if unbiased else 0)


std_mean_flag.reference(lambda self, unbiased: std_mean_(self, correction=int(unbiased)))
std_mean_flag.samples(lambda s: iter([s(s.array(3, 4), True), s(s.array(3, 4), False)]))
std_mean_flag.error("TypeError", lambda s: s("a", True), contains=["std_mean"])
