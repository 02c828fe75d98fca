"""Integrals of samples, and statistics of observations."""

import numpy as np

from plait_ops.calls import (
    clamp_between,
    conj,
    cov,
    cumsum,
    diagonal,
    mean,
    mm,
    narrow,
    real,
    reshape,
    sqrt,
    sum,
    t,
    trapezoid,
    trapezoid_x,
    unsqueeze,
    zeros,
)
from plait_ops.spec import Composite
from plait_ops.words import (
    check,
    is_complex,
    is_integral,
    real_dtype,
    to_dtype,
    wrap_dim,
)

# ---- the trapezoidal rule ------------------------------------------------------------------------
_TEXT = """
    Raises: IndexError for a `dim` out of range{}.
"""


def _rule(name, text, more=""):
    return Composite(
        f"{name}(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
        doc=f"""
    {text} of samples `dx` apart, by the trapezoidal rule, along `dim`.
    {_TEXT.format("")}
    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1.0, 2.0, 3.0])){more}
    """,
        method=False,
        dtypes="arithmetic",
    ), Composite(
        f"{name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
        doc=f"""
    {text} of samples at the places `x`, of as many elements along `dim`.
    {_TEXT.format(", ShapeError if `x` has another size")}
    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1.0, 2.0, 3.0]), pc.tensor([0.0, 1.0, 2.0])){more}
    """,
        method=False,
        dtypes="arithmetic",
    )


trapezoid_, trapezoid_x_ = _rule("trapezoid", "The integral", ".item()\n    4.0")
trapz, trapz_x = _rule("trapz", "`trapezoid`, the integral", ".item()\n    4.0")
cumulative_trapezoid_, cumulative_trapezoid_x_ = _rule(
    "cumulative_trapezoid", "The integrals up to every sample but the first",
    ".tolist()\n    [1.5, 4.0]",
)  # fmt: skip


@trapezoid_.decompose
def _(y, dx, dim):
    at = wrap_dim("dim", dim, y.shape)
    n = y.shape[at] if y.ndim > 0 else 0
    check(y.ndim > 0, "`y` must have at least 1 dimension; got shape ()")
    if n < 2:
        return sum(narrow(y, at, 0, 0), [at]) * dx
    ends = narrow(y, at, 0, n - 1) + narrow(y, at, 1, n - 1)
    return sum(ends, [at], dtype=ends.dtype) * dx / 2.0


@trapezoid_x_.decompose
def _(y, x, dim):
    check(y.ndim > 0 and x.ndim > 0, "`y` and `x` must have at least 1 dimension")
    at = wrap_dim("dim", dim, y.shape)
    n = y.shape[at]
    places = x
    if x.ndim == 1 and y.ndim > 1:
        places = reshape(x, [x.shape[0]] + [1] * (y.ndim - 1 - at))
        where = 0
    else:
        where = wrap_dim("dim", dim, x.shape)
    check(
        places.shape[where] == n,
        f"`x` of shape {x.shape} must have as many elements along `dim` {dim} as `y` of shape {y.shape}",
    )
    if n < 2:
        return sum(narrow(y, at, 0, 0), [at])
    steps = narrow(places, where, 1, n - 1) - narrow(places, where, 0, n - 1)
    ends = (narrow(y, at, 0, n - 1) + narrow(y, at, 1, n - 1)) * steps
    return sum(ends, [at - y.ndim], dtype=ends.dtype) / 2.0


@trapz.decompose
def _(y, dx, dim):
    return trapezoid(y, dx=dx, dim=dim)


@trapz_x.decompose
def _(y, x, dim):
    return trapezoid_x(y, x, dim=dim)


@cumulative_trapezoid_.decompose
def _(y, dx, dim):
    check(y.ndim > 0, "`y` must have at least 1 dimension; got shape ()")
    at = wrap_dim("dim", dim, y.shape)
    n = max(y.shape[at], 1)
    ends = narrow(y, at, 0, n - 1) + narrow(y, at, 1, n - 1)
    return cumsum(ends, at, dtype=ends.dtype) * dx / 2.0


