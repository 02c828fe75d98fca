"""Test data of normalization/layer_norm: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.normalization.layer_norm import (
    average,
    centre,
    layer_norm,
    layer_norm_backward,
    layer_norm_backward_input,
    native_layer_norm,
    variance,
)


# ---- references ----------------------------------------------------------------------------------
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
        result = (input - m) * r
    result = result if weight is None else result * weight
    result = result if bias is None else result + bias
    return result.astype(input.dtype), m.astype(input.dtype), r.astype(input.dtype)


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
for each in (average, variance):
    each.reference(lambda saved, input, dims: saved)


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


@layer_norm_backward_input.reference
def _(grad, input, mean, rstd, normalized_shape):
    return layer_norm_backward.reference_function(grad, input, mean, rstd, None, normalized_shape)[
        0
    ]


# ---- samples -------------------------------------------------------------------------------------
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
        # mean and rstd depend on input here, so finite differences of input alone are not the
        # derivative
        yield s(
            s.array(*x.shape), x, m.astype("float32"), r.astype("float32"), weight, shape
        ).without_gradient()


@layer_norm_backward_input.samples
def _(s):
    for lead, shape in (((3,), (5,)), ((2, 3), (4,)), ((2,), (3, 4)), ((), (6,)), ((1,), (3000,))):
        x = s.array(*lead, *shape)
        m, r = _statistics(x, tuple(range(len(lead), x.ndim)), 1e-5)
        yield s(
            s.array(*x.shape), x, m.astype("float32"), r.astype("float32"), shape
        ).without_gradient()


centre.samples(
    lambda s: iter([s(s.array(3, 4), s.array(3, 4), (1,)), s(s.array(3, 4), s.array(3, 4), (0,))])
)


# the result is `saved`, the derivative that of the statistic: finite differences do not show it
@average.samples
def _(s):
    x = s.array(3, 4)
    yield s(x.mean(1, keepdims=True), x, (1,)).without_gradient()


@variance.samples
def _(s):
    x = s.array(3, 4)
    yield s(x.var(1, keepdims=True), x, (1,)).without_gradient()


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
for each in (centre, average, variance):
    each.error(
        "IndexError",
        lambda s: s(s.array(2, 3), s.array(2, 3), (2,)),
        contains=["dim", "(2, 3)", "2"],
    )
layer_norm_backward.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2, 4), s.array(2, 1), s.array(2, 1), None, (4,)),
    contains=["layer_norm_backward", "grad", "(2, 3)", "(2, 4)"],
)

layer_norm_backward_input.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2, 4), s.array(2, 1), s.array(2, 1), (4,)),
    contains=["layer_norm_backward_input", "grad", "(2, 3)", "(2, 4)"],
)
