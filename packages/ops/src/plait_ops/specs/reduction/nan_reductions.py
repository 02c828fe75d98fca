"""Sums and means that leave nan out."""

import numpy as np

from plait_ops.calls import bitwise_not, div, isnan, sum, where
from plait_ops.spec import Composite
from plait_ops.words import accumulated, is_integral, require


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
