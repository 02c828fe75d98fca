"""Test data of reduction/reductions: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops import calls as op
from plait_ops.specs.reduction.reductions import (
    all_,
    all_dim,
    any_,
    any_dim,
    count_nonzero,
    mean,
    prod,
    prod_backward,
    prod_dim,
    sum_,
)


def _axes(dim):
    return (
        tuple(dim)
        if isinstance(dim, (tuple, list)) and len(dim)
        else None
        if isinstance(dim, (tuple, list))
        else dim
    )


@sum_.reference
def _(self, dim=None, keepdim=False, dtype=None):
    result = dtype or ("int64" if self.dtype.kind in "biu" else self.dtype)
    return np.sum(self.astype(result), axis=_axes(dim), keepdims=keepdim, dtype=result)


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


@prod.reference
def _(self, dtype=None):
    result = dtype or ("int64" if self.dtype.kind in "biu" else self.dtype)
    return np.prod(self.astype(result), dtype=result)


@prod_dim.reference
def _(self, dim, keepdim=False, dtype=None):
    result = dtype or ("int64" if self.dtype.kind in "biu" else self.dtype)
    return np.prod(
        self.astype(result), axis=dim if self.ndim else None, keepdims=keepdim, dtype=result
    )


@prod_backward.reference
def _(grad, self, result, dim):
    return grad * op.exclusive_prod(self, dim, False) * op.exclusive_prod(self, dim, True)


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


def _truth(whole, along, function):
    name = whole.schema.base
    whole.reference(lambda self: np.asarray(function(self)))
    along.reference(
        lambda self, dim, keepdim=False: np.asarray(
            function(self, axis=tuple(dim) if isinstance(dim, list) else dim, keepdims=keepdim)
        )
    )
    whole.error("TypeError", lambda s: s("a"), contains=[name, "self"])


_truth(any_, any_dim, np.any)
_truth(all_, all_dim, np.all)


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
    "IndexError", lambda s: s(s.array(2, 3), 2), contains=["count_nonzero", "dim", "(2, 3)", "2"]
)
