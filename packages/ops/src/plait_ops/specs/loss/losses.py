"""Losses of pairs of tensors. `reduction` is "mean", "sum" or "none"."""

import numpy as np

from plait_ops.calls import (
    abs,
    lt,
    mean,
    reduce_loss,
    square,
    sub,
    sum,
    where,
)
from plait_ops.spec import Composite
from plait_ops.words import check, part


@part
def known_reduction(reduction):
    """Check the name of a reduction."""
    check(
        reduction in ("mean", "sum", "none"),
        f'`reduction` must be "mean", "sum" or "none"; got "{reduction}"',
        "ValueError",
    )


reduction_ = Composite(
    "reduce_loss(Tensor self, str reduction) -> Tensor",
    doc="`self`, its sum or its mean, as `reduction` says.",
    dtypes="floating",
    internal=True,
)


@reduction_.decompose
def _(self, reduction):
    known_reduction(reduction)
    if reduction == "mean":
        return mean(self)
    if reduction == "sum":
        return sum(self)
    return self


def _reduced(values, reduction):
    return {"mean": np.mean, "sum": np.sum, "none": lambda x: x}[reduction](values).astype(
        values.dtype
    )


@reduction_.reference
def _(self, reduction):
    return _reduced(self, reduction)


reduction_.samples(
    lambda s: iter([s(s.array(2, 3), "mean"), s(s.array(2, 3), "sum"), s(s.array(2, 3), "none")])
)
reduction_.error(
    "ValueError", lambda s: s(s.array(2), "max"), contains=["reduce_loss", "reduction", "max"]
)


# ---- of pairs of tensors -------------------------------------------------------------------------------------------
def _loss(schema, formula, example, more=""):
    name = schema.partition("(")[0]
    operator = Composite(
        schema,
        doc=f"""
    {formula}, then the mean or sum of all, or with `reduction` "none" each one.

    Shapes: `input` and `target` broadcast. Dtypes: floating-point dtypes.
    Raises: ValueError for another `reduction`{more}, ShapeError if the shapes do not broadcast.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([0.0, 0.5]), pc.tensor([1.0, 0.5])).item()
    {example}
    """,
        dtypes="floating",
        method=False,
    )
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
    return operator


mse_loss = _loss(
    'mse_loss(Tensor input, Tensor target, str reduction="mean") -> Tensor',
    "``(input - target) ** 2``",
    "0.5",
)
l1_loss = _loss(
    'l1_loss(Tensor input, Tensor target, str reduction="mean") -> Tensor',
    "``abs(input - target)``",
    "0.5",
)
smooth_l1_loss = _loss(
    'smooth_l1_loss(Tensor input, Tensor target, str reduction="mean", float beta=1.0) -> Tensor',
    "With ``d = abs(input - target)``: ``d ** 2 / (2 * beta)`` where d is below `beta`, ``d - beta / 2`` elsewhere",
    "0.25",
    " or a negative `beta`",
)
huber_loss = _loss(
    'huber_loss(Tensor input, Tensor target, str reduction="mean", float delta=1.0) -> Tensor',
    "With ``d = abs(input - target)``: ``d ** 2 / 2`` where d is at most `delta`, ``delta * (d - delta / 2)`` elsewhere",
    "0.25",
    " or a `delta` that is not positive",
)


@mse_loss.decompose
def _(input, target, reduction):
    return reduce_loss(square(sub(input, target)), reduction)


@l1_loss.decompose
def _(input, target, reduction):
    return reduce_loss(abs(sub(input, target)), reduction)


@smooth_l1_loss.decompose
def _(input, target, reduction, beta):
    check(beta >= 0.0, f"`beta` must not be negative; got {beta}", "ValueError")
    d = abs(sub(input, target))
    if beta == 0.0:
        return reduce_loss(d, reduction)
    return reduce_loss(where(lt(d, beta), square(d) * (0.5 / beta), d - 0.5 * beta), reduction)


@huber_loss.decompose
def _(input, target, reduction, delta):
    check(delta > 0.0, f"`delta` must be positive; got {delta}", "ValueError")
    d = abs(sub(input, target))
    return reduce_loss(where(lt(d, delta), square(d) * 0.5, (d - 0.5 * delta) * delta), reduction)


@mse_loss.reference
def _(input, target, reduction="mean"):
    return _reduced((input - target) ** 2, reduction)


@l1_loss.reference
def _(input, target, reduction="mean"):
    return _reduced(np.abs(input - target), reduction)


@smooth_l1_loss.reference
def _(input, target, reduction="mean", beta=1.0):
    d = np.abs(input - target)
    return _reduced(
        np.where(d < beta, d * d / (2 * beta), d - beta / 2).astype(d.dtype) if beta else d,
        reduction,
    )


@huber_loss.reference
def _(input, target, reduction="mean", delta=1.0):
    d = np.abs(input - target)
    return _reduced(
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
