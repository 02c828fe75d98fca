"""Test data of normalization/batch_norm: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.calls import (
    norm_centre,
)
from plait_ops.specs.normalization.batch_norm import (
    batch_norm,
    batch_norm_backward,
    native_batch_norm,
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
        made = (x - m.reshape(wide)) / np.sqrt(v.reshape(wide) + eps)
    made = made if weight is None else made * weight.reshape(wide)
    made = made if bias is None else made + bias.reshape(wide)
    return made.astype(input.dtype), m.astype(input.dtype), v.astype(input.dtype)


@batch_norm_backward.reference
def _(grad, input, mean, var, weight, eps):
    wide, dims = _channels(input), _apart(input)
    r = 1 / np.sqrt(var + np.asarray(eps, var.dtype)).reshape(wide)
    normal = (input - mean.reshape(wide)) * r
    with np.errstate(all="ignore"):
        gx = r * norm_centre(grad if weight is None else grad * weight.reshape(wide), normal, dims)
    return gx, (grad * normal).sum(axis=dims), grad.sum(axis=dims)


@batch_norm.reference
def _(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    if input.ndim == 1:
        return input.copy()
    wide = _channels(input)
    if training:
        made, m, v = native_batch_norm(input, weight, bias, eps)
        if running_mean is not None:
            n = input.size // input.shape[1]
            running_mean[...] = (1 - momentum) * running_mean + momentum * m
            running_var[...] = (1 - momentum) * running_var + momentum * v * n / (n - 1)
        return made
    made = (input - running_mean.reshape(wide)) / np.sqrt(
        running_var.reshape(wide) + np.asarray(eps, input.dtype)
    )
    made = made if weight is None else made * weight.reshape(wide)
    return made if bias is None else made + bias.reshape(wide)


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
