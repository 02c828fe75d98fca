"""Test data of normalization/batch_norm: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops import calls as op
from plait_ops.specs.normalization.batch_norm import (
    batch_norm,
    batch_norm_activation,
    batch_norm_activation_backward,
    batch_norm_add_activation_backward,
    batch_norm_backward,
    move_statistics,
    native_batch_norm,
    native_batch_norm_activation,
    native_batch_norm_add_activation,
    normalized_by,
)


def _channels(x):
    return [1, x.shape[1]] + [1] * (x.ndim - 2)


# ---- references ----------------------------------------------------------------------------------
def _apart(x):
    return tuple(i for i in range(x.ndim) if i != 1)


@native_batch_norm.reference
def _(input, weight, bias, eps):
    x, wide = input.astype("float64"), _channels(input)
    with np.errstate(all="ignore"):
        m, v = x.mean(axis=_apart(x)), x.var(axis=_apart(x))
        result = (x - m.reshape(wide)) / np.sqrt(v.reshape(wide) + eps)
    result = result if weight is None else result * weight.reshape(wide)
    result = result if bias is None else result + bias.reshape(wide)
    return result.astype(input.dtype), m.astype(input.dtype), v.astype(input.dtype)


@batch_norm_backward.reference
def _(grad, input, mean, var, weight, eps):
    wide, dims = _channels(input), _apart(input)
    r = 1 / np.sqrt(var + np.asarray(eps, var.dtype)).reshape(wide)
    normal = (input - mean.reshape(wide)) * r
    with np.errstate(all="ignore"):
        gx = r * op.norm_centre(
            grad if weight is None else grad * weight.reshape(wide), normal, dims
        )
    return gx, (grad * normal).sum(axis=dims), grad.sum(axis=dims)


@batch_norm.reference
def _(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    if input.ndim == 1:
        return input.copy()
    if training:
        result, m, v = native_batch_norm(input, weight, bias, eps)
        if running_mean is not None:
            n = input.size // input.shape[1]
            running_mean[...] = (1 - momentum) * running_mean + momentum * m
            running_var[...] = (1 - momentum) * running_var + momentum * v * n / (n - 1)
        return result
    return normalized_by(input, running_mean, running_var, weight, bias, eps)


@move_statistics.reference
def _(running_mean, running_var, mean, var, momentum, var_momentum):
    running_mean[...] = (1 - momentum) * running_mean + momentum * mean
    running_var[...] = (1 - momentum) * running_var + var_momentum * var
    return running_mean


@move_statistics.samples
def _(s):
    for c in (1, 3):
        yield s(s.array(c), s.array(c), s.array(c), s.array(c), 0.1, 0.25)


move_statistics.error(
    "ShapeError",
    lambda s: s(s.array(3), s.array(3), s.array(2), s.array(3), 0.1, 0.1),
    contains=["`mean`", "(3,)", "(2,)"],
)


@normalized_by.reference
def _(input, mean, var, weight, bias, eps):
    wide = _channels(input)
    result = (input - mean.reshape(wide)) / np.sqrt(
        var.reshape(wide) + np.asarray(eps, input.dtype)
    )
    result = result if weight is None else result * weight.reshape(wide)
    return result if bias is None else result + bias.reshape(wide)


@normalized_by.samples
def _(s):
    for shape in ((40, 2), (4, 3, 20)):
        c = shape[1]
        arguments = s.array(*shape), s.array(c), s.array(c, low=0.5, high=2.0)
        yield s(*arguments, s.array(c), s.array(c), 1e-5)
        yield s(*arguments, None, None, 0.1)


normalized_by.error(
    "ShapeError",
    lambda s: s(s.array(3, 2), s.array(3), s.array(2), None, None, 1e-5),
    contains=["(3,)"],
)


def activated(x, activation, low, high, slope):
    if activation == "relu":
        return np.maximum(x, 0)
    if activation == "hardtanh":
        return np.clip(x, low, high)
    if activation == "leaky_relu":
        return np.where(x > 0, x, slope * x)
    if activation == "silu":
        return x / (1 + np.exp(-x))
    return x * np.clip(x + 3, 0, 6) / 6


def _slopes(x, activation, low, high, slope):
    """The derivative at x; of straight lines x may be the activation's result."""
    if activation == "relu":
        return x > 0
    if activation == "hardtanh":
        return (x > low) & (x < high)
    if activation == "leaky_relu":
        return np.where(x > 0, 1, slope)
    if activation == "silu":
        share = 1 / (1 + np.exp(-x))
        return share * (1 + x * (1 - share))
    return np.where(x <= -3, 0, np.where(x < 3, x / 3 + 0.5, 1))


