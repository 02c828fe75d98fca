"""Test data of loss/losses: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.loss.losses import (
    huber_backward,
    huber_elements,
    huber_loss,
    l1_loss,
    mse_loss,
    reduction_,
    smooth_l1_loss,
)


def reduce_loss_of(values, reduction):
    return {"mean": np.mean, "sum": np.sum, "none": lambda x: x}[reduction](values).astype(
        values.dtype
    )


@reduction_.reference
def _(self, reduction):
    return reduce_loss_of(self, reduction)


reduction_.samples(
    lambda s: iter([s(s.array(2, 3), "mean"), s(s.array(2, 3), "sum"), s(s.array(2, 3), "none")])
)
reduction_.error(
    "ValueError", lambda s: s(s.array(2), "max"), contains=["reduce_loss", "reduction", "max"]
)


def _loss(operator):
    operator.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), s.array(4)),
        contains=["broadcast", "(2, 3)", "(4,)"],
    )
    operator.error(
        "ValueError",
        lambda s: s(s.array(2), s.array(2), reduction="max"),
        contains=["reduction", "max"],
    )


_loss(mse_loss)
_loss(l1_loss)
_loss(smooth_l1_loss)
_loss(huber_loss)


@mse_loss.reference
def _(input, target, reduction="mean"):
    return reduce_loss_of((input - target) ** 2, reduction)


@l1_loss.reference
def _(input, target, reduction="mean"):
    return reduce_loss_of(np.abs(input - target), reduction)


@huber_elements.reference
def _(input, target, delta=1.0):
    d = np.abs(input - target)
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2)).astype(d.dtype)


huber_backward.reference(lambda g, x, t, delta=1.0: g * np.clip(x - t, -delta, delta))


@smooth_l1_loss.reference
def _(input, target, reduction="mean", beta=1.0):
    d = np.abs(input - target)
    return reduce_loss_of(
        np.where(d < beta, d * d / (2 * beta), d - beta / 2).astype(d.dtype) if beta else d,
        reduction,
    )


@huber_loss.reference
def _(input, target, reduction="mean", delta=1.0):
    d = np.abs(input - target)
    return reduce_loss_of(
        np.where(d <= delta, d * d / 2, delta * (d - delta / 2)).astype(d.dtype), reduction
    )


for each in (mse_loss, l1_loss, smooth_l1_loss, huber_loss):

    @each.samples
    def _(s):
        for reduction in ("mean", "sum", "none"):
            yield s(s.array(3, 4), s.array(3, 4), reduction=reduction)
        yield s(s.array(3, 4, dtype="float64"), s.array(4, dtype="float64"))


smooth_l1_loss.samples(
    lambda s: iter([s(s.array(8), s.array(8), beta=0.5), s(s.array(8), s.array(8), "sum", 2.0)])
)
huber_loss.samples(
    lambda s: iter([s(s.array(8), s.array(8), delta=0.5), s(s.array(8), s.array(8), "sum", 2.0)])
)
smooth_l1_loss.error(
    "ValueError",
    lambda s: s(s.array(2), s.array(2), beta=-1.0),
    contains=["smooth_l1_loss", "beta", "-1"],
)
huber_loss.error(
    "ValueError",
    lambda s: s(s.array(2), s.array(2), delta=0.0),
    contains=["huber_loss", "delta", "0"],
)
