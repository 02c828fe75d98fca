"""Sums, means, products and their kin."""

import numpy as np

from plait_ops.calls import exclusive_prod, expand, ne, reshape
from plait_ops.spec import Composite, Reduction
from plait_ops.words import check, conjugate, numel, reduce_dims, reduced, to_dtype, wrap_dim


def _axes(dim):
    return (
        tuple(dim)
        if isinstance(dim, (tuple, list)) and len(dim)
        else None
        if isinstance(dim, (tuple, list))
        else dim
    )


sum_ = Reduction(
    "sum(Tensor self, int[]? dim|axis=None, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
    doc="""
    The sum of the elements along `dim`; of none it is 0.

    >>> import plait_core as pc
    >>> pc.tensor([[1, 2], [3, 4]]).sum(0).tolist()
    [4, 6]
    """,
    result="sum",
    kernel="in[0] has the dtype of the result, or is bool or an integer of any width with a result of int64; `dim` is not wrapped.",
    dtypes="any",
)
mean = Reduction(
    "mean(Tensor self, int[]? dim|axis=None, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
    doc="""
    The sum of the elements along `dim`, divided by their number; of none it is nan.

    >>> import plait_core as pc
    >>> pc.tensor([[1.0, 2.0], [3.0, 4.0]]).mean().item()
    2.5
    """,
    result="float",
    dtypes="inexact",
    kernel="in[0] has the dtype of the result.",
)


@sum_.vjp("self")
def _(g, self, dim, keepdim):
    dims = reduce_dims("dim", dim, self.shape)
    return to_dtype(expand(reshape(g, reduced(self.shape, dims, True)), self.shape), self.dtype)


@mean.vjp("self")
def _(g, self, dim, keepdim):
    dims = reduce_dims("dim", dim, self.shape)
    small = reduced(self.shape, dims, True)
    n = numel(self.shape) / max(numel(small), 1)
    return to_dtype(expand(reshape(g / n, small), self.shape), self.dtype)


@sum_.reference
def _(self, dim=None, keepdim=False, dtype=None):
    made = dtype or ("int64" if self.dtype.kind in "biu" else self.dtype)
    return np.sum(self.astype(made), axis=_axes(dim), keepdims=keepdim, dtype=made)


@mean.reference
def _(self, dim=None, keepdim=False, dtype=None):
    with np.errstate(all="ignore"):
        x = self.astype(dtype or self.dtype)
        axes = _axes(dim)
        n = x.size if axes is None else np.prod([x.shape[a] for a in np.atleast_1d(axes)])
        return (np.sum(x, axis=axes, keepdims=keepdim, dtype=x.dtype) / x.dtype.type(n)).astype(
            x.dtype
        )


@mean.samples
@sum_.samples
def _(s):
    yield s(s.array(7, 300))
    yield s(s.array(300, 7), 0)
    yield s(s.array(2, 3, 4), ())


sum_.error("TypeError", lambda s: s(s.array(2, 3), "a"), contains=["sum", "dim"])

prod = Reduction(
    "prod(Tensor self, *, dtype? dtype=None) -> Tensor",
    doc="""
    The product of all elements; of none it is 1.

    >>> import plait_core as pc
    >>> pc.tensor([1, 2, 3]).prod().item()
    6
    """,
    result="sum",
    kernel="as for `sum`.",
    dtypes="any",
)
prod_dim = Reduction(
    "prod.dim(Tensor self, int dim|axis, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
    doc="""
    The product of the elements along `dim`.

    >>> import plait_core as pc
    >>> pc.tensor([[1, 2], [3, 4]]).prod(1).tolist()
    [2, 12]
    """,
    result="sum",
    kernel="as for `sum`.",
    dtypes="any",
)
prod_backward = Composite(
    "prod_backward(Tensor grad, Tensor self, Tensor result, int dim) -> Tensor",
    doc="The product of the other elements along `dim`, times `grad`: the derivative of `prod`. Exact with zeros.",
    dtypes="floating",
    internal=True,
)


@prod.reference
def _(self, dtype=None):
    made = dtype or ("int64" if self.dtype.kind in "biu" else self.dtype)
    return np.prod(self.astype(made), dtype=made)


@prod_dim.reference
def _(self, dim, keepdim=False, dtype=None):
    made = dtype or ("int64" if self.dtype.kind in "biu" else self.dtype)
    return np.prod(self.astype(made), axis=dim if self.ndim else None, keepdims=keepdim, dtype=made)