@native_batch_norm_activation.reference
def _(input, weight, bias, eps, activation, min_val, max_val, negative_slope):
    x = input.astype("float64")
    result, m, v = native_batch_norm(x, weight, bias, eps)
    result = activated(result, activation, min_val, max_val, negative_slope)
    return tuple(each.astype(input.dtype) for each in (result, m, v))


@native_batch_norm_add_activation.reference
def _(input, residual, weight, bias, eps, activation, min_val, max_val, negative_slope):
    result, m, v = native_batch_norm(input.astype("float64"), weight, bias, eps)
    result = activated(result + residual, activation, min_val, max_val, negative_slope)
    return tuple(each.astype(input.dtype) for each in (result, m, v))


@batch_norm_activation_backward.reference
def _(grad, input, mean, var, weight, bias, eps, activation, min_val, max_val, negative_slope):
    wide = _channels(input)
    seen = (input - mean.reshape(wide)) / np.sqrt(var.reshape(wide) + np.asarray(eps, var.dtype))
    seen = seen if weight is None else seen * weight.reshape(wide)
    seen = seen if bias is None else seen + bias.reshape(wide)
    passed = grad * _slopes(seen, activation, min_val, max_val, negative_slope)
    return batch_norm_backward(passed.astype(grad.dtype), input, mean, var, weight, eps)


@batch_norm_add_activation_backward.reference
def _(grad, output, input, mean, var, weight, eps, activation, min_val, max_val, negative_slope):
    passed = grad * _slopes(output, activation, min_val, max_val, negative_slope)
    passed = passed.astype(grad.dtype)
    return *batch_norm_backward(passed, input, mean, var, weight, eps), passed


@batch_norm_activation.reference
def _(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
    *,
    activation="relu",
    residual=None,
    min_val=0.0,
    max_val=6.0,
    negative_slope=0.01,
):
    result = batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    result = result if residual is None else result + residual
    result = activated(result, activation, min_val, max_val, negative_slope)
    return result.astype(input.dtype)


# ---- samples -------------------------------------------------------------------------------------
def _statistics(s, c, dtype="float32"):
    return s.array(c, dtype=dtype), s.array(c, dtype=dtype, low=0.5, high=2.0)


def _call(s, input, running_mean, running_var, weight=None, bias=None, *rest, **options):
    return s(input, weight, bias, running_mean, running_var, *rest, **options)


@batch_norm.samples
def _(s):
    yield _call(s, s.array(4, 3, 2, 2), None, None, s.array(3), s.array(3), True)
    yield _call(s, s.array(4, 3, 2, 2), *_statistics(s, 3), s.array(3), s.array(3), True, 0.3)
    yield _call(s, s.array(4, 3, 2, 2), *_statistics(s, 3), s.array(3), s.array(3), False)
    yield _call(s, s.array(5, 3), *_statistics(s, 3), training=True)
    yield _call(s, s.array(5, 3), *_statistics(s, 3))
    yield _call(s, s.array(5, 3), *_statistics(s, 3), None, s.array(3), eps=0.1)
    yield _call(s, s.array(2, 3, 5), *_statistics(s, 3), s.array(3), None, True, 1.0)
    yield _call(s, s.array(2, 2, 3, 2, 2), *_statistics(s, 2), s.array(2), None, False)
    yield _call(s, s.strided(4, 3, 2, 2), *_statistics(s, 3), s.strided(3), s.backwards(3), True)
    yield _call(
        s, s.array(4, 2, 2, 3).transpose(0, 3, 1, 2), *_statistics(s, 3), s.array(3), None, True
    )
    yield _call(s, s.array(4, 3, dtype="float64"), *_statistics(s, 3, "float64"), training=True)
    yield (
        _call(s, s.array(64, 2, 9, 9) + np.float32(30), None, None, training=True)
        .loosely(20)
        .without_gradient()
    )
    yield _call(s, s.array(0, 3, 2), *_statistics(s, 3), s.array(3))
    yield _call(s, s.array(0), s.array(0), s.array(0))


