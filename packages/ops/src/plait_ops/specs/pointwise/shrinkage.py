"""Activations with bounds, gates and learned slopes: threshold, shrinkage, prelu, rrelu, glu, softmin."""

import numpy as np

from plait_ops.calls import abs as abs_
from plait_ops.calls import (
    empty_like,
    gt,
    le,
    leaky_relu,
    mul,
    narrow,
    reshape,
    sigmoid,
    uniform_,
    where,
)
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import check, require, wrap_dim

threshold_elements = Pointwise(
    "threshold_elements(Tensor self, Scalar threshold=0, Scalar value=0) -> Tensor",
    doc="`threshold` with a default for each number.",
    dtypes="numeric",
    internal=True,
    scalar="threshold",
    reference=lambda x, threshold=0, value=0: np.where(x <= threshold, value, x),
)
threshold = Composite(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    doc="""
    `self` where it is above `threshold`, `value` elsewhere; nan stays nan.

    Shape and dtype: those of `self`; any but bool and complex.

    >>> import plait_core as pc
    >>> pc.threshold(pc.tensor([-1.0, 0.5, 2.0]), 0.5, 0.0).tolist()
    [0.0, 0.0, 2.0]
    """,
    inplace=True,
    out=True,
    dtypes="numeric",
    method=False,
)


@threshold.decompose
def _(self, threshold, value):
    return threshold_elements(self, threshold, value)


threshold.reference(lambda self, threshold, value: threshold_elements(self, threshold, value))
threshold.error(
    "DTypeError", lambda s: s(s.array(2, dtype="bool"), 0, 1), contains=["self", "bool"]
)


@threshold_elements.vjp("self")
def _(g, self, threshold):
    return where(le(self, threshold), 0.0, g)  # nan passes


