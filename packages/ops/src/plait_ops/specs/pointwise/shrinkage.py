"""Activations with bounds, gates and learned slopes: threshold, shrinkage, prelu, rrelu, glu, softmin."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator, Pointwise
from plait_ops.words import check, fits, part, require, result, wrap_dim

threshold_elements = Pointwise(
    "threshold_elements(Tensor self, Scalar threshold=0, Scalar value=0) -> Tensor",
    doc="`threshold` with default values for its numbers.",
    dtypes="numeric",
    internal=True,
    scalar="threshold",
)
threshold = Composite(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    doc="""
    `self` where it is above `threshold`, `value` elsewhere; nan stays nan.

    Shape and dtype: those of `self`; any but bool and complex. Raises: ValueError for numbers that do not fit in an integer
    dtype.

    Args:
        threshold: Elements that are not larger are replaced.
        value: The value of the elements that are replaced.

    >>> import plait_core as pc
    >>> pc.threshold(pc.tensor([-1.0, 0.5, 2.0]), 0.5, 0.0).tolist()
    [0.0, 0.0, 2.0]
    """,
    inplace=True,
    dtypes="numeric",
    variants="function function_",
)


@threshold.decompose
def _(self, threshold, value):
    fits("threshold", threshold, self.dtype)
    fits("value", value, self.dtype)
    return threshold_elements(self, threshold, value)


threshold_backward = Pointwise(
    "threshold_backward(Tensor grad, Tensor self, Scalar threshold=0) -> Tensor",
    doc="`grad` where `self` is above `threshold` or nan, 0 elsewhere: the derivative of `threshold`.",
    dtypes="floating",
    internal=True,
)
shrink_backward = Pointwise(
    "shrink_backward(Tensor grad, Tensor self, float lambd=0.5) -> Tensor",
    doc="0 where the magnitude of `self` is at most `lambd`, `grad` elsewhere: the derivative of `hardshrink` and `softshrink`.",
    dtypes="floating",
    internal=True,
)


@threshold_elements.vjp("self")
@threshold_backward.vjp("grad")
def _(g, self, threshold):
    return threshold_backward(g, self, threshold)


@shrink_backward.vjp("grad")
def _(g, self, lambd):
    return shrink_backward(g, self, lambd)


@threshold_backward.vjp("self")
@shrink_backward.vjp("self")
def _(g):
    return op.zeros_like(g)


@threshold_elements.decompose
def _(self, threshold, value):
    return op.where(op.le(self, threshold), value, self)


@threshold_backward.decompose
def _(grad, self, threshold):
    return op.where(op.le(self, threshold), 0.0, grad)


@part
def _is_small(x, lambd):
    return op.logical_and(op.ge(x, -lambd), op.le(x, lambd))


@shrink_backward.decompose
def _(grad, self, lambd):
    return op.where(_is_small(self, lambd), 0.0, grad)


def _shrink(name, text, example, variants=""):
    if "function" in variants:
        module, call = "plait_core as pc", f"pc.{name}"
    else:
        module, call = "plait_core as pc, plait_nn.functional as F", f"F.{name}"
    operator = Pointwise(
        f"{name}(Tensor self, float lambd=0.5) -> Tensor",
        doc=f"""
    {text}

    >>> import {module}
    >>> {call}(pc.tensor([-2.0, 0.25, 1.0])).tolist()
    {example}
    """,
        inplace=False,
        dtypes="floating",
        variants=variants,
        zero_preserving=True,
    )

    @operator.vjp("self")
    def _(g, self, lambd):
        return shrink_backward(g, self, lambd)

    return operator


hardshrink = _shrink(
    "hardshrink",
    "`self` where its magnitude is above `lambd`, 0 elsewhere.",
    "[-2.0, 0.0, 1.0]",
    variants="function method",
)
softshrink = _shrink(
    "softshrink",
    "`self` moved towards 0 by `lambd`, and 0 where its magnitude is at most `lambd`.",
    "[-1.5, 0.0, 0.5]",
)


@hardshrink.decompose
def _(self, lambd):
    return op.where(_is_small(self, lambd), 0.0, self)


@softshrink.decompose
def _(self, lambd):
    # nan is neither above nor below
    inside = op.where(op.ne(self, self), self, 0.0)
    low = op.where(op.lt(self, -lambd), self + lambd, inside)
    return op.where(op.gt(self, lambd), self - lambd, low)


prelu_elements = Pointwise(
    "prelu_elements(Tensor self, Tensor weight) -> Tensor",
    doc="`self` where it is above 0, ``weight * self`` elsewhere: `prelu` with a weight that broadcasts.",
    dtypes="floating",
    internal=True,
)


@prelu_elements.vjp("self")
def _(g, self, weight):
    return op.where(op.gt(self, 0.0), g, g * weight)


@prelu_elements.vjp("weight")
def _(g, self):
    return op.where(op.gt(self, 0.0), 0.0, g * self)


@prelu_elements.decompose
def _(self, weight):
    return op.where(op.gt(self, 0), self, weight * self)


prelu = Composite(
    "prelu(Tensor self, Tensor weight) -> Tensor",
    doc="""
    `self` where it is above 0, ``weight * self`` elsewhere (He et al. 2015). There is one weight for all elements, or one
    for each channel, which is dimension 1.

    Args:
        weight: The slope of negative elements, one for each channel or one for all.

    Shapes: `weight` has 1 element or as many as dimension 1 of `self`; the result has the shape of `self`. Dtypes: floating.
    Raises: ShapeError for other shapes.

    >>> import plait_core as pc
    >>> pc.prelu(pc.tensor([-4.0, 2.0]), pc.tensor([0.25])).tolist()
    [-1.0, 2.0]
    """,
    dtypes="floating",
    variants="function method",
)


@prelu.decompose
def _(self, weight):
    require("self", self.dtype, "floating")
    check(weight.ndim <= 1, f"`weight` must be 0-d or 1-d; got shape {weight.shape}")
    if weight.ndim == 0:
        return prelu_elements(self, weight)
    n = weight.shape[0]
    if n == 1:
        return prelu_elements(self, op.reshape(weight, []))
    channels = self.shape[1] if self.ndim > 1 else 1
    check(
        n == channels,
        f"`weight` must have 1 element or one for each channel of `self` of shape {self.shape}; got {n}",
    )
    return prelu_elements(self, op.reshape(weight, [n] + [1] * (self.ndim - 2)))


rrelu_slopes = Operator(
    "rrelu_slopes(Tensor self, float lower, float upper, *, Generator? generator=None) -> Tensor",
    doc="""
    The slopes of `rrelu` in training: numbers drawn uniformly from [lower, upper), in the shape of `self`. Those where
    `self` is above 0 are not used.

    >>> import plait_abi, plait_core as pc
    >>> plait_abi.operator("rrelu_slopes")(pc.zeros(2), 0.5, 0.5).tolist()
    [0.5, 0.5]
    """,
    kernel="optional: without a kernel other operators compute it; the result is in C order; where self is above 0 it may have any value.",
    random=True,
    dtypes="floating",
    internal=True,
)
rrelu_slopes.batch("leading")


@rrelu_slopes.shape
def _(self):
    require("self", self.dtype, "floating")
    return result(self.shape, self.dtype)


@rrelu_slopes.decompose
def _(self, lower, upper, generator):
    made = op.empty_like(self, memory_format="contiguous_format")
    return op.uniform_(made, lower, upper, generator=generator)


rrelu_slopes.constant("self")

rrelu = Composite(
    "rrelu(Tensor self, float lower=0.125, float upper=0.3333333333333333, bool training=False, *, "
    "Generator? generator=None) -> Tensor",
    doc="""
    `self` where it is above 0; elsewhere `self` times a slope (Xu et al. 2015). With `training` the slope is drawn
    uniformly from [lower, upper) for each element; else it is the mean of `lower` and `upper`.

    Args:
        training: Whether slopes are drawn; else each is the mean of `lower` and `upper`.
        upper: The largest slope.

    Shape: that of `self`. Dtypes: floating. Raises: ValueError if `lower` is above `upper`.

    >>> import plait_core as pc
    >>> pc.rrelu(pc.tensor([-4.0, 2.0]), 0.25, 0.75).tolist()
    [-2.0, 2.0]
    """,
    inplace=True,
    dtypes="floating",
    random=True,
    variants="function function_",
)


@rrelu.decompose
def _(self, lower, upper, training, generator):
    require("self", self.dtype, "floating")
    check(
        lower <= upper, f"`lower` must not be above `upper`; got {lower} and {upper}", "ValueError"
    )
    if not training:
        return op.leaky_relu(op.contiguous(self), (lower + upper) / 2.0)
    slopes = rrelu_slopes(op.detach(self), lower, upper, generator=generator)
    return prelu_elements(op.contiguous(self), slopes)


glu = Composite(
    "glu(Tensor self, int dim|axis=-1) -> Tensor",
    doc="""
    The gated linear unit ``a * sigmoid(b)``, where `a` and `b` are the halves of `self` along `dim` (Dauphin et al. 2017).

    Shape: that of `self` with half of `dim`. Dtypes: floating.
    Raises: IndexError for a `dim` out of range, ShapeError if the size of `dim` is odd or `self` is 0-d.

    >>> import plait_core as pc, plait_nn.functional as F
    >>> F.glu(pc.tensor([4.0, 0.0])).tolist()
    [2.0]
    """,
    dtypes="floating",
    variants="",
)


@glu.decompose
def _(self, dim):
    require("self", self.dtype, "floating")
    check(self.ndim > 0, f"`self` must have a dimension; got shape {self.shape}")
    at = wrap_dim("dim", dim, self.shape)
    size = self.shape[at]
    check(size % 2 == 0, f"`dim` {dim} of `self` of shape {self.shape} must be even; got {size}")
    half = size // 2
    return op.mul(op.narrow(self, at, 0, half), op.sigmoid(op.narrow(self, at, half, half)))
