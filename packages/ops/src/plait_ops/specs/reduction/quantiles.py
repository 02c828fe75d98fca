"""Quantiles: elements of given rank, or interpolations of two."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import check, int64, is_tensor, require, to_dtype, wrap_dim


def _quantile(name, text, example):
    operator = Composite(
        f"{name}(Tensor self, Tensor|Scalar q, int? dim|axis=None, bool keepdim|keepdims=False, *,"
        ' str interpolation="linear") -> Tensor',
        doc=f"""
    The elements of rank ``q * (n - 1)`` among {text} along `dim`, all for None; `q`, a number or a vector in [0, 1],
    becomes the first dimension of the result. A rank between two elements is interpolated: `interpolation` is "linear",
    "lower", "higher", "midpoint" or "nearest" (if two are equally near, the one of even rank).

    Dtypes: float32 and float64, the same for `q`.
    Raises: ValueError for another `interpolation` or a number `q` outside [0, 1], ShapeError if there are no elements or
    `q` has several dimensions, DTypeError.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([{example}]), 0.5).item()
    1.5
    """,
        dtypes="floating",
        variants="function method",
    )
    return operator


quantile = _quantile("quantile", "the elements (nan if one is nan)", "1.0, 2.0")
nanquantile = _quantile("nanquantile", "the elements that are not nan", "1.0, 2.0, float('nan')")
quantile_of_ = Composite(
    "quantile_of(Tensor self, Tensor|Scalar q, int? dim, bool keepdim, str interpolation, bool ignore_nan) -> Tensor",
    doc="`quantile`, and with `ignore_nan` `nanquantile`.",
    dtypes="floating",
    internal=True,
    widens=True,
)


@quantile.decompose
def _(self, q, dim, keepdim, interpolation):
    return op.quantile_of(self, q, dim, keepdim, interpolation, False)


@nanquantile.decompose
def _(self, q, dim, keepdim, interpolation):
    return op.quantile_of(self, q, dim, keepdim, interpolation, True)


@quantile_of_.decompose
def _(self, q, dim, keepdim, interpolation, ignore_nan):
    require("self", self.dtype, "floating")
    check(
        interpolation in ("linear", "lower", "higher", "midpoint", "nearest"),
        f'`interpolation` must be "linear", "lower", "higher", "midpoint" or "nearest"; got "{interpolation}"',
        "ValueError",
    )
    flat = op.reshape(self, [-1]) if dim is None or self.ndim == 0 else self
    at = wrap_dim(
        "dim", dim if dim is not None else 0, self.shape if dim is not None else flat.shape
    )
    check(
        flat.shape[at] > 0,
        f"`self` must have at least 1 element in each row to rank; got shape {self.shape}",
    )
    if is_tensor(q):
        check(q.ndim <= 1, f"`q` must have at most 1 dimension; got shape {q.shape}")
        wanted = to_dtype(op.reshape(q, [-1]), self.dtype)
    else:
        check(
            float(q) >= 0.0 and float(q) <= 1.0,
            f"`q` must be in [0, 1]; got {float(q)}",
            "ValueError",
        )
        wanted = op.full([1], q, dtype=self.dtype, device=self.device)
    if is_tensor(q):
        several = q.ndim == 1
    else:
        several = False
    rows = op.movedim(flat, [at], [flat.ndim - 1])
    ordered, _places = op.sort(rows, -1)
    n = rows.shape[-1]
    # ranks (rows..., q); a row with nan gets its last element, which is nan
    if ignore_nan:
        count = op.sum(op.bitwise_not(op.isnan(ordered)), [-1], True, dtype=self.dtype)
        ranks = op.clamp(wanted * (count - 1), 0, n - 1)
    else:
        ranks = op.clamp(wanted * (n - 1), 0, n - 1)
        nan = op.isnan(op.narrow(ordered, -1, n - 1, 1))
        ranks = op.where(nan, n - 1, ranks)
    size = list(rows.shape)
    size[-1] = wanted.shape[0]
    ranks = op.expand(ranks, size)
    if interpolation == "lower":
        ranks = op.floor(ranks)
    elif interpolation == "higher":
        ranks = op.ceil(ranks)
    elif interpolation == "nearest":
        ranks = op.round(ranks)
    low = op.floor(ranks)
    made = op.gather(ordered, -1, op.cast(low, int64))
    if interpolation == "linear" or interpolation == "midpoint":
        above = op.gather(ordered, -1, op.cast(op.ceil(ranks), int64))
        if interpolation == "midpoint":
            made = op.lerp(made, above, to_dtype(ranks > low, self.dtype) * 0.5)
        else:
            made = op.lerp(made, above, ranks - low)
    # the dimension of q comes first; the reduced dimension is kept or dropped
    made = op.movedim(made, [made.ndim - 1], [0])
    if keepdim:
        if self.ndim == 0 or dim is not None:
            made = op.unsqueeze(made, at + 1) if self.ndim > 0 else made
        else:
            made = op.reshape(made, [made.shape[0]] + [1] * self.ndim)
    if several:
        return made
    return op.select(made, 0, 0)
