"""Layer normalisation, and what its derivative shares with batch normalisation's."""

import numpy as np

from plait_ops.calls import mean, rsqrt, sum, var
from plait_ops.spec import Composite, Operator
from plait_ops.words import check, numel, require, require_same, result, sizes

layer_norm = Composite(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-5) -> Tensor",
    doc="""
    ``(input - mean) / sqrt(var + eps) * weight + bias``, mean and (biased) variance taken over the last
    ``len(normalized_shape)`` dimensions (Ba et al. 2016).

    Shapes: `input` (*, *normalized_shape), which is the result's; `weight` and `bias` normalized_shape.
    Dtypes: floating-point, the same for all. Raises: ShapeError or DTypeError otherwise.

    >>> import plait_core as pc
    >>> pc.layer_norm(pc.tensor([[1.0, 3.0]]), (2,), eps=0.0).tolist()
    [[-1.0, 1.0]]
    """,
    dtypes="floating",
    method=False,
)
native_layer_norm = Operator(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps)"
    " -> (Tensor, Tensor, Tensor)",
    doc="""
    `layer_norm` with what its derivative needs: the result, the mean and ``1 / sqrt(var + eps)``, both with 1 in place of
    the normalised dimensions. Those two pass no gradient on.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; the statistics have as many dimensions as in[0].",
)
layer_norm_backward = Operator(
    "layer_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int[] normalized_shape)"
    " -> (Tensor, Tensor, Tensor)",
    doc="""
    The derivative of `layer_norm` by input, weight and bias. With ``h = (input - mean) * rstd`` and ``a = grad * weight``
    the first is ``rstd * (a - mean(a) - h * mean(a * h))``.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; out[1] and out[2] have shape `normalized_shape`, also without a weight.",
)
centre = Composite(
    "norm_centre(Tensor grad, Tensor normal, int[] dims) -> Tensor",
    doc="``grad - mean(grad) - normal * mean(grad * normal)`` over `dims`: what normalising leaves of a gradient.",
    dtypes="floating",
    internal=True,
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
    return result(input.shape, input.dtype), result(small, input.dtype), result(small, input.dtype)


@native_layer_norm.decompose
def _(input, normalized_shape, weight, bias, eps):
    lead = input.ndim - len(normalized_shape)
    dims = [i for i in range(lead, input.ndim)]
    m = mean(input, dims, True)
    r = rsqrt(var(input, dims, correction=0, keepdim=True) + eps)
    made = (input - m) * r
    if weight is not None:
        made = made * weight
    if bias is not None:
        made = made + bias
    return made, m, r


@native_layer_norm.vjp("input", "weight", "bias")
def _(g0, input, result1, result2, weight, normalized_shape):
    gx, gw, gb = layer_norm_backward(g0, input, result1, result2, weight, normalized_shape)
    return gx, gw, gb


@layer_norm_backward.shape
def _(grad, input, mean, rstd, weight, normalized_shape):
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
    require_same("grad", grad, "mean", mean)
    require_same("grad", grad, "rstd", rstd)
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


@layer_norm_backward.decompose
def _(grad, input, mean, rstd, weight, normalized_shape):
    lead = input.ndim - len(normalized_shape)
    dims = [i for i in range(lead, input.ndim)]
    normal = (input - mean) * rstd
    scaled = grad * 1.0 if weight is None else grad * weight
    gx = rstd * centre(scaled, normal, dims)
    if lead == 0:
        return gx, grad * normal, grad * 1.0
    rows = [i for i in range(lead)]
    return gx, sum(grad * normal, rows), sum(grad, rows)


# what goes through the statistics is counted in input
layer_norm_backward.constant("mean", "rstd")


@layer_norm_backward.vjp("grad", "input", "weight")
def _(g0, g1, g2, grad, input, mean, rstd, weight, normalized_shape):
    # mean and rstd are functions of input: their share is in the gradient of input
    lead = input.ndim - len(normalized_shape)
    dims = [i for i in range(lead, input.ndim)]
    rows = [i for i in range(lead)]
    normal = (input - mean) * rstd
    scaled = grad * 1.0 if weight is None else grad * weight
    q = rstd * centre(g0, normal, dims)
    along = sum(scaled * normal, dims, True) / numel(normalized_shape)
    other = sum(g0 * normal, dims, True) / numel(normalized_shape)
    by_normal = g1 * grad - rstd * (g0 * along + scaled * other)
    by_rstd = sum(g0 * centre(scaled, normal, dims), dims, True) / numel(normalized_shape)
    gx = rstd * centre(by_normal, normal, dims) - by_rstd * rstd * rstd * normal
    gg = (q if weight is None else q * weight) + g1 * normal + g2
    gw = q * grad
    return gg, gx, gw if lead == 0 else sum(gw, rows)


@centre.decompose
def _(grad, normal, dims):
    return grad - mean(grad, dims, True) - normal * mean(grad * normal, dims, True)


# ---- references ----------------------------------------------------------------------------------------------------
def _statistics(x, dims, eps):
    wide = x.astype("float64")
    return wide.mean(axis=dims, keepdims=True), 1 / np.sqrt(
        wide.var(axis=dims, keepdims=True) + eps
    )


@native_layer_norm.reference
def _(input, normalized_shape, weight, bias, eps):
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    with np.errstate(all="ignore"):
        m, r = _statistics(input, dims, eps)
        made = (input - m) * r
    made = made if weight is None else made * weight
    made = made if bias is None else made + bias
    return made.astype(input.dtype), m.astype(input.dtype), r.astype(input.dtype)


layer_norm.reference(
    lambda input, normalized_shape, weight=None, bias=None, eps=1e-5: native_layer_norm(
        input, normalized_shape, weight, bias, eps
    )[0]
)
centre.reference(
    lambda grad, normal, dims: (
        grad
        - grad.mean(axis=tuple(dims), keepdims=True)
        - normal * (grad * normal).mean(axis=tuple(dims), keepdims=True)
    )
)


@layer_norm_backward.reference
def _(grad, input, mean, rstd, weight, normalized_shape):
    lead = input.ndim - len(normalized_shape)
    normal = (input - mean) * rstd
    with np.errstate(all="ignore"):
        gx = rstd * centre(
            grad if weight is None else grad * weight, normal, range(lead, input.ndim)
        )
    rows = tuple(range(lead))
    return gx, (grad * normal).sum(axis=rows), grad.sum(axis=rows)


# ---- samples -------------------------------------------------------------------------------------------------------
@layer_norm.samples
def _(s):
    yield s(s.array(3, 5), (5,), s.array(5), s.array(5), 1e-5)
    yield s(s.array(3, 5), (5,), None, None, 0.1)
    yield s(s.array(2, 3, 4), (3, 4), s.array(3, 4), None, 1e-5)
    yield s(s.array(2, 3, 4), (4,), None, s.array(4), 1e-5)
    yield s(s.array(5), (5,), s.array(5), s.array(5), 1e-5)
    yield s(s.strided(3, 5), (5,), s.strided(5), s.backwards(5), 1e-5)
    yield s(s.array(4, 3, 2).transpose(1, 2, 0), (4,), s.array(4), None, 1e-5)
    yield s(s.array(3, 5, dtype="float64"), (5,), s.array(5, dtype="float64"), None, 1e-5)
    yield s(s.array(7, 300), (300,), s.array(300), s.array(300), 1e-5).without_gradient()
    yield (
        s(s.array(4, 64) + np.float32(100), (64,), None, None, 1e-5).loosely(20).without_gradient()
    )
    yield s(np.ones((2, 3), "float32"), (3,), None, None, 1e-5).without_gradient()
    yield s(s.array(0, 3), (3,), s.array(3), None, 1e-5)


# the mean and 1 / sqrt(var + eps) are for the derivative alone and pass no gradient on
native_layer_norm.samples(
    lambda s: (each.without_gradient() for each in layer_norm.sample_function(s))
)


@layer_norm_backward.samples
def _(s):
    for lead, shape, weighted in (
        ((3,), (5,), True),
        ((2, 3), (4,), False),
        ((2,), (3, 4), True),
        ((), (6,), True),
    ):
        x = s.array(*lead, *shape)
        m, r = _statistics(x, tuple(range(len(lead), x.ndim)), 1e-5)
        weight = s.array(*shape) if weighted else None
        # mean and rstd are functions of input here, so that differences of input alone are no derivative
        yield s(
            s.array(*x.shape), x, m.astype("float32"), r.astype("float32"), weight, shape
        ).without_gradient()


centre.samples(
    lambda s: iter([s(s.array(3, 4), s.array(3, 4), (1,)), s(s.array(3, 4), s.array(3, 4), (0,))])
)
for each, rest in ((layer_norm, ()), (native_layer_norm, (None, None, 1e-5))):
    name = "layer_norm"
    each.error(
        "ShapeError",
        lambda s, rest=rest: s(s.array(2, 3), (2,), *rest),
        contains=[name, "input", "normalized_shape", "(2, 3)", "(2,)"],
    )
    each.error(
        "ShapeError",
        lambda s, rest=rest: s(s.array(2, 3), (), *rest),
        contains=[name, "normalized_shape", "()"],
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), (3,), s.array(2), None, 1e-5),
        contains=[name, "weight", "(3,)", "(2,)"],
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), (3,), None, s.array(2), 1e-5),
        contains=[name, "bias", "(3,)", "(2,)"],
    )
    each.error(
        "DTypeError",
        lambda s: s(s.array(2, 3), (3,), s.array(3, dtype="float64"), None, 1e-5),
        contains=[name, "weight", "float32", "float64"],
    )
    each.error(
        "DTypeError",
        lambda s, rest=rest: s(s.array(2, 3, dtype="int64"), (3,), *rest),
        contains=[name, "input", "int64"],
    )
centre.error(
    "IndexError", lambda s: s(s.array(2, 3), s.array(2, 3), (2,)), contains=["dim", "(2, 3)", "2"]
)
layer_norm_backward.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2, 4), s.array(2, 1), s.array(2, 1), None, (4,)),
    contains=["layer_norm_backward", "grad", "(2, 3)", "(2, 4)"],
)
