"""Test data of reduction/variance: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.reduction.variance import (
    std,
    std_backward,
    std_flag,
    std_mean_,
    std_mean_flag,
    std_mean_unbiased,
    std_unbiased,
    var,
    var_backward,
    var_flag,
    var_mean,
    var_mean_flag,
    var_mean_unbiased,
    var_unbiased,
)


def _axes(dim):
    if dim is None or (isinstance(dim, (tuple, list)) and not len(dim)):
        return None
    return tuple(dim) if isinstance(dim, (tuple, list)) else dim


def _real(x):
    return np.zeros(0, x.dtype).real.dtype


def _mean(x, dim, keepdim):
    """Return the mean in float64 or complex128; nan of no elements, without a warning."""
    with np.errstate(all="ignore"):
        wide = "complex128" if x.dtype.kind == "c" else "float64"
        total = np.sum(x, axis=_axes(dim), keepdims=keepdim, dtype=wide)
        return np.asarray(total / np.float64(x.size / max(np.size(total), 1)))


def _variance(x, dim, correction, keepdim):
    with np.errstate(all="ignore"):
        centre = _mean(x, dim, True)
        squares = (np.abs(x - centre) ** 2).sum(axis=_axes(dim), keepdims=keepdim)
        n = x.size / max(centre.size, 1)
        left = np.float64(max(n - (1 if correction is None else correction), 0))
        return np.asarray(squares / left).astype(_real(x))


@var.reference
def _(self, dim=None, correction=1, keepdim=False):
    return _variance(self, dim, correction, keepdim)


@std.reference
def _(self, dim=None, correction=1, keepdim=False):
    wide = self.astype("complex128" if self.dtype.kind == "c" else "float64")
    return np.asarray(np.sqrt(_variance(wide, dim, correction, keepdim))).astype(_real(self))


@var_mean.reference
def _(self, dim=None, correction=1, keepdim=False):
    return _variance(self, dim, correction, keepdim), _mean(self, dim, keepdim).astype(self.dtype)


@var_backward.reference
def _(grad, self, dim, correction):
    centred = self - self.mean(axis=_axes(dim), keepdims=True)
    n = self.size / max(self.mean(axis=_axes(dim), keepdims=True).size, 1)
    g = grad if grad.ndim == self.ndim or dim is None else np.expand_dims(grad, _axes(dim) or ())
    with np.errstate(all="ignore"):
        return (
            g
            * 2
            * centred
            / np.float64(max(n - (1 if correction is None else correction), 0)).astype(self.dtype)
        )


@std_backward.reference
def _(grad, self, std, dim, correction):
    with np.errstate(all="ignore"):
        slope = np.where(std == 0, np.zeros_like(std), grad / (2 * std))
    return var_backward(slope.astype(self.dtype), self, dim, correction)


@std_backward.samples
def _(s):
    yield s(s.array(3), s.array(3, 4), s.array(3, low=0.5, high=2.0), (1,), 1)
    yield s(s.array(), s.array(5), s.array(low=0.5, high=2.0), None, 0)


std_backward.error(
    "ShapeError",
    lambda s: s(s.array(2), s.array(3, 4), s.array(2), (1,), 1),
    contains=["shape", "(3, 1)", "(2,)"],
)


@var.samples
@std.samples
@var_mean.samples
def _(s):
    yield s(s.array(3, 5))
    yield s(s.array(3, 5), 1, correction=0)
    yield s(s.array(3, 5), (-1,), correction=2, keepdim=True)
    yield s(s.array(3, 5, dtype="float64"), None, correction=0.5)
    yield s(s.array(3, 5), (0, 1), correction=None)
    yield s(s.array(3, 4), 1, correction=4).without_gradient()
    yield s(s.array(2, 1), 1).without_gradient()
    yield s(s.array(2, 0), 1).without_gradient()
    yield s(s.array(0, 2), 1)
    yield s(s.strided(4, 3), (0,))
    yield s(s.array(100, 40) + np.float32(1e3), 1).without_gradient().loosely(100)
    yield s(s.array(7, 300), 0)


@var_backward.samples
def _(s):
    yield s(s.array(3), s.array(3, 4), (1,), 1)
    yield s(s.array(1, 4), s.array(3, 4), (0,), 0)
    yield s(s.array(), s.array(5), None, None)


var_backward.error(
    "ShapeError",
    lambda s: s(s.array(2), s.array(3, 4), (1,), 1),
    contains=["shape", "(3, 1)", "(2,)"],
)
var_mean.error(
    "IndexError", lambda s: s(s.array(2, 3), 2), contains=["var_mean", "dim", "(2, 3)", "2"]
)
var_mean.error(
    "ValueError", lambda s: s(s.array(2, 3), (0, -2)), contains=["var_mean", "dim", "(0, -2)"]
)
var_mean.error(
    "DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=["var_mean", "self", "int64"]
)
var.error("DTypeError", lambda s: s(s.array(2, dtype="bool")), contains=["var", "self", "bool"])


for each in (var_unbiased, std_unbiased, var_mean_unbiased):

    @each.samples
    def _(s):
        yield s(s.array(3, 4), 0, False)
        yield s(s.array(3, 4), None, True)
        yield s(s.array(3, 4), (0, 1), unbiased=False, keepdim=True)

    each.error(
        "IndexError",
        lambda s: s(s.array(2, 3), 2, unbiased=False),
        contains=[each.schema.base, "dim", "(2, 3)", "2"],
    )


def _flag(operator):
    name = operator.schema.base
    operator.samples(lambda s: iter([s(s.array(3, 4), True), s(s.array(3, 4), False)]))
    operator.error("TypeError", lambda s: s("a", True), contains=[name])


_flag(var_flag)
_flag(std_flag)
_flag(var_mean_flag)


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
            s(s.array(4, 3, dtype="complex64"), 0, correction=0),
        ]
    )
)
std_mean_unbiased.samples(
    lambda s: iter([s(s.array(3, 4), 0, False), s(s.array(3, 4), None, True)])
)
std_mean_.error(
    "DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=["std_mean", "self", "int64"]
)
std_mean_unbiased.error(
    "IndexError", lambda s: s(s.array(2, 3), 2, False), contains=["std_mean", "dim", "(2, 3)", "2"]
)


std_mean_flag.reference(lambda self, unbiased: std_mean_(self, correction=int(unbiased)))
std_mean_flag.samples(lambda s: iter([s(s.array(3, 4), True), s(s.array(3, 4), False)]))
std_mean_flag.error("TypeError", lambda s: s("a", True), contains=["std_mean"])
