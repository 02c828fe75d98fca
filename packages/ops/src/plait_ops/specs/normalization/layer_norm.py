"""Layer normalisation, and functions for its derivative and that of batch normalisation."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.specs.normalization.batch_norm import require_saved
from plait_ops.words import (
    check,
    numel,
    part,
    require,
    require_same,
    result,
    sizes,
    to_dtype,
    wide_dtype,
)

layer_norm = Composite(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-5) -> Tensor",
    doc="""
    ``(input - mean) / sqrt(var + eps) * weight + bias``, with mean and (biased) variance over the last
    ``len(normalized_shape)`` dimensions (Ba et al. 2016).

    Args:
        weight: The factors of the normalized elements, or None.
        bias: What is added to the normalized elements, or None.

    Shapes: `input` and the result (*, *normalized_shape); `weight` and `bias` normalized_shape.
    Dtypes: floating-point, the same for all. Raises: ShapeError or DTypeError otherwise.

    >>> import plait_core as pc
    >>> pc.layer_norm(pc.tensor([[1.0, 3.0]]), (2,), eps=0.0).tolist()
    [[-1.0, 1.0]]
    """,
    dtypes="floating",
)
layer_norm.shard("code")
native_layer_norm = Operator(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps)"
    " -> (Tensor, Tensor, Tensor)",
    doc="""
    `layer_norm` with what its derivative needs: the result, the mean and ``1 / sqrt(var + eps)``, both with size 1 in the
    normalised dimensions and float32 for halves. No gradient flows through the last two.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; the statistics have as many dimensions as in[0].",
)
native_layer_norm.batch("leading, code", input="all")
layer_norm_backward = Operator(
    "layer_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int[] normalized_shape)"
    " -> (Tensor, Tensor, Tensor)",
    doc="""
    The derivatives of `layer_norm` with respect to input, weight and bias. With ``h = (input - mean) * rstd`` and ``a =
    grad * weight`` the first is ``rstd * (a - mean(a) - h * mean(a * h))``.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; out[1] and out[2] have shape `normalized_shape`, also without a weight.",
)
layer_norm_backward.batch("code")
layer_norm_backward.slices(grad=0, input=0, mean=0, rstd=0, result0=0, result1="sum", result2="sum")
layer_norm_backward_input = Operator(
    "layer_norm_backward_input(Tensor grad, Tensor input, Tensor mean, Tensor rstd, int[] normalized_shape) -> Tensor",
    doc="The derivative of `layer_norm` without weight and bias: the first result of `layer_norm_backward`.",
    dtypes="floating",
    internal=True,
    kernel="optional; in[2] and in[3] have as many dimensions as in[1], and float32 for halves.",
)
layer_norm_backward_input.batch(
    "leading", grad="all", input="all", mean="all", rstd="all", normalized_shape="same"
)
layer_norm_backward_input.slices(grad=0, input=0, mean=0, rstd=0, result=0)
centre = Composite(
    "norm_centre(Tensor grad, Tensor normal, int[] dims) -> Tensor",
    doc="``grad - mean(grad) - normal * mean(grad * normal)`` over `dims`: the part of a gradient that passes through a normalisation.",
    dtypes="floating",
    internal=True,
    widens=True,
)
average = Composite(
    "norm_mean(Tensor saved, Tensor input, int[] dims) -> Tensor",
    doc="`saved`, which is the mean of `input` over `dims` without history, with that of `input`.",
    dtypes="floating",
    internal=True,
    widens=True,
)
variance = Composite(
    "norm_var(Tensor saved, Tensor input, int[] dims) -> Tensor",
    doc="`saved`, the variance of `input` over `dims` plus any constant and without history, with that of `input`.",
    dtypes="floating",
    internal=True,
    widens=True,
)


@layer_norm.decompose
def _(input, normalized_shape, weight, bias, eps):
    made, _mean, _scale = native_layer_norm(input, normalized_shape, weight, bias, eps)
    return made


@native_layer_norm.shape
def _(input, normalized_shape, weight, bias):
    require("input", input.dtype, "floating")
    sizes("normalized_shape", normalized_shape)
    lead = input.ndim - len(normalized_shape)
    check(
        len(normalized_shape) > 0,
        f"`normalized_shape` must name at least one dimension; got {normalized_shape}",
    )
    check(
        lead >= 0 and list(input.shape[max(lead, 0) :]) == list(normalized_shape),
        f"`input` of shape {input.shape} must end in `normalized_shape` {normalized_shape}",
    )
    if weight is not None:
        require_same("input", input, "weight", weight)
        check(
            weight.shape == normalized_shape,
            f"`weight` must have shape `normalized_shape` {normalized_shape}; got {weight.shape}",
        )
    if bias is not None:
        require_same("input", input, "bias", bias)
        check(
            bias.shape == normalized_shape,
            f"`bias` must have shape `normalized_shape` {normalized_shape}; got {bias.shape}",
        )
    small = list(input.shape[:lead]) + [1] * len(normalized_shape)
    wide = wide_dtype(input.dtype)
    return result(input.shape, input.dtype), result(small, wide), result(small, wide)


@layer_norm.cost
@native_layer_norm.cost
def _(input, weight, bias):
    # 1 for the mean, 3 for the variance, a difference, a product; the weight, the bias
    each = 6 if weight is None else 7
    return numel(input) * (each if bias is None else each + 1)


@native_layer_norm.decompose
def _(input, normalized_shape, weight, bias, eps):
    lead = input.ndim - len(normalized_shape)
    dims = [i for i in range(lead, input.ndim)]
    x = to_dtype(input, wide_dtype(input.dtype))
    m = op.mean(x, dims, True)
    r = op.rsqrt(op.var(x, dims, correction=0, keepdim=True) + eps)
    made = (x - m) * r
    if weight is not None:
        made = made * weight
    if bias is not None:
        made = made + bias
    return to_dtype(made, input.dtype), m, r


@native_layer_norm.vjp("input", "weight", "bias")
def _(g0, input, result1, result2, weight, bias, normalized_shape):
    if weight is None and bias is None:
        only = layer_norm_backward_input(g0, input, result1, result2, normalized_shape)
        return only, only, only  # the last two are of nothing
    gx, gw, gb = layer_norm_backward(g0, input, result1, result2, weight, normalized_shape)
    return gx, gw, gb


@part
def require_normalized(grad, input, mean, rstd, normalized_shape):
    """Check the arguments of a derivative of `layer_norm`, but the weight."""
    require("grad", grad.dtype, "floating")
    require_same("grad", grad, "input", input)
    check(
        grad.shape == input.shape,
        f"`grad` of shape {grad.shape} must have the shape of `input`, {input.shape}",
    )
    lead = input.ndim - len(normalized_shape)
    check(
        lead >= 0 and list(input.shape[max(lead, 0) :]) == list(normalized_shape),
        f"`input` of shape {input.shape} must end in `normalized_shape` {normalized_shape}",
    )
    small = list(input.shape[:lead]) + [1] * len(normalized_shape)
    check(
        mean.shape == small and rstd.shape == small,
        f"`mean` and `rstd` must have shape {tuple(small)}; got {mean.shape} and {rstd.shape}",
    )
    require_saved(grad, "mean", mean)
    require_saved(grad, "rstd", rstd)


@layer_norm_backward.shape
def _(grad, input, mean, rstd, weight, normalized_shape):
    require_normalized(grad, input, mean, rstd, normalized_shape)
    if weight is not None:
        require_same("grad", grad, "weight", weight)
        check(
            weight.shape == normalized_shape,
            f"`weight` must have shape `normalized_shape` {normalized_shape}; got {weight.shape}",
        )
    return (
        result(input.shape, grad.dtype),
        result(normalized_shape, grad.dtype),
        result(normalized_shape, grad.dtype),
    )


@layer_norm_backward_input.shape
def _(grad, input, mean, rstd, normalized_shape):
    require_normalized(grad, input, mean, rstd, normalized_shape)
    return result(input.shape, grad.dtype)


@layer_norm_backward_input.cost
def _(grad):
    # 2 for the normalised input, 3 for means, 4 for the gradient of the input
    return 9 * numel(grad)


@layer_norm_backward_input.decompose
def _(grad, input, mean, rstd, normalized_shape):
    dims = [i for i in range(input.ndim - len(normalized_shape), input.ndim)]
    return to_dtype(rstd * centre(grad * 1.0, (input - mean) * rstd, dims), grad.dtype)


@layer_norm_backward.cost
def _(grad, weight):
    # 2 for the normalised input, 3 for means, 4 for the gradient of the input, 3 for those of weight
    # and bias; a product with the weight
    return numel(grad) * (12 if weight is None else 13)


@layer_norm_backward.decompose
def _(grad, input, mean, rstd, weight, normalized_shape):
    lead = input.ndim - len(normalized_shape)
    dims = [i for i in range(lead, input.ndim)]
    normal = (input - mean) * rstd
    scaled = grad * 1.0 if weight is None else grad * weight
    gx = to_dtype(rstd * centre(scaled, normal, dims), grad.dtype)
    if lead == 0:
        return gx, to_dtype(grad * normal, grad.dtype), grad * 1.0
    rows = [i for i in range(lead)]
    return gx, to_dtype(op.sum(grad * normal, rows), grad.dtype), op.sum(grad, rows)


# the gradient through the statistics is part of the gradient of input
layer_norm_backward.constant("mean", "rstd")
layer_norm_backward_input.constant("mean", "rstd")


@layer_norm_backward_input.vjp("grad", "input")
def _(g, grad, input, mean, rstd, normalized_shape):
    # mean and rstd depend on input: their part is in the gradient of input
    dims = [i for i in range(input.ndim - len(normalized_shape), input.ndim)]
    r = op.rsqrt(op.norm_var(1.0 / (rstd * rstd), input, dims))
    normal = (input - op.norm_mean(mean, input, dims)) * r
    along = op.mean(grad * normal, dims, True)
    other = op.mean(g * normal, dims, True)
    by_r = op.mean(g * centre(grad, normal, dims), dims, True)
    gx = r * centre(-r * (g * along + grad * other), normal, dims) - by_r * r * r * normal
    return to_dtype(r * centre(g, normal, dims), grad.dtype), to_dtype(gx, grad.dtype)


@layer_norm_backward.vjp("grad", "input", "weight")
def _(g0, g1, g2, grad, input, mean, rstd, weight, normalized_shape):
    # mean and rstd depend on input: their part is in the gradient of input
    lead = input.ndim - len(normalized_shape)
    dims = [i for i in range(lead, input.ndim)]
    rows = [i for i in range(lead)]
    r = op.rsqrt(op.norm_var(1.0 / (rstd * rstd), input, dims))
    normal = (input - op.norm_mean(mean, input, dims)) * r
    scaled = grad * 1.0 if weight is None else grad * weight
    q = r * centre(g0, normal, dims)
    along = op.sum(scaled * normal, dims, True) / numel(normalized_shape)
    other = op.sum(g0 * normal, dims, True) / numel(normalized_shape)
    by_normal = g1 * grad - r * (g0 * along + scaled * other)
    by_r = op.sum(g0 * centre(scaled, normal, dims), dims, True) / numel(normalized_shape)
    gx = r * centre(by_normal, normal, dims) - by_r * r * r * normal
    gg = (q if weight is None else q * weight) + g1 * normal + g2
    gw = q * grad if lead == 0 else op.sum(q * grad, rows)
    return to_dtype(gg, grad.dtype), to_dtype(gx, grad.dtype), to_dtype(gw, grad.dtype)


@centre.decompose
def _(grad, normal, dims):
    return grad - op.mean(grad, dims, True) - normal * op.mean(grad * normal, dims, True)


@average.decompose
def _(saved, input, dims):
    live = op.mean(input, dims, True)
    return saved + (live - op.detach(live))


@variance.decompose
def _(saved, input, dims):
    live = op.var(input, dims, correction=0, keepdim=True)
    return saved + (live - op.detach(live))
