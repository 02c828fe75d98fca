"""The largest and smallest elements, and where they are."""

import numpy as np

from plait_ops.calls import (
    eq,
    gather,
    maximum,
    minimum,
    reshape,
    scatter,
    squeeze_dim,
    sum,
    unsqueeze,
    zeros,
)
from plait_ops.spec import Composite, Operator, Reduction
from plait_ops.words import (
    check,
    int64,
    numel,
    reduce_dims,
    reduced,
    require,
    result,
    sizes,
    to_dtype,
    wrap_dim,
)
from plait_ops.words import result as made


def _axes(dim):
    return tuple(dim) if len(dim) else None


def _whole(name, what, reference):
    return Reduction(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    The {what} of all elements; nan if one is nan.

    >>> import plait_core as pc
    >>> pc.tensor([1, 3, 2]).{name}().item()
    {reference([1, 3, 2])}
    """,
        identity=False,
        reference=lambda self: reference(self),
    )


max_ = _whole("max", "largest", np.max)
min_ = _whole("min", "smallest", np.min)


def _along(name, what, reference, arg):
    operator = Operator(
        f"{name}.dim(Tensor self, int dim|axis, bool keepdim|keepdims=False) -> (Tensor, Tensor)",
        doc=f"""
    The {what} elements along `dim`, and their indices as int64; of equal ones the first, and nan wins.

    Raises: IndexError for a `dim` out of range, ShapeError for a dimension without elements.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.tensor([[1, 3], [4, 2]]).{name}(1)]
    {[reference([[1, 3], [4, 2]], axis=1).tolist(), arg([[1, 3], [4, 2]], axis=1).tolist()]}
    """,
        kernel="out[1] is int64; `dim` is not wrapped; a 0-d input counts as one of shape (1,).",
        out=True,
    )

    @operator.shape
    def _(self, dim, keepdim):
        at = wrap_dim("dim", dim, self.shape)
        require("self", self.dtype, "all")
        check(
            self.ndim == 0 or self.shape[at] > 0,
            f"`self` of shape {self.shape} has no elements along dimension {at}, and an empty reduction has no value",
        )
        shape = reduced(self.shape, [at], keepdim)
        return result(shape, self.dtype), result(shape, int64)

    @operator.vjp("self")
    def _(g0, self, result1, dim, keepdim):
        if self.ndim == 0:
            return g0
        return index_backward(g0, result1, self.shape, dim, keepdim)

    @operator.reference
    def _(self, dim, keepdim=False):
        if self.ndim == 0:
            return self, np.zeros((), "int64")
        return reference(self, axis=dim, keepdims=keepdim), arg(self, axis=dim, keepdims=keepdim)

    @operator.samples
    def _(s):
        yield s(s.distinct(3, 4), 1)
        yield s(s.distinct(3, 4), 0, True)
        yield s(s.array(4, 5, 6, dtype="int64"), -2)
        yield s(s.distinct(6, 4)[::2, ::-1].T, 0)
        yield s(s.array(3, 4, dtype="uint8"), 1)
        yield s(s.array(3, 4, dtype="bool"), 0)
        yield s(s.array(), 0)
        yield s(s.array(2, 0, 3)[:, :, :], 2)
        yield s(np.array([[1, np.nan, 3], [2, 2, 1]], "float32"), 1).without_gradient()

    operator.error(
        "IndexError", lambda s: s(s.array(2, 3), 2), contains=[name, "dim", "(2, 3)", "2"]
    )
    operator.error("ShapeError", lambda s: s(s.array(2, 0), 1), contains=[name, "self", "(2, 0)"])
    operator.error(
        "DTypeError",
        lambda s: s(s.array(2, dtype="complex64"), 0),
        contains=[name, "self", "complex64"],
    )
    return operator


index_backward = Operator(
    "index_backward(Tensor grad, Tensor index, int[] size, int dim, bool keepdim) -> Tensor",
    doc="Zeros of shape `size` with `grad` at `index` along `dim`: the derivative of `max.dim` and its kin.",
    dtypes="floating",
    internal=True,
)


@index_backward.shape
def _(grad, index, size, dim, keepdim):
    sizes("size", size)
    at = wrap_dim("dim", dim, size)
    want = reduced(size, [at], keepdim)
    if keepdim and index.ndim == len(size):
        want[at] = index.shape[at]
    check(
        grad.shape == want and index.shape == want,
        f"`grad` and `index` must have shape {tuple(want)}; got {grad.shape} and {index.shape}",
    )
    require("index", index.dtype, "integer")
    return result(size, grad.dtype)


@index_backward.decompose
def _(grad, index, size, dim, keepdim):
    made = zeros(size, dtype=grad.dtype, device=grad.device)
    if keepdim:
        return scatter(made, dim, index, grad)
    at = wrap_dim("dim", dim, size)
    return scatter(made, at, unsqueeze(index, at), unsqueeze(grad, at))


@index_backward.vjp("grad")
def _(g, index, size, dim, keepdim):
    if keepdim:
        return gather(g, dim, index)
    at = wrap_dim("dim", dim, size)
    return squeeze_dim(gather(g, at, unsqueeze(index, at)), [at])


@index_backward.reference
def _(grad, index, size, dim, keepdim):
    made = np.zeros(size, grad.dtype)
    at = dim % len(size)
    if not keepdim:
        index, grad = np.expand_dims(index, at), np.expand_dims(grad, at)
    np.put_along_axis(made, index, grad, at)
    return made


index_backward.samples(
    lambda s: iter(
        [
            s(s.array(3), s.indices(4, 3), (3, 4), 1, False),
            s(s.array(1, 4), s.indices(3, 1, 4), (3, 4), 0, True),
        ]
    )
)
index_backward.error(
    "ShapeError",
    lambda s: s(s.array(2), s.indices(4, 3), (3, 4), 1, False),
    contains=["index_backward", "grad", "(3,)", "(2,)"],
)


# these stand before the others: a 0-d tensor of integers is one number of `dim`, too
def _other(name, what, base, calls):
    operator = Composite(
        f"{name}.other(Tensor self, Tensor other) -> Tensor",
        doc=f"""
    The {what} of each pair: `{base}`.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1, 5]), pc.tensor([3, 4])).tolist()
    {calls([1, 5], [3, 4]).tolist()}
    """,
    )
    operator.reference(lambda self, other: calls(self, other))
    operator.samples(
        lambda s: iter(
            [s(s.array(2, 3), s.array(3)), s(s.array(3, dtype="int64"), s.array(3, dtype="int64"))]
        )
    )
    operator.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), s.array(4)),
        contains=["broadcast", "(2, 3)", "(4,)"],
    )
    return operator


max_other = _other("max", "larger", "maximum", np.maximum)
min_other = _other("min", "smaller", "minimum", np.minimum)


@max_other.decompose
def _(self, other):
    return maximum(self, other)


@min_other.decompose
def _(self, other):
    return minimum(self, other)


max_dim = _along("max", "largest", np.max, np.argmax)
min_dim = _along("min", "smallest", np.min, np.argmin)


def _extreme(name, what, reference):
    operator = Reduction(
        f"{name}(Tensor self, int[] dim|axis=(), bool keepdim|keepdims=False) -> Tensor",
        doc=f"""
    The {what} element along `dim`; nan if one is nan. Among equal ones the gradient is divided evenly.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([[1, 3], [4, 2]]), 0).tolist()
    {reference([[1, 3], [4, 2]], axis=0).tolist()}
    """,
        identity=False,
        reference=lambda self, dim=(), keepdim=False: reference(
            self, axis=_axes(dim), keepdims=keepdim
        ),
    )

    @operator.vjp("self")
    def _(g, self, result, dim, keepdim):
        small = reduced(self.shape, reduce_dims("dim", dim, self.shape), True)
        return extreme_backward(reshape(g, small), self, reshape(result, small))

    return operator


amax = _extreme("amax", "largest", np.max)
amin = _extreme("amin", "smallest", np.min)

extreme_backward = Operator(
    "extreme_backward(Tensor grad, Tensor self, Tensor result) -> Tensor",
    doc="`grad` divided evenly among the elements of `self` that equal `result`, both with reduced dimensions kept.",
    dtypes="floating",
    internal=True,
)


@extreme_backward.shape
def _(grad, self, result):
    check(
        grad.shape == result.shape,
        f"`grad` {grad.shape} and `result` {result.shape} must have one shape",
    )
    check(
        result.ndim == self.ndim,
        f"`result` {result.shape} must have the dimensions of `self` {self.shape}, reduced ones kept",
    )
    return made(self.shape, grad.dtype)


@extreme_backward.decompose
def _(grad, self, result):
    hits = to_dtype(eq(self, result), grad.dtype)
    dims = [i for i in range(self.ndim) if result.shape[i] == 1]
    return hits * (grad / sum(hits, dims, True)) if len(dims) > 0 else hits * grad


@extreme_backward.vjp("grad")
def _(g, self, result):
    hits = to_dtype(eq(self, result), g.dtype)
    dims = [i for i in range(self.ndim) if result.shape[i] == 1]
    return sum(g * hits, dims, True) / sum(hits, dims, True) if len(dims) > 0 else g * hits


# which elements are the extreme ones does not change with a small step
extreme_backward.constant("self", "result")


@extreme_backward.reference
def _(grad, self, result):
    hits = (self == result).astype(grad.dtype)
    dims = tuple(i for i in range(self.ndim) if result.shape[i] == 1)
    return hits * (grad / hits.sum(dims, keepdims=True)) if dims else hits * grad


extreme_backward.samples(
    lambda s: iter(
        [
            s(
                s.array(2, 1),
                np.array([[1, 3, 3], [4, 4, 4]], "float32"),
                np.array([[3], [4]], "float32"),
            )
        ]
    )
)
extreme_backward.error(
    "ShapeError",
    lambda s: s(s.array(2), s.array(2, 3), s.array(2, 1)),
    contains=["grad", "(2,)", "(2, 1)"],
)


@max_.vjp("self")
@min_.vjp("self")
def _(g, self, result):
    small = [1] * self.ndim
    return extreme_backward(reshape(g, small), self, reshape(result, small))


def _arg(name, what, reference):
    operator = Operator(
        f"{name}(Tensor self, int? dim|axis=None, bool keepdim|keepdims=False) -> Tensor",
        doc=f"""
    The index of the {what} element along `dim` as int64, the first of equal ones, nan before all; `dim` None: into the
    flattened tensor.

    Raises: IndexError for a `dim` out of range, ShapeError for an empty reduction.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1, 3, 2])).item()
    {reference([1, 3, 2])}
    """,
        out=True,
        kernel="in[1] is an int (not wrapped) or None; the result is int64; a 0-d input counts as one of shape (1,).",
    )

    @operator.shape
    def _(self, dim, keepdim):
        require("self", self.dtype, "all")
        dims = (
            [wrap_dim("dim", dim, self.shape)] if dim is not None else [i for i in range(self.ndim)]
        )
        for d in dims:
            check(
                self.ndim == 0 or self.shape[d] > 0,
                f"`self` of shape {self.shape} has no elements along dimension {d}, and an empty reduction has no value",
            )
        return result(reduced(self.shape, dims, keepdim), int64)

    operator.reference(
        lambda self, dim=None, keepdim=False: np.asarray(
            reference(self, axis=dim if self.ndim else None, keepdims=keepdim and self.ndim > 0)
        )
    )

    @operator.samples
    def _(s):
        yield s(s.array(3, 4))
        yield s(s.array(3, 4), 1)
        yield s(s.array(3, 4), 0, True)
        yield s(s.array(3, 4), keepdim=True)
        yield s(s.array(4, 300, dtype="int64"), -1)
        yield s(s.strided(3, 4), -1)
        yield s(s.array(5, dtype="bool"))
        yield s(s.array(), 0)
        yield s(np.array([1, np.nan, np.nan, 3], "float32"))

    operator.error(
        "IndexError", lambda s: s(s.array(2, 3), 2), contains=[name, "dim", "(2, 3)", "2"]
    )
    operator.error("ShapeError", lambda s: s(s.array(0, 3)), contains=[name, "self", "(0, 3)"])
    operator.error(
        "DTypeError",
        lambda s: s(s.array(2, dtype="complex64")),
        contains=[name, "self", "complex64"],
    )
    return operator


_arg("argmax", "largest", np.argmax)
_arg("argmin", "smallest", np.argmin)

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