@native_batch_norm.samples
def _(s):
    # mean and variance are for the derivative and the running statistics only and have no gradient
    yield s(s.array(4, 3, 2, 2), s.array(3), s.array(3), 1e-5).without_gradient()
    yield s(s.array(4, 3), None, s.array(3), 0.1).without_gradient()
    yield s(s.array(4, 3, 5), s.array(3), None, 1e-5).without_gradient()
    yield s(s.strided(4, 3, 2, 2), None, None, 1e-5).without_gradient()
    yield s(
        s.array(4, 2, 2, 3, dtype="float64").transpose(0, 3, 1, 2), None, None, 1e-5
    ).without_gradient()


@batch_norm_backward.samples
def _(s):
    for shape in ((4, 3, 2, 2), (5, 3), (2, 3, 4)):
        x = s.array(*shape)
        m, v = x.mean(axis=_apart(x)), x.var(axis=_apart(x))
        weight = s.array(3) if len(shape) > 2 else None
        # mean and var depend on input here, so finite differences of input alone are not the
        # derivative
        yield s(s.array(*shape), x, m, v, weight, 1e-5).without_gradient()
    nan = s.array(3) * np.float32("nan")  # the statistics of no values
    yield s(s.array(0, 3), s.array(0, 3), nan, nan, s.array(3), 1e-5).without_gradient()


_KINDS = ("relu", "hardtanh", "leaky_relu", "silu", "hardswish")
_LINES = ("relu", "hardtanh", "leaky_relu")  # their derivative follows from the result
_NUMBERS = (-0.5, 0.75, 0.1)


def _lay(s, number):
    """An input with channels: several layouts in turn."""
    if number % 3 == 0:
        return s.array(4, 3, 3, 3)
    return s.strided(4, 3, 5) if number % 3 == 1 else s.array(5, 2, 2, 3).transpose(0, 3, 1, 2)


@batch_norm_activation.samples
def _(s):
    for number, kind in enumerate(_KINDS):
        for training in (True, False):
            x = _lay(s, number)
            options = {"activation": kind, "training": training}
            if number % 2:
                options["residual"] = s.array(*x.shape)
            yield _call(s, x, *_statistics(s, 3), s.array(3), s.array(3), **options)
    yield _call(s, s.array(5, 3), None, None, None, s.array(3), True)
    bounds = {"activation": "hardtanh", "min_val": -0.5, "max_val": 0.75}
    residual = s.array(4, 3, 3, 3)
    yield _call(s, s.array(4, 3, 3, 3), None, None, training=True, residual=residual, **bounds)
    sloped = {"activation": "leaky_relu", "negative_slope": -0.25, "residual": residual}
    yield _call(s, s.array(4, 3, 3, 3), None, None, training=True, **sloped)
    yield _call(s, s.array(0, 3, 2), *_statistics(s, 3), s.array(3))


@native_batch_norm_activation.samples
def _(s):
    for number, kind in enumerate(_KINDS):
        bias = s.array(3) if number % 2 else None
        yield s(_lay(s, number), s.array(3), bias, 1e-5, kind, *_NUMBERS).without_gradient()


@native_batch_norm_add_activation.samples
def _(s):
    for number, kind in enumerate(_LINES):
        x = _lay(s, number)
        yield s(
            x, s.array(*x.shape), s.array(3), s.array(3), 1e-5, kind, *_NUMBERS
        ).without_gradient()


def _of_batch(x):
    return x, x.mean(axis=_apart(x)), x.var(axis=_apart(x))


@batch_norm_activation_backward.samples
def _(s):
    for number, kind in enumerate(_KINDS):
        x = _lay(s, number)
        bias = s.array(3) if number % 2 else None
        yield s(
            s.array(*x.shape), *_of_batch(x), s.array(3), bias, 1e-5, kind, *_NUMBERS
        ).without_gradient()


@batch_norm_add_activation_backward.samples
def _(s):
    for number, kind in enumerate(_LINES):
        x = _lay(s, number)
        weight = s.array(3) if number % 2 else None
        yield s(
            s.array(*x.shape), s.array(*x.shape), *_of_batch(x), weight, 1e-5, kind, *_NUMBERS
        ).without_gradient()


