"""Creation: fresh tensors, constant ones, ranges."""

import numpy as np

from plait_ops.calls import empty_like, fill_
from plait_ops.spec import Operator, View
from plait_ops.words import (
    check,
    count_of,
    dense_strides,
    dtype_of,
    float32,
    int64,
    is_integral,
    require,
    result,
    result_as,
    sizes,
)

empty = View(
    "empty(int[]* size, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of shape `size` whose elements nobody has set; `dtype` None is float32.

    Raises: ShapeError if `size` holds negative sizes, more than 64 of them, or names 2**63 elements or more.

    >>> import plait_core as pc
    >>> tuple(pc.empty(2, 3).shape)
    (2, 3)
    """,
    fresh=True,
    method=False,
)


@empty.shape
def _(size, dtype):
    sizes("size", size)
    return result(size, dtype if dtype is not None else float32)


@empty.reference
def _(size, dtype=None):
    return np.zeros(size, dtype or "float32")


@empty.samples
def _(s):
    yield s((2, 3))
    yield s(2, 3, dtype="int64")
    yield s(())
    yield s((0, 4), dtype="bool")


empty.error("ShapeError", lambda s: s((2, -1)), contains=["empty", "size", "(2, -1)"])
empty.error("ShapeError", lambda s: s((2**40, 2**40)), contains=["empty", "size", "2**63"])
empty.error("ShapeError", lambda s: s((1,) * 65), contains=["empty", "size", "64", "65"])


empty_like = View(
    "empty_like(Tensor self, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of the shape of `self` whose elements nobody has set, in the order of dimensions that `self` has in memory.
    `dtype` and `device` None are those of `self`.

    >>> import plait_core as pc
    >>> tuple(pc.empty_like(pc.zeros(2, 3)).shape)
    (2, 3)
    """,
    fresh=True,
    method=False,
)


@empty_like.shape
def _(self, dtype):
    return result_as(self.shape, dtype if dtype is not None else self.dtype, dense_strides(self))


@empty_like.reference
def _(self, dtype=None):
    return np.empty_like(self, dtype=dtype)


@empty_like.samples
def _(s):
    yield s(s.array(2, 3))
    yield s(s.array(2, 3, 4).transpose(2, 0, 1), dtype="int32")
    yield s(s.array(0))


full = Operator(
    "full(int[] size, Scalar value|fill_value, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of shape `size` with `value` everywhere; `dtype` None: bool, int64 or float32, as `value` is.

    Raises: ShapeError if `size` holds negative sizes, more than 64 of them, or names 2**63 elements or more.

    >>> import plait_core as pc
    >>> pc.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """,
    dtypes="any",
    kernel="writes in[1] to every element of a dense result.",
)


@full.shape
def _(size, value, dtype):
    sizes("size", size)
    return result(size, dtype if dtype is not None else dtype_of(value))


@full.reference
def _(size, value, dtype=None):
    return np.full(
        size,
        value,
        dtype
        or {"b": "bool", "i": "int64", "f": "float32", "c": "complex64"}[
            np.asarray(value).dtype.kind
        ],
    )


@full.samples
def _(s):
    yield s((2, 3), 1.5)
    yield s((4,), 7)
    yield s((), True)
    yield s((0, 2), 1)
    yield s((2,), 3, dtype="float64")
    yield s((3,), 1, dtype="uint8")


full.error("ShapeError", lambda s: s((2, -1), 0), contains=["full", "size", "(2, -1)"])
full.error("ShapeError", lambda s: s((2**62, 4), 0), contains=["full", "size", "2**63"])
full.error("ShapeError", lambda s: s((1,) * 65, 0), contains=["full", "size", "64", "65"])
full.error("TypeError", lambda s: s((2,), "x"), contains=["full", "value"])


full_like = Operator(
    "full_like(Tensor self, Scalar value|fill_value, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of the shape of `self` with `value` everywhere. `dtype` and `device` None are those of `self`.

    >>> import plait_core as pc
    >>> pc.full_like(pc.zeros(2), 7.0).tolist()
    [7.0, 7.0]
    """,
    dtypes="any",
    kernel="writes in[1] to every element; the result may be dense in another order of dimensions.",
    method=False,
)


@full_like.shape
def _(self, dtype):
    return result_as(self.shape, dtype if dtype is not None else self.dtype, dense_strides(self))


@full_like.decompose
def _(self, value, dtype, device):
    return fill_(empty_like(self, dtype=dtype, device=device), value)


@full_like.reference
def _(self, value, dtype=None):
    return np.full_like(self, value, dtype=dtype)


