"""Test data of loss/cross_entropy: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops import calls as op
from plait_ops.samples.loss.losses import reduce_loss_of
from plait_ops.samples.loss.nll_loss import (
    class_samples,
    negative_log_likelihood,
    weights_of_classes,
)
from plait_ops.specs.loss.cross_entropy import (
    cross_entropy,
    cross_entropy_backward,
    cross_entropy_forward,
    cross_entropy_smooth,
    cross_entropy_soft,
)


def _logsumexp(input, c):
    top = input.max(c, keepdims=True)
    return (np.log(np.exp(input - top).sum(c, keepdims=True)) + top).squeeze(c)


@cross_entropy_forward.reference
def _(input, target, weight, reduction, ignore_index):
    c = 1 if input.ndim > 1 else 0
    lse = np.asarray(_logsumexp(input, c))
    return negative_log_likelihood(
        input - np.expand_dims(lse, c), target, weight, reduction, ignore_index
    ), lse


@cross_entropy_backward.reference
def _(grad, input, lse, target, weight, reduction, ignore_index):
    c = 1 if input.ndim > 1 else 0
    choice = op.nll_loss_backward(grad, target, weight, input.shape, reduction, ignore_index)
    return choice - np.exp(input - np.expand_dims(lse, c)) * choice.sum(c, keepdims=True)


@cross_entropy_forward.samples
def _(s):
    for reduction in ("mean", "sum", "none"):
        yield s(s.array(4, 3), s.indices(3, 4), None, reduction, -100)
        yield s(s.array(4, 3), s.indices(3, 4), s.array(3, low=0.5), reduction, 1)
    yield s(s.array(3), s.indices(3), None, "mean", -100)
    yield s(s.array(2, 3, 4), s.indices(3, 2, 4), None, "mean", -100)
    yield s(
        s.array(3, 4, low=-300.0, high=300.0), s.indices(4, 3), None, "none", -100
    ).without_gradient()


@cross_entropy_backward.samples
def _(s):
    # second derivatives are checked through cross_entropy: lse depends on the other arguments
    x = s.array(4, 3)
    yield s(s.array(), x, _logsumexp(x, 1), s.indices(3, 4), None, "mean", -100).without_gradient()
    yield s(
        s.array(4), x, _logsumexp(x, 1), s.indices(3, 4), s.array(3), "none", 1
    ).without_gradient()


def _log_softmax(x, c):
    return x - np.expand_dims(_logsumexp(x, c), c)


@cross_entropy.reference
def _(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    c = 1 if input.ndim > 1 else 0
    logs = _log_softmax(input, c)
    columns = (1,) * c + (-1,) + (1,) * (input.ndim - 1 - c)
    if target.dtype.kind == "f":
        required = target * (1 - label_smoothing) + label_smoothing / input.shape[c]
        each = -(logs * required * (1 if weight is None else weight.reshape(columns))).sum(c)
        return reduce_loss_of(np.asarray(each).astype(input.dtype), reduction)
    weights = weights_of_classes(target, weight, input.dtype, ignore_index)
    sharp = negative_log_likelihood(logs, target, weight, "none", ignore_index)
    even = -(logs * (1 if weight is None else weight.reshape(columns))).sum(c) * (
        target != ignore_index
    )
    each = sharp * (1 - label_smoothing) + even * (label_smoothing / input.shape[c])
    if reduction == "mean":
        return (each.sum() / weights.sum()).astype(input.dtype)
    return reduce_loss_of(np.asarray(each).astype(input.dtype), reduction)


cross_entropy_smooth.reference(
    lambda input, target, weight, ignore_index, reduction, label_smoothing: cross_entropy(
        input, target, weight, ignore_index, reduction, label_smoothing
    )
)
cross_entropy_soft.reference(
    lambda input, target, weight, reduction, label_smoothing: cross_entropy(
        input, target, weight, -100, reduction, label_smoothing
    )
)


@cross_entropy.samples
def _(s):
    yield from class_samples(s)
    for reduction in ("mean", "sum", "none"):
        yield s(
            s.array(4, 3),
            s.indices(3, 4),
            s.array(3, low=0.5),
            reduction=reduction,
            label_smoothing=0.2,
            ignore_index=1,
        )
        yield s(
            s.array(4, 3),
            s.array(4, 3, low=0.0, high=1.0),
            reduction=reduction,
            label_smoothing=0.1,
        )
    yield s(s.array(2, 3, 4), s.array(2, 3, 4, low=0.0, high=1.0), s.array(3, low=0.5))
    yield s(s.array(2, 3, 4), s.indices(3, 2, 4), s.array(3, low=0.5), label_smoothing=0.3)


cross_entropy_smooth.samples(
    lambda s: iter([s(s.array(4, 3), s.indices(3, 4), None, -100, "mean", 0.2)])
)
cross_entropy_soft.samples(
    lambda s: iter([s(s.array(4, 3), s.array(4, 3, low=0.0, high=1.0), None, "sum", 0.2)])
)
cross_entropy.error(
    "ShapeError",
    lambda s: s(s.array(4, 3), s.indices(3, 3)),
    contains=["cross_entropy", "target", "(3,)", "(4, 3)"],
)
cross_entropy.error(
    "ShapeError",
    lambda s: s(s.array(4, 3), s.array(4)),
    contains=["cross_entropy", "target", "(4,)", "(4, 3)"],
)
cross_entropy.error(
    "ValueError",
    lambda s: s(s.array(4, 3), s.indices(3, 4), reduction="x"),
    contains=["reduction", "x"],
)
cross_entropy.error(
    "ValueError",
    lambda s: s(s.array(4, 3), s.indices(3, 4), label_smoothing=1.5),
    contains=["label_smoothing", "1.5"],
)
cross_entropy.error(
    "IndexError", lambda s: s(s.array(4, 3), np.array([0, 1, 3, 0])), contains=["3"]
)
cross_entropy_forward.error(
    "ShapeError",
    lambda s: s(s.array(4, 3), s.indices(3, 3), None, "mean", -100),
    contains=["target", "(3,)", "(4, 3)"],
)
cross_entropy_backward.error(
    "ShapeError",
    lambda s: s(s.array(), s.array(4, 3), s.array(3), s.indices(3, 4), None, "mean", -100),
    contains=["cross_entropy_backward", "lse", "(3,)", "(4, 3)"],
)
cross_entropy_smooth.error(
    "ValueError",
    lambda s: s(s.array(4, 3), s.indices(3, 4), None, -100, "x", 0.1),
    contains=["reduction", "x"],
)
cross_entropy_soft.error(
    "ShapeError",
    lambda s: s(s.array(4, 3), s.array(4), None, "mean", 0.1),
    contains=["target", "(4,)", "(4, 3)"],
)
