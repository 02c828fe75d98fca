"""The largest and smallest elements, and where they are."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator, Reduction
from plait_ops.words import (
    check,
    int64,
    numel,
    reduce_dims,
    reduced,
    require,
    result,
    result as made,
    sizes,
    to_dtype,
    wrap_dim,
)


def _whole(name, what, example):
    return Reduction(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    The {what} of all elements; nan if any element is nan.

    >>> import plait_core as pc
    >>> pc.tensor([1, 3, 2]).{name}().item()
    {example}
    """,
        kernel="in[0] has the dtype of the result, any strides, and at least one element; nan wins.",
        identity=False,
        variants="function method",
    )


max_ = _whole("max", "largest", 3)
min_ = _whole("min", "smallest", 1)
max_.shard("max")
min_.shard("min")


def _along(name, what, example):
    operator = Operator(
        f"{name}.dim(Tensor self, int dim|axis, bool keepdim|keepdims=False) -> (Tensor values, Tensor indices)",
        doc=f"""
    The {what} elements along `dim`, and their indices as int64. Of equal elements the first counts; a nan counts before all
    numbers.

    Raises: IndexError for a `dim` out of range or a dimension without elements.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.tensor([[1, 3], [4, 2]]).{name}(1)]
    {example}
    """,
        kernel="out[1] is int64; `dim` may be negative; a 0-d input counts as one of shape (1,).",
        variants="function method",
    )

    @operator.shape
    def _(self, dim, keepdim):
        at = wrap_dim("dim", dim, self.shape)
        require("self", self.dtype, "all")
        check(
            self.ndim == 0 or self.shape[at] > 0,
            f"`self` of shape {self.shape} has no elements along dimension {at}, and an empty reduction has no value",
            "IndexError",
        )
        shape = reduced(self.shape, [at], keepdim)
        return result(shape, self.dtype), result(shape, int64)

    @operator.cost
    def _(self):
        return numel(self)

    @operator.vjp("self")
    def _(g0, self, result1, dim, keepdim):
        if self.ndim == 0:
            return g0
        return index_backward(g0, result1, self.shape, dim, keepdim)

    return operator