@full_like.samples
def _(s):
    yield s(s.array(2, 3), 1.5)
    yield s(s.strided(2, 3), 4, dtype="int64")
    yield s(s.array(dtype="int32"), 2)


zeros = Operator(
    "zeros(int[]* size, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of shape `size` full of 0; `dtype` None is float32.

    Raises: ShapeError if `size` holds negative sizes, more than 64 of them, or names 2**63 elements or more.

    >>> import plait_core as pc
    >>> pc.zeros(2, 2).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """,
    dtypes="any",
    method=False,
)
ones = Operator(
    "ones(int[]* size, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of shape `size` full of 1; `dtype` None is float32.

    Raises: ShapeError if `size` holds negative sizes, more than 64 of them, or names 2**63 elements or more.

    >>> import plait_core as pc
    >>> pc.ones(2, dtype="int64").tolist()
    [1, 1]
    """,
    dtypes="any",
    method=False,
)


@zeros.shape
@ones.shape
def _(size, dtype):
    sizes("size", size)
    return result(size, dtype if dtype is not None else float32)


@zeros.decompose
def _(size, dtype, device):
    return full(size, 0, dtype=dtype if dtype is not None else float32, device=device)


@ones.decompose
def _(size, dtype, device):
    return full(size, 1, dtype=dtype if dtype is not None else float32, device=device)


zeros_like = Operator(
    "zeros_like(Tensor self, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of the shape of `self` full of 0. `dtype` and `device` None are those of `self`.

    >>> import plait_core as pc
    >>> pc.zeros_like(pc.ones(2)).tolist()
    [0.0, 0.0]
    """,
    dtypes="any",
    method=False,
)
ones_like = Operator(
    "ones_like(Tensor self, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of the shape of `self` full of 1. `dtype` and `device` None are those of `self`.

    >>> import plait_core as pc
    >>> pc.ones_like(pc.zeros(2)).tolist()
    [1.0, 1.0]
    """,
    dtypes="any",
    method=False,
)


@zeros_like.shape
@ones_like.shape
def _(self, dtype):
    return result_as(self.shape, dtype if dtype is not None else self.dtype, dense_strides(self))


@zeros_like.decompose
def _(self, dtype, device):
    return full_like(self, 0, dtype=dtype, device=device)


@ones_like.decompose
def _(self, dtype, device):
    return full_like(self, 1, dtype=dtype, device=device)


zeros.reference(lambda size, dtype=None: np.zeros(size, dtype or "float32"))
ones.reference(lambda size, dtype=None: np.ones(size, dtype or "float32"))
zeros_like.reference(lambda self, dtype=None: np.zeros_like(self, dtype=dtype))
ones_like.reference(lambda self, dtype=None: np.ones_like(self, dtype=dtype))


@zeros.samples
@ones.samples
def _(s):
    yield s((2, 3))
    yield s(2, 3, dtype="int64")
    yield s(())
    yield s((0, 4), dtype="bool")


@zeros_like.samples
@ones_like.samples
def _(s):
    yield s(s.array(2, 3))
    yield s(s.array(2, 3, 4).transpose(2, 0, 1), dtype="int32")
    yield s(s.backwards(3))


for each in (zeros, ones):
    each.error("ShapeError", lambda s: s((2, -1)), contains=[each.name, "size", "(2, -1)"])
    each.error("ShapeError", lambda s: s((2**40, 2**40)), contains=[each.name, "size", "2**63"])
    each.error("ShapeError", lambda s: s((1,) * 65), contains=[each.name, "size", "64", "65"])
for each in (zeros_like, ones_like, empty_like):
    each.error("TypeError", lambda s: s("x"), contains=[each.name, "self"])
full_like.error("TypeError", lambda s: s(s.array(2), "x"), contains=["full_like", "value"])


arange = Operator(
    "arange(Scalar end, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    The numbers ``0, 1, ...`` that come before `end`. `dtype` None: int64, or float32 if `end` is a float.

    Raises: ValueError if `end` is negative or not finite.

    >>> import plait_core as pc
    >>> pc.arange(3).tolist()
    [0, 1, 2]
    """,
    method=False,
)
arange_start = Operator(
    "arange.start(Scalar start, Scalar end, Scalar step=1, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    The numbers ``start, start + step, ...`` that come before `end`: ``ceil((end - start) / step)`` of them.
    `dtype` None: int64, or float32 if one of the three is a float.

    Raises: ValueError if `step` is 0 or leads away from `end`, or if a bound is not finite.

    >>> import plait_core as pc
    >>> pc.arange(1, 7, 2).tolist()
    [1, 3, 5]
    """,
    kernel="out[i] = start + i * step, computed in int64 for integer results, else in float64, then cast.",
    method=False,
)


