"""Sums and means that ignore nan."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import accumulated, is_integral, require


def _reduction(name, text, example, dtypes):
    operator = Composite(
        f"{name}(Tensor self, int[]? dim|axis=None, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
        doc=f"""
    {text}

    Shape: `dim` names the dimensions to reduce (None or an empty list: all of them); with `keepdim` they stay, with size 1.
    Raises: IndexError for a `dim` out of range, ValueError for a repeated one, DTypeError.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1.0, float("nan"), 3.0])).item()
    {example}
    """,
        dtypes=dtypes,
        widens=dtypes == "floating",
        variants="function method",
    )
    return operator


nansum = _reduction(
    "nansum",
    "The sum of the elements along `dim` that are not nan; 0 if there are none.",
    "4.0",
    "all",
)
nanmean = _reduction(
    "nanmean",
    "The mean of the elements along `dim` that are not nan; nan if there are none.",
    "2.0",
    "floating",
)


@nansum.decompose
def _(self, dim, keepdim, dtype):
    chosen = dtype if dtype is not None else accumulated(self.dtype)
    if is_integral(self.dtype):
        return op.sum(self, dim, keepdim, dtype=chosen)
    return op.sum(op.where(op.isnan(self), 0.0, self), dim, keepdim, dtype=chosen)


@nanmean.decompose
def _(self, dim, keepdim, dtype):
    require("self", self.dtype, "floating")
    chosen = dtype if dtype is not None else self.dtype
    missing = op.isnan(self)
    count = op.sum(op.bitwise_not(missing), dim, keepdim, dtype=chosen)
    return op.div(op.sum(op.where(missing, 0.0, self), dim, keepdim, dtype=chosen), count)