def _shrink(name, text, reference, example):
    operator = Pointwise(
        f"{name}(Tensor self, float lambd=0.5) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([-2.0, 0.25, 1.0])).tolist()
    {example}
    """,
        dtypes="floating",
        reference=reference,
    )

    @operator.vjp("self")
    def _(g, self, lambd):
        return where(le(abs_(self), lambd), 0.0, g)  # nan passes

    @operator.samples
    def _(s):
        yield s(s.array(50), 1.25)
        yield s(np.array([0.5, -0.5, 0.0, -0.0, np.inf, -np.inf], "float32")).without_gradient()

    return operator


hardshrink = _shrink(
    "hardshrink",
    "`self` where its magnitude is above `lambd`, 0 elsewhere.",
    lambda x, lambd=0.5: np.where((x >= -lambd) & (x <= lambd), 0, x),
    "[-2.0, 0.0, 1.0]",
)
softshrink = _shrink(
    "softshrink",
    "`self` moved towards 0 by `lambd`, and 0 where that would cross it.",
    lambda x, lambd=0.5: np.where(
        np.abs(x) > lambd, x - np.sign(x) * lambd, np.where(x != x, x, 0)
    ),
    "[-1.5, 0.0, 0.5]",
)
threshold.samples(lambda s: iter([s(s.array(50), 0.3, 7.0), s(s.array(9, dtype="int64"), 1, 3)]))


prelu_elements = Pointwise(
    "prelu_elements(Tensor self, Tensor weight) -> Tensor",
    doc="`self` above 0, ``weight * self`` elsewhere: `prelu` with a weight that broadcasts.",
    dtypes="floating",
    internal=True,
    reference=lambda x, weight: np.where(x > 0, x, weight * x),
)


@prelu_elements.vjp("self")
def _(g, self, weight):
    return where(gt(self, 0.0), g, g * weight)


@prelu_elements.vjp("weight")
def _(g, self):
    return where(gt(self, 0.0), 0.0, g * self)


prelu = Composite(
    "prelu(Tensor self, Tensor weight) -> Tensor",
    doc="""
    `self` above 0, ``weight * self`` elsewhere (He et al. 2015), with one weight, or one for each channel of dimension 1.

    Shapes: `weight` has 1 element or as many as dimension 1 of `self`; the result has the shape of `self`. Dtypes: floating.
    Raises: ShapeError for other shapes.

    >>> import plait_core as pc
    >>> pc.prelu(pc.tensor([-4.0, 2.0]), pc.tensor([0.25])).tolist()
    [-1.0, 2.0]
    """,
    dtypes="floating",
)


@prelu.decompose
def _(self, weight):
    require("self", self.dtype, "floating")
    check(weight.ndim <= 1, f"`weight` must be 0-d or 1-d; got shape {weight.shape}")
    if weight.ndim == 0:
        return prelu_elements(self, weight)
    n = weight.shape[0]
    if n == 1:
        return prelu_elements(self, reshape(weight, []))
    channels = self.shape[1] if self.ndim > 1 else 1
    check(
        n == channels,
        f"`weight` must have 1 element or one for each channel of `self` of shape {self.shape}; got {n}",
    )
    return prelu_elements(self, reshape(weight, [n] + [1] * (self.ndim - 2)))


@prelu.reference
def _(self, weight):
    if weight.ndim and weight.size > 1:
        weight = weight.reshape([weight.size] + [1] * (self.ndim - 2))
    return np.where(self > 0, self, weight * self).astype(self.dtype)


@prelu.samples
def _(s):
    yield s(s.array(3, 4), s.array(1))
    yield s(s.array(2, 3, 4), s.array(3))
    yield s(s.strided(2, 3, dtype="float64"), s.array(3, dtype="float64"))
    yield s(s.array(5), s.array())


prelu.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(4)),
    contains=["prelu", "weight", "(2, 3)", "4"],
)
prelu.error("ShapeError", lambda s: s(s.array(2, 3), s.array(1, 3)), contains=["weight", "(1, 3)"])


rrelu = Composite(
    "rrelu(Tensor self, float lower=0.125, float upper=0.3333333333333333, bool training=False, *, "
    "Generator? generator=None) -> Tensor",
    doc="""
    `self` above 0; elsewhere `self` times a slope, which is drawn uniformly from [lower, upper) for each element while
    `training` and is their mean otherwise (Xu et al. 2015).

    Shape: that of `self`. Dtypes: floating. Raises: ValueError if `lower` is above `upper`.

    >>> import plait_core as pc
    >>> pc.rrelu(pc.tensor([-4.0, 2.0]), 0.25, 0.75).tolist()
    [-2.0, 2.0]
    """,
    inplace=True,
    dtypes="floating",
    random=True,
)


@rrelu.decompose
def _(self, lower, upper, training, generator):
    require("self", self.dtype, "floating")
    check(
        lower <= upper, f"`lower` must not be above `upper`; got {lower} and {upper}", "ValueError"
    )
    if not training:
        return leaky_relu(self, (lower + upper) / 2.0)
    slope = uniform_(empty_like(self), lower, upper, generator=generator)
    return prelu_elements(self, slope)


rrelu.reference(
    lambda self, lower=0.125, upper=1 / 3, training=False: np.where(
        self > 0, self, self * (lower + upper) / 2
    ).astype(self.dtype)
)
rrelu.samples(
    lambda s: iter([s(s.array(3, 4)), s(s.array(3), 0.1, 0.2), s(s.array(9), 0.1, 0.3, True)])
)
rrelu.error("ValueError", lambda s: s(s.array(2), 0.5, 0.25), contains=["rrelu", "lower", "upper"])


glu = Composite(
    "glu(Tensor self, int dim|axis=-1) -> Tensor",
    doc="""
    The gated linear unit ``a * sigmoid(b)``, where `a` and `b` are the halves of `self` along `dim` (Dauphin et al. 2017).

    Shape: that of `self` with half of `dim`. Dtypes: floating.
    Raises: IndexError for a bad `dim`, ShapeError if its size is odd or `self` is 0-d.

    >>> import plait_core as pc
    >>> pc.glu(pc.tensor([4.0, 0.0])).tolist()
    [2.0]
    """,
    dtypes="floating",
    method=False,
)


@glu.decompose
def _(self, dim):
    require("self", self.dtype, "floating")
    check(self.ndim > 0, f"`self` must have a dimension; got shape {self.shape}")
    at = wrap_dim("dim", dim, self.shape)
    size = self.shape[at]
    check(size % 2 == 0, f"`dim` {dim} of `self` of shape {self.shape} must be even; got {size}")
    half = size // 2
    return mul(narrow(self, at, 0, half), sigmoid(narrow(self, at, half, half)))


@glu.reference
def _(self, dim=-1):
    a, b = np.split(self, 2, dim)
    return (a / (1 + np.exp(-b))).astype(self.dtype)


@glu.samples
def _(s):
    yield s(s.array(3, 4))
    yield s(s.array(4, 3), 0)
    yield s(s.strided(2, 6, dtype="float64"), 1)
    yield s(s.array(0, 4))


glu.error("ShapeError", lambda s: s(s.array(2, 3)), contains=["glu", "dim", "(2, 3)", "3"])
glu.error("IndexError", lambda s: s(s.array(2, 4), 2), contains=["dim", "(2, 4)", "2"])
