"""Elements by rank: the k-th smallest, medians, the most frequent, quantiles."""

from plait_ops import calls as op
from plait_ops.spec import Operator
from plait_ops.words import (
    check,
    int64,
    numel,
    part,
    reduced,
    require,
    result,
    result as made,
    to_dtype,
    wrap_dim,
)

_RAISES = "Raises: IndexError for a `dim` out of range or a dimension without elements, DTypeError for complex numbers."
_KERNEL = "out[1] is int64; `dim` may be negative; a 0-d input counts as one of shape (1,)."


def _ranked(name, arguments, text, example, dtypes="all"):
    operator = Operator(
        f"{name}(Tensor self, {arguments}, bool keepdim|keepdims=False) -> (Tensor values, Tensor indices)",
        doc=f"""
    {text}

    {_RAISES}

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.{name.partition(".")[0]}({example[0]})]
    {example[1]}
    """,
        dtypes=dtypes,
        kernel=_KERNEL,
        variants="function method",
    )
    operator.slices(self="dim", result0="dim", result1="dim")

    @operator.vjp("self")
    def _(g0, self, result1, dim, keepdim):
        if self.ndim == 0:
            return g0
        return op.index_backward(g0, result1, self.shape, dim, keepdim)

    return operator


kthvalue_ = _ranked(
    "kthvalue",
    "int k, int dim|axis=-1",
    "The `k`-th smallest elements along `dim`, counted from 1, and their indices as int64. nan counts as larger than all numbers.",
    ("pc.tensor([5, 1, 3]), 2", "[3, 2]"),
)
kthvalue_.batch("dimensions")


# the forms without `dim` come before the overloads
def _whole(name, text, example):
    return Operator(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text} For an even number of elements it is the lower of the two in the middle. The gradient is divided evenly among
    all elements that equal the median.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([{example}])).item()
    3.0
    """,
        kernel="optional: without a kernel other operators compute it; in[0] has any strides; nan counts as for the form with `dim`; without elements the result is nan.",
        variants="function method",
    )


median = _whole(
    "median",
    "The median of all elements; nan if any element is nan, or if there are none.",
    "5.0, 1.0, 3.0, 4.0",
)
median.batch("code")
nanmedian = _whole(
    "nanmedian",
    "The median of all elements that are not nan; nan if there are none.",
    "5.0, 1.0, 3.0, float('nan')",
)
nanmedian.batch("code")
median_along = _ranked(
    "median.dim",
    "int dim|axis",
    """
    The medians of the elements along `dim`, and their indices as int64. For an even number of elements it is the lower of
    the two in the middle; nan if any element is nan.
    """,
    ("pc.tensor([[5, 1, 3, 4]]), 1", "[[3], [2]]"),
)
median_along.batch("dimensions")
nanmedian_along = _ranked(
    "nanmedian.dim",
    "int dim|axis",
    "The medians of the elements along `dim` that are not nan, and their indices as int64; nan if there are none.",
    ("pc.tensor([[5.0, 1.0, float('nan'), 4.0]]), 1", "[[4.0], [3]]"),
)
nanmedian_along.batch("dimensions")
mode = _ranked(
    "mode",
    "int dim|axis=-1",
    "The most frequent elements along `dim`, and the index of the last occurrence of each, as int64. If several are equally frequent, it is the smallest. Every nan counts as different from all others.",
    ("pc.tensor([2, 1, 2, 3])", "[2, 2]"),
)
mode.batch("dimensions")


@kthvalue_.shape
def _(self, k, dim, keepdim):
    at = wrap_dim("dim", dim, self.shape)
    require("self", self.dtype, "all")
    n = self.shape[at] if self.ndim > 0 else 1
    check(
        n > 0,
        f"`self` must have at least 1 element along dimension {at}; got shape {self.shape}",
        "IndexError",
    )
    check(
        k >= 1 and k <= n,
        f"`k` must be in [1, {n}] for dimension {at} of shape {self.shape}; got {k}. selected number k out of range",
        "IndexError",
    )
    shape = reduced(self.shape, [at], keepdim)
    return result(shape, self.dtype), result(shape, int64)


@median_along.shape
@nanmedian_along.shape
@mode.shape
def _(self, dim, keepdim):
    at = wrap_dim("dim", dim, self.shape)
    require("self", self.dtype, "all")
    check(
        self.ndim == 0 or self.shape[at] > 0,
        f"`self` must have at least 1 element along dimension {at}; got shape {self.shape}",
        "IndexError",
    )
    shape = reduced(self.shape, [at], keepdim)
    return result(shape, self.dtype), result(shape, int64)


@median.shape
@nanmedian.shape
def _(self):
    require("self", self.dtype, "floating" if numel(self.shape) == 0 else "all")
    return made([], self.dtype)


@part
def _elements_at(values, places, at, index, keepdim):
    """The elements of sorted values, and of their places, at `index` along `at`."""
    value = op.gather(values, at, index)
    place = op.gather(places, at, index)
    if keepdim or values.ndim == 0:
        return [value, place]
    return [op.squeeze_dim(value, [at]), op.squeeze_dim(place, [at])]


@kthvalue_.decompose
def _(self, k, dim, keepdim):
    values, places = op.sort(self, dim, False, True)
    if self.ndim == 0:
        return values, places
    at = wrap_dim("dim", dim, self.shape)
    value = op.narrow(values, at, k - 1, 1)
    place = op.narrow(places, at, k - 1, 1)
    if keepdim:
        return op.clone(value), op.clone(place)
    return op.clone(op.squeeze_dim(value, [at])), op.clone(op.squeeze_dim(place, [at]))


@median_along.decompose
def _(self, dim, keepdim):
    values, places = op.sort(self, dim, False, True)
    if self.ndim == 0:
        return values, places
    # nan stands at the end; the first of them is the median
    at = wrap_dim("dim", dim, self.shape)
    n = self.shape[at]
    numbers = op.sum(op.eq(values, values), [at], True)
    middle = op.where(op.lt(numbers, n), numbers, (n - 1) // 2)
    pair = _elements_at(values, places, at, middle, keepdim)
    return pair[0], pair[1]


@nanmedian_along.decompose
def _(self, dim, keepdim):
    values, places = op.sort(self, dim, False, True)
    if self.ndim == 0:
        return values, places
    at = wrap_dim("dim", dim, self.shape)
    numbers = op.sum(op.eq(values, values), [at], True)
    middle = op.floor_divide(op.clamp_min(numbers - 1, 0), 2)
    pair = _elements_at(values, places, at, middle, keepdim)
    return pair[0], pair[1]


@median.decompose
def _(self):
    if numel(self.shape) == 0:
        return op.full([], NAN, dtype=self.dtype, device=self.device)
    values, _places = op.median_dim(op.reshape(self, [-1]), 0)
    return values


@nanmedian.decompose
def _(self):
    if numel(self.shape) == 0:
        return op.full([], NAN, dtype=self.dtype, device=self.device)
    values, _places = op.nanmedian_dim(op.reshape(self, [-1]), 0)
    return values


NAN = float("nan")


@median.vjp("self")
@nanmedian.vjp("self")
def _(g, self, result):
    equal = op.logical_or(op.eq(self, result), op.logical_and(op.isnan(self), op.isnan(result)))
    hits = to_dtype(equal, g.dtype)
    return hits * (g / op.sum(hits))
