"""Covariances and coefficients of correlation."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import check, is_complex, is_integral, real_dtype, require, to_dtype, warn

weights_at_least_zero_ = Pointwise(
    "weights_at_least_zero(Tensor weights) -> Tensor",
    doc="`weights`, of which none may be negative.",
    dtypes="floating",
    internal=True,
    domain=(0.0, 3.0),
    bounded=("weights", 0.0, float("inf")),
    zero_preserving=True,
)


@weights_at_least_zero_.decompose
def _(weights):
    return weights * 1.0


@weights_at_least_zero_.vjp("weights")
def _(g):
    return g


cov_ = Composite(
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
    doc="""
    The covariances of variables: each row of `self` is a variable, each column an observation:
    ``sum_k w[k] (x[i, k] - mean[i]) conj(x[j, k] - mean[j]) / (sum(w) - correction)``.

    Shapes: `self` is (n, k), or (k,) for one variable; the result is (n, n), or 0-d for n = 1. `fweights` are
    frequencies (integers), `aweights` importances (floats), both (k,). With `aweights` the divisor is
    ``sum(w) - correction * sum(w * aweights) / sum(w)``.
    Raises: ShapeError for other shapes, DTypeError unless `fweights` are integers and `aweights` floats, ValueError for
    negative weights.

    >>> import plait_core as pc
    >>> pc.cov(pc.tensor([[0.0, 2.0], [2.0, 0.0]])).tolist()
    [[2.0, -2.0], [-2.0, 2.0]]
    """,
    dtypes="arithmetic",
    variants="function method",
    widens=True,
)
corrcoef = Composite(
    "corrcoef(Tensor self) -> Tensor",
    doc="""
    The correlations of variables, which are the rows of `self`: `cov` divided by the standard deviations, clamped to [-1,
    1].

    Shapes: `self` is (n, k) or (k,); the result (n, n) or 0-d. Raises: ShapeError for other shapes.

    >>> import plait_core as pc
    >>> pc.corrcoef(pc.tensor([[0.0, 2.0], [2.0, 0.0]])).round().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """,
    dtypes="arithmetic",
    variants="function method",
    widens=True,
)


@cov_.decompose
def _(self, correction, fweights, aweights):
    check(self.ndim <= 2, f"`self` must have at most 2 dimensions; got shape {self.shape}")
    x = self * 1.0 if is_integral(self.dtype) else self
    n = 1 if self.ndim < 2 else self.shape[0]
    k = 1 if self.ndim == 0 else self.shape[-1]
    x = op.reshape(x, [n, k])
    if fweights is None and aweights is None:
        warn(
            k - correction <= 0,
            "(): degrees of freedom is <= 0. `correction` must be less than the number of "
            "observations; the result is nan or inf",
        )
        centred = x - op.mean(x, [1], True)
        other = op.conj(centred) if is_complex(x.dtype) else centred
        made = op.mm(centred, op.t(other)) / max(float(k) - float(correction), 0.0)
        return op.reshape(made, []) if n == 1 else made
    w = op.zeros([k], dtype=real_dtype(x.dtype), device=self.device) + 1.0
    if fweights is not None:
        check(
            fweights.ndim == 1 and fweights.shape[0] == k,
            f"`fweights` of shape {fweights.shape} must have the shape ({k},)",
        )
        require("fweights", fweights.dtype, "integer")
        w = w * op.weights_at_least_zero(to_dtype(fweights, w.dtype))
    if aweights is not None:
        check(
            aweights.ndim == 1 and aweights.shape[0] == k,
            f"`aweights` of shape {aweights.shape} must have the shape ({k},)",
        )
        require("aweights", aweights.dtype, "floating")
        w = w * op.weights_at_least_zero(aweights)
    total = op.sum(w)
    average = op.unsqueeze(op.sum(x * w, [1]) / total, 1)
    centred = x - average
    other = op.conj(centred) if is_complex(x.dtype) else centred
    divisor = total - float(correction)
    if aweights is not None:
        divisor = total - float(correction) * op.sum(w * aweights) / total
    product = op.mm(centred * to_dtype(w, x.dtype), op.t(other))
    made = product / divisor
    return op.reshape(made, []) if n == 1 else made


@corrcoef.decompose
def _(self):
    made = op.cov(self)
    if made.ndim == 0:
        return made / made
    deviation = op.sqrt(op.diagonal(op.real(made) if is_complex(made.dtype) else made))
    scaled = made / op.unsqueeze(deviation, 1) / op.unsqueeze(deviation, 0)
    return scaled if is_complex(made.dtype) else op.clamp_between(scaled, -1.0, 1.0)