@arange_start.shape
def _(start, end, step, dtype):
    number = (
        int64
        if is_integral(dtype_of(start))
        and is_integral(dtype_of(end))
        and is_integral(dtype_of(step))
        else float32
    )
    made = dtype if dtype is not None else number
    require("dtype", made, "all")
    n = count_of(start, end, step)
    return result([n], made)


@arange.shape
def _(end, dtype):
    made = dtype if dtype is not None else (int64 if is_integral(dtype_of(end)) else float32)
    require("dtype", made, "all")
    n = count_of(0, end, 1)
    return result([n], made)


@arange.decompose
def _(end, dtype, device):
    return arange_start(0, end, 1, dtype=dtype, device=device)


def _arange(start, end, step, dtype):
    kinds = {np.asarray(value).dtype.kind for value in (start, end, step)}
    return np.arange(start, end, step).astype(dtype or ("float32" if "f" in kinds else "int64"))


arange_start.reference(lambda start, end, step, dtype=None: _arange(start, end, step, dtype))
arange.reference(lambda end, dtype=None: _arange(0, end, 1, dtype))


@arange.samples
def _(s):
    yield s(5)
    yield s(0)
    yield s(2.5)
    yield s(4, dtype="float64")
    yield s(3, dtype="uint8")


@arange_start.samples
def _(s):
    yield s(2, 7)
    yield s(7, 2, -2)
    yield s(0, 1, 0.25)
    yield s(1, 1)
    yield s(-3, 3, 2, dtype="int16")


arange.error("ValueError", lambda s: s(-1), contains=["arange", "end", "-1"])
arange.error("ValueError", lambda s: s(float("nan")), contains=["arange", "end", "nan"])
arange_start.error("ValueError", lambda s: s(0, 3, 0), contains=["arange", "step", "0"])
arange_start.error("ValueError", lambda s: s(0, 3, -1), contains=["arange", "step", "-1"])
arange_start.error(
    "ValueError", lambda s: s(0.0, float("inf"), 1), contains=["arange", "end", "inf"]
)


linspace = Operator(
    "linspace(Scalar start, Scalar end, int steps, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    `steps` numbers from `start` to `end`, both included, equally far apart; `dtype` None is float32.

    Raises: ValueError if `steps` is negative.

    >>> import plait_core as pc
    >>> pc.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """,
    kernel="in float64: out[i] = start + i * (end - start) / (steps - 1) below the middle, counted from `end` above it.",
    method=False,
)


@linspace.shape
def _(steps, dtype):
    check(steps >= 0, f"`steps` must not be negative; got {steps}", "ValueError")
    made = dtype if dtype is not None else float32
    require("dtype", made, "numeric")
    return result([steps], made)


linspace.reference(
    lambda start, end, steps, dtype=None: np.linspace(start, end, steps).astype(dtype or "float32")
)


@linspace.samples
def _(s):
    yield s(0, 1, 5)
    yield s(3.0, -1.5, 7, dtype="float64")
    yield s(2, 5, 1)
    yield s(2, 5, 0)
    yield s(0, 10, 3, dtype="int64")


linspace.error("ValueError", lambda s: s(0, 1, -2), contains=["linspace", "steps", "-2"])


eye = Operator(
    "eye(int n, int? m=None, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A matrix of shape ``(n, m)`` with 1 on the diagonal and 0 elsewhere; `m` None is `n`, `dtype` None is float32.

    Raises: ShapeError if `n` or `m` is negative.

    >>> import plait_core as pc
    >>> pc.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """,
    dtypes="any",
    method=False,
)


@eye.shape
def _(n, m, dtype):
    columns = m if m is not None else n
    check(n >= 0 and columns >= 0, f"`n` and `m` must not be negative; got {n} and {columns}")
    sizes("n", [n, columns])
    return result([n, columns], dtype if dtype is not None else float32)


eye.reference(lambda n, m=None, dtype=None: np.eye(n, m, dtype=dtype or "float32"))


@eye.samples
def _(s):
    yield s(3)
    yield s(2, 4, dtype="int64")
    yield s(3, 1, dtype="bool")
    yield s(0)


eye.error("ShapeError", lambda s: s(-1), contains=["eye", "n", "-1"])
eye.error("ShapeError", lambda s: s(2**40, 2**40), contains=["eye", "2**63"])