@prod.vjp("self")
def _(g, self, result):
    flat = reshape(to_dtype(self, g.dtype), [-1])
    return to_dtype(
        reshape(prod_backward(reshape(g, [1]), flat, reshape(result, [1]), 0), self.shape),
        self.dtype,
    )


@prod_dim.vjp("self")
def _(g, self, result, dim):
    if self.ndim == 0:
        return to_dtype(g, self.dtype)
    small = reduced(self.shape, [wrap_dim("dim", dim, self.shape)], True)
    made = prod_backward(reshape(g, small), to_dtype(self, g.dtype), reshape(result, small), dim)
    return to_dtype(made, self.dtype)


@prod_backward.decompose
def _(grad, self, result, dim):
    # products of all before and of all after: no division, so zeros are no trouble
    small = reduced(self.shape, [wrap_dim("dim", dim, self.shape)], True)
    check(
        grad.shape == small and result.shape == small,
        f"`grad` and `result` must have shape {tuple(small)}; got {grad.shape}",
    )
    others = exclusive_prod(self, dim, False) * exclusive_prod(self, dim, True)
    return grad * conjugate(others)


@prod_backward.reference
def _(grad, self, result, dim):
    return grad * exclusive_prod(self, dim, False) * exclusive_prod(self, dim, True)


prod.error("TypeError", lambda s: s("a"), contains=["prod", "self"])
prod.samples(lambda s: iter([s(s.array(3, 4, low=0.5, high=1.5)), s(s.array(4, dtype="int64"))]))
prod_dim.samples(
    lambda s: iter([s(s.array(3, 4, low=0.5, high=1.5), 1), s(s.array(2, 3, low=0.5), -2, True)])
)
prod_backward.samples(
    lambda s: iter(
        [
            s(s.array(2, 1), s.array(2, 4), s.array(2, 1), 1),
            s(s.array(1, 3), s.array(2, 3), s.array(1, 3), 0),
        ]
    )
)
prod_backward.error(
    "ShapeError",
    lambda s: s(s.array(2), s.array(2, 4), s.array(2), 1),
    contains=["prod_backward", "grad", "(2, 1)", "(2,)"],
)


def _truth(name, text, function, example):
    whole = Reduction(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    Whether {text} not 0.

    >>> import plait_core as pc
    >>> pc.tensor([True, False]).{name}().item()
    {example}
    """,
        result="bool",
        dtypes="any",
        reference=lambda self: np.asarray(function(self)),
    )
    along = Reduction(
        f"{name}.dim(Tensor self, int[]? dim|axis, bool keepdim|keepdims=False) -> Tensor",
        doc=f"""
    Whether {text} not 0, along `dim`.

    >>> import plait_core as pc
    >>> pc.tensor([[True, False]]).{name}(1).tolist()
    [{example}]
    """,
        result="bool",
        dtypes="any",
        reference=lambda self, dim, keepdim=False: np.asarray(
            function(self, axis=_axes(dim), keepdims=keepdim)
        ),
    )
    whole.error("TypeError", lambda s: s("a"), contains=[name, "self"])
    return whole, along


_truth("any", "an element is", np.any, "True")
_truth("all", "all elements are", np.all, "False")


count_nonzero = Composite(
    "count_nonzero(Tensor self, int[]? dim|axis=None, bool keepdim|keepdims=False) -> Tensor",
    doc="""
    How many elements along `dim` are not 0, as int64.

    >>> import plait_core as pc
    >>> pc.count_nonzero(pc.tensor([0, 1, 2])).item()
    2
    """,
)


@count_nonzero.decompose
def _(self, dim, keepdim):
    return sum_(ne(self, 0), dim, keepdim)


count_nonzero.reference(
    lambda self, dim=None, keepdim=False: np.asarray(
        np.count_nonzero(self, axis=_axes(dim), keepdims=keepdim)
    )
)
count_nonzero.samples(
    lambda s: iter(
        [
            s(s.array(3, 4, dtype="bool")),
            s(s.array(3, 4, dtype="int64"), 1),
            s(s.array(3, 4), (0, 1)),
            s(s.array(3, 4, dtype="bool"), 0, True),
        ]
    )
)
count_nonzero.error(
    "IndexError", lambda s: s(s.array(2, 3), 2), contains=["sum", "dim", "(2, 3)", "2"]
)