@cumulative_trapezoid_x_.decompose
def _(y, x, dim):
    check(y.ndim > 0 and x.ndim > 0, "`y` and `x` must have at least 1 dimension")
    at = wrap_dim("dim", dim, y.shape)
    n = max(y.shape[at], 1)
    places = x
    if x.ndim == 1 and y.ndim > 1:
        places = reshape(x, [x.shape[0]] + [1] * (y.ndim - 1 - at))
        where = 0
    else:
        where = wrap_dim("dim", dim, x.shape)
    check(
        places.shape[where] == y.shape[at],
        f"`x` of shape {x.shape} must have as many elements along `dim` {dim} as `y` of shape {y.shape}",
    )
    steps = narrow(places, where, 1, n - 1) - narrow(places, where, 0, n - 1)
    ends = (narrow(y, at, 0, n - 1) + narrow(y, at, 1, n - 1)) * steps
    return cumsum(ends, at - y.ndim, dtype=ends.dtype) / 2.0


def _halves(y, x, dx, dim):
    made = np.moveaxis(y, dim, -1)
    dtype = y.dtype if y.dtype.kind in "fc" else np.dtype("float32")
    if x is None:
        steps = dx
    elif x.ndim == 1:
        steps = np.diff(x)
    else:
        steps = np.diff(np.moveaxis(x, dim, -1), axis=-1)
    return ((made[..., 1:] + made[..., :-1]) * steps / 2).astype(dtype)


for _each in (trapezoid_, trapz):
    _each.reference(lambda y, dx=1, dim=-1: np.asarray(_halves(y, None, dx, dim).sum(-1)))
for _each in (trapezoid_x_, trapz_x):
    _each.reference(lambda y, x, dim=-1: np.asarray(_halves(y, x, 1, dim).sum(-1)))
cumulative_trapezoid_.reference(
    lambda y, dx=1, dim=-1: np.moveaxis(_halves(y, None, dx, dim).cumsum(-1), -1, dim)
)
cumulative_trapezoid_x_.reference(
    lambda y, x, dim=-1: np.moveaxis(_halves(y, x, 1, dim).cumsum(-1), -1, dim)
)
for _each in (trapezoid_, trapz, cumulative_trapezoid_):
    _each.samples(
        lambda s: iter(
            [
                s(s.array(5)).loosely(4),
                s(s.array(3, 4), dx=0.5, dim=0).loosely(4),
                s(s.array(3, 4), dim=1).loosely(4),
                s(s.array(4, dtype="int64")),
                s(s.array(1)),
            ]
        )
    )
    _each.error("IndexError", lambda s: s(s.array(2), dim=1), contains=["dim", "(2,)"])
for _each in (trapezoid_x_, trapz_x, cumulative_trapezoid_x_):
    _each.samples(
        lambda s: iter(
            [
                s(s.array(5), s.array(5)).loosely(4),
                s(s.array(3, 4), s.array(3), dim=0).loosely(4),
                s(s.array(3, 4), s.array(3, 4), dim=1).loosely(4),
            ]
        )
    )
    _each.error(
        "ShapeError", lambda s: s(s.array(3, 4), s.array(3)), contains=["`x`", "(3,)", "(3, 4)"]
    )


# ---- covariance ----------------------------------------------------------------------------------
cov_ = Composite(
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
    doc="""
    The covariances of variables, the rows of `self`, over observations, its columns:
    ``sum_k w[k] (x[i, k] - mean[i]) conj(x[j, k] - mean[j]) / (sum(w) - correction)``.

    Shapes: `self` is (n, k), or (k,) for one variable; the result is (n, n), or 0-d for n = 1. `fweights` are
    frequencies (integers), `aweights` importances (floats), both (k,). With `aweights` the divisor is
    ``sum(w) - correction * sum(w * aweights) / sum(w)``.
    Raises: ShapeError for other shapes.

    >>> import plait_core as pc
    >>> pc.cov(pc.tensor([[0.0, 2.0], [2.0, 0.0]])).tolist()
    [[2.0, -2.0], [-2.0, 2.0]]
    """,
    dtypes="arithmetic",
)
corrcoef = Composite(
    "corrcoef(Tensor self) -> Tensor",
    doc="""
    The correlations of variables, the rows of `self`: `cov` divided by the standard deviations, within [-1, 1].

    Shapes: `self` is (n, k) or (k,); the result (n, n) or 0-d. Raises: ShapeError for other shapes.

    >>> import plait_core as pc
    >>> pc.corrcoef(pc.tensor([[0.0, 2.0], [2.0, 0.0]])).round().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """,
    dtypes="arithmetic",
)