index_backward = Operator(
    "index_backward(Tensor grad, Tensor index, int[] size, int dim, bool keepdim) -> Tensor",
    doc="Zeros of shape `size` with `grad` at `index` along `dim`: the derivative of `max.dim` and similar operators.",
    kernel="optional: without a kernel other operators compute it; in[1] holds one index along in[3] for each element of in[0], as `max.dim` gives them; in[3] may be negative; every element of the result is written, zeros included.",
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
    made = op.zeros(size, dtype=grad.dtype, device=grad.device)
    if keepdim:
        return op.scatter(made, dim, index, grad)
    at = wrap_dim("dim", dim, size)
    return op.scatter(made, at, op.unsqueeze(index, at), op.unsqueeze(grad, at))


@index_backward.vjp("grad")
def _(g, index, size, dim, keepdim):
    if keepdim:
        return op.gather(g, dim, index)
    at = wrap_dim("dim", dim, size)
    return op.squeeze_dim(op.gather(g, at, op.unsqueeze(index, at)), [at])


# these overloads come before the others, as a 0-d tensor of integers is also accepted as `dim`
def _other(name, what, base, example):
    operator = Composite(
        f"{name}.other(Tensor self, Tensor other) -> Tensor",
        doc=f"""
    The {what} element of each pair: `{base}`.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1, 5]), pc.tensor([3, 4])).tolist()
    {example}
    """,
        variants="function method",
    )
    return operator


max_other = _other("max", "larger", "maximum", "[3, 5]")
min_other = _other("min", "smaller", "minimum", "[1, 4]")


@max_other.decompose
def _(self, other):
    return op.maximum(self, other)


@min_other.decompose
def _(self, other):
    return op.minimum(self, other)


max_dim = _along("max", "largest", "[[3, 4], [1, 0]]")
max_dim.batch("dimensions")
min_dim = _along("min", "smallest", "[[1, 2], [0, 1]]")
min_dim.batch("dimensions")


def _extreme(name, what, example):
    operator = Reduction(
        f"{name}(Tensor self, int[]? dim|axis=(), bool keepdim|keepdims=False) -> Tensor",
        doc=f"""
    The {what} element along `dim`; nan if any element is nan. The gradient is divided evenly among several {what} elements.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([[1, 3], [4, 2]]), 0).tolist()
    {example}
    """,
        kernel="as for `max`, along the dimensions in[1], which may be negative; None or empty: along all; no reduced dimension is empty.",
        identity=False,
        variants="function method",
    )

    @operator.vjp("self")
    def _(g, self, result, dim, keepdim):
        small = reduced(self.shape, reduce_dims("dim", dim, self.shape), True)
        return extreme_backward(op.reshape(g, small), self, op.reshape(result, small))

    return operator


amax = _extreme("amax", "largest", "[4, 3]")
amax.shard("max", dims=["dim"])
amin = _extreme("amin", "smallest", "[1, 2]")
amin.shard("min", dims=["dim"])

extreme_backward = Operator(
    "extreme_backward(Tensor grad, Tensor self, Tensor result) -> Tensor",
    doc="`grad` divided evenly among the elements of `self` that equal `result`. `grad` and `result` keep the reduced dimensions with size 1.",
    kernel="optional: without a kernel other operators compute it; in[2] has the dimensions of in[1], reduced ones of size 1; equal elements share the gradient; the result is in C order.",
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
    hits = to_dtype(op.eq(self, result), grad.dtype)
    dims = [i for i in range(self.ndim) if result.shape[i] == 1]
    return hits * (grad / op.sum(hits, dims, True)) if len(dims) > 0 else hits * grad


@extreme_backward.vjp("grad")
def _(g, self, result):
    hits = to_dtype(op.eq(self, result), g.dtype)
    dims = [i for i in range(self.ndim) if result.shape[i] == 1]
    return op.sum(g * hits, dims, True) / op.sum(hits, dims, True) if len(dims) > 0 else g * hits


# a small step does not change which elements are the extreme ones
extreme_backward.constant("self", "result")


@max_.vjp("self")
@min_.vjp("self")
def _(g, self, result):
    small = [1] * self.ndim
    return extreme_backward(op.reshape(g, small), self, op.reshape(result, small))


@max_.decompose
def _(self):
    return amax(self)


@min_.decompose
def _(self):
    return amin(self)


@max_dim.decompose
def _(self, dim, keepdim):
    return amax(self, [dim], keepdim), op.argmax(self, dim, keepdim)


@min_dim.decompose
def _(self, dim, keepdim):
    return amin(self, [dim], keepdim), op.argmin(self, dim, keepdim)


def _arg(name, what, example):
    operator = Operator(
        f"{name}(Tensor self, int? dim|axis=None, bool keepdim|keepdims=False) -> Tensor",
        doc=f"""
    The index of the {what} element along `dim`, as int64. Of equal elements the first counts; a nan counts before all
    numbers. With `dim` None it is an index into the flattened tensor.

    Raises: IndexError for a `dim` out of range, or if there are no elements to reduce.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1, 3, 2])).item()
    {example}
    """,
        kernel="in[1] is an int, which may be negative, or None; the result is int64; a 0-d input counts as one of shape (1,).",
        variants="function method",
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
                "IndexError",
            )
        return result(reduced(self.shape, dims, keepdim), int64)

    @operator.cost
    def _(self):
        return numel(self)

    return operator


argmax = _arg("argmax", "largest", 1)
argmax.batch("reduction")
argmin = _arg("argmin", "smallest", 0)
argmin.batch("reduction")

aminmax = Composite(
    "aminmax(Tensor self, *, int? dim|axis=None, bool keepdim|keepdims=False) -> (Tensor min, Tensor max)",
    doc="""
    The smallest and the largest elements along `dim` (None: of all elements), as `amin` and `amax` return them.

    Raises: IndexError for a `dim` out of range, or if there are no elements to reduce, DTypeError for complex
    numbers.

    >>> import plait_core as pc
    >>> [x.item() for x in pc.aminmax(pc.tensor([3, 1, 2]))]
    [1, 3]
    """,
    variants="function method",
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
        "IndexError",
    )
    if keepdim:
        shape = [1] * self.ndim
        return op.reshape(amin(self), shape), op.reshape(amax(self), shape)
    return amin(self), amax(self)