batch_norm_activation.error(
    "ValueError",
    lambda s: _call(s, s.array(2, 3), None, None, training=True, activation="tanh"),
    contains=["batch_norm_activation", "activation", "hardswish", "tanh"],
)
batch_norm_activation.error(
    "ShapeError",
    lambda s: _call(s, s.array(2, 3), None, None, training=True, residual=s.array(2, 2)),
    contains=["residual", "(2, 2)", "(2, 3)"],
)
batch_norm_activation.error(
    "ShapeError",
    lambda s: _call(s, s.array(1, 3), None, None, training=True),
    contains=["batch_norm_activation", "more than one", "(1, 3)"],
)
native_batch_norm_activation.error(
    "ValueError",
    lambda s: s(s.array(2, 3), None, None, 1e-5, "gelu", *_NUMBERS),
    contains=["activation", "gelu"],
)
native_batch_norm_add_activation.error(
    "ValueError",
    lambda s: s(s.array(2, 3), s.array(2, 3), None, None, 1e-5, "silu", *_NUMBERS),
    contains=["activation", "silu"],
)
batch_norm_activation_backward.error(
    "ShapeError",
    lambda s: s(
        s.array(2, 3), s.array(2, 4), s.array(4), s.array(4), None, None, 1e-5, "relu", *_NUMBERS
    ),
    contains=["grad", "(2, 3)", "(2, 4)"],
)
batch_norm_add_activation_backward.error(
    "ShapeError",
    lambda s: s(
        s.array(2, 3),
        s.array(2, 2),
        s.array(2, 3),
        s.array(3),
        s.array(3),
        None,
        1e-5,
        "relu",
        *_NUMBERS,
    ),
    contains=["output", "(2, 2)", "(2, 3)"],
)
batch_norm.error(
    "ShapeError",
    lambda s: _call(s, s.array(3), None, None, training=True),
    contains=["batch_norm", "input", "(3,)"],
)
batch_norm.error(
    "ShapeError",
    lambda s: _call(s, s.array(1, 3), None, None, training=True),
    contains=["batch_norm", "more than one", "(1, 3)"],
)
batch_norm.error(
    "ShapeError",
    lambda s: _call(s, s.array(2, 3), *_statistics(s, 4)),
    contains=["batch_norm", "running_mean", "(3,)", "(4,)", "(2, 3)"],
)
batch_norm.error(
    "ValueError",
    lambda s: _call(s, s.array(2, 3), None, None),
    contains=["batch_norm", "running_mean", "training"],
)
batch_norm.error(
    "ValueError",
    lambda s: _call(s, s.array(2, 3), s.array(3), None),
    contains=["batch_norm", "running_var"],
)
batch_norm.error(
    "DTypeError",
    lambda s: _call(s, s.array(2, 3), *_statistics(s, 3, "float64")),
    contains=["batch_norm", "running_mean", "float32", "float64"],
)
batch_norm.error(
    "DTypeError",
    lambda s: _call(s, s.array(2, 3, dtype="int64"), None, None, training=True),
    contains=["batch_norm", "input", "int64"],
)
for training in (True, False):
    for at, name in enumerate(("weight", "bias")):
        batch_norm.error(
            "ShapeError",
            lambda s, at=at, training=training: _call(
                s, s.array(2, 3), *_statistics(s, 3), *([None] * at), s.array(2), training=training
            ),
            contains=["batch_norm", name, "(3,)", "(2,)", "(2, 3)"],
        )
native_batch_norm.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2), None, 1e-5),
    contains=["batch_norm", "weight", "(3,)", "(2,)", "(2, 3)"],
)
batch_norm_backward.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2, 3), s.array(2), s.array(3), None, 1e-5),
    contains=["batch_norm_backward", "mean", "var", "(3,)", "(2,)"],
)
batch_norm_backward.error(
    "DTypeError",
    lambda s: s(
        s.array(2, 3), s.array(2, 3), s.array(3), s.array(3), s.array(3, dtype="float64"), 1e-5
    ),
    contains=["batch_norm_backward", "`grad` and `weight`", "float32 and float64"],
)