@cov_.decompose
def _(self, correction, fweights, aweights):
    check(self.ndim <= 2, f"`self` must have at most 2 dimensions; got shape {self.shape}")
    x = self * 1.0 if is_integral(self.dtype) else self
    n = 1 if self.ndim < 2 else self.shape[0]
    k = 1 if self.ndim == 0 else self.shape[-1]
    x = reshape(x, [n, k])
    if fweights is None and aweights is None:
        centred = x - mean(x, [1], True)
        other = conj(centred) if is_complex(x.dtype) else centred
        made = mm(centred, t(other)) / max(float(k) - float(correction), 0.0)
        return reshape(made, []) if n == 1 else made
    w = zeros([k], dtype=real_dtype(x.dtype), device=self.device) + 1.0
    if fweights is not None:
        check(
            fweights.ndim == 1 and fweights.shape[0] == k,
            f"`fweights` of shape {fweights.shape} must have the shape ({k},)",
        )
        w = w * fweights
    if aweights is not None:
        check(
            aweights.ndim == 1 and aweights.shape[0] == k,
            f"`aweights` of shape {aweights.shape} must have the shape ({k},)",
        )
        w = w * aweights
    total = sum(w)
    average = unsqueeze(sum(x * w, [1]) / total, 1)
    centred = x - average
    other = conj(centred) if is_complex(x.dtype) else centred
    divisor = total - float(correction)
    if aweights is not None:
        divisor = total - float(correction) * sum(w * aweights) / total
    product = mm(centred * to_dtype(w, x.dtype), t(other))
    made = product / divisor
    return reshape(made, []) if n == 1 else made


@corrcoef.decompose
def _(self):
    made = cov(self)
    if made.ndim == 0:
        return made / made
    deviation = sqrt(diagonal(real(made) if is_complex(made.dtype) else made))
    scaled = made / unsqueeze(deviation, 1) / unsqueeze(deviation, 0)
    return scaled if is_complex(made.dtype) else clamp_between(scaled, -1.0, 1.0)


@cov_.reference
def _(self, correction=1, fweights=None, aweights=None):
    dtype = self.dtype if self.dtype.kind in "fc" else np.dtype("float32")
    with np.errstate(all="ignore"):
        return np.asarray(
            np.cov(self, ddof=correction, fweights=fweights, aweights=aweights)
        ).astype(dtype)


@corrcoef.reference
def _(self):
    dtype = self.dtype if self.dtype.kind in "fc" else np.dtype("float32")
    return np.asarray(np.corrcoef(self)).astype(dtype)


@cov_.samples
def _(s):
    yield s(s.array(3, 5)).loosely(10)
    yield s(s.array(5)).loosely(10)
    yield s(s.array(1, 5)).loosely(10)
    yield s(s.array(1, 3), fweights=s.np.array([1, 2, 3])).loosely(10)
    yield s(s.array(3, 5), correction=0).loosely(10)
    yield s(s.array(2, 5, dtype="int64")).loosely(10)
    yield (
        s(s.array(3, 4), fweights=s.np.array([1, 2, 0, 3]), aweights=s.array(4, low=0.5, high=2.0))
        .loosely(10)
        .without_gradient()
    )
    yield s(s.strided(3, 5)).loosely(10)


corrcoef.samples(
    lambda s: iter(
        [
            s(s.array(3, 5)).loosely(10),
            s(s.array(5)).loosely(10),
            s(s.array(1, 5)).loosely(10).without_gradient(),
            s(s.strided(2, 5)).loosely(10),
        ]
    )
)
cov_.error("ShapeError", lambda s: s(s.array(2, 2, 2)), contains=["cov", "`self`", "(2, 2, 2)"])
cov_.error(
    "ShapeError",
    lambda s: s(s.array(2, 4), fweights=s.np.array([1, 2])),
    contains=["cov", "fweights", "(2,)", "4"],
)
corrcoef.error("ShapeError", lambda s: s(s.array(2, 2, 2)), contains=["`self`", "(2, 2, 2)"])
