"""Test data of loss/binary_losses: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.loss.losses import reduce_loss_of
from plait_ops.specs.loss.binary_losses import (
    bce_backward,
    bce_elements,
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    clipped_log,
    logit_bce_backward,
    logit_bce_elements,
)

bce_elements.reference(
    lambda x, t: -(t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(np.log1p(-x), -100))
)

bce_elements.special_values = False  # only probabilities are allowed

bce_backward.reference(lambda g, x, t: g * (x - t) / np.maximum(x * (1 - x), 1e-12))

logit_bce_elements.reference(lambda t, x: (1 - t) * x + np.logaddexp(0, -x))

logit_bce_backward.reference(lambda g, x, t: g * (1 / (1 + np.exp(-x)) - t))


@clipped_log.reference
def _(self):
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(self), -100)


clipped_log.samples(
    lambda s: iter([s(s.array(5, low=0.1)), s(np.array([0.0, 1.0], "float32")).without_gradient()])
)
clipped_log.error(
    "DTypeError", lambda s: s(s.array(2, dtype="complex64")), contains=["clamp", "complex64"]
)


@binary_cross_entropy.reference
def _(input, target, weight=None, reduction="mean"):
    with np.errstate(divide="ignore"):
        loss = -(
            target * np.maximum(np.log(input), -100)
            + (1 - target) * np.maximum(np.log1p(-input), -100)
        )
    return reduce_loss_of(
        (loss if weight is None else loss * weight).astype(target.dtype), reduction
    )


@binary_cross_entropy.samples
def _(s):
    def p(*shape, **options):
        return s.array(*shape, low=0.05, high=0.95, **options)

    for reduction in ("mean", "sum", "none"):
        yield s(p(3, 4), p(3, 4), reduction=reduction)
    yield s(p(3, 4), p(3, 4), p(4))
    yield s(p(3, dtype="float64"), p(3, dtype="float64"))
    yield s(
        np.array([0.0, 1.0, 0.0, 1.0], "float32"), np.array([0.0, 1.0, 1.0, 0.0], "float32")
    ).without_gradient()


binary_cross_entropy.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(3)),
    contains=["binary_cross_entropy", "input", "target", "(2, 3)", "(3,)"],
)
binary_cross_entropy.error(
    "ValueError",
    lambda s: s(s.array(2, low=0.1, high=0.9), s.array(2), reduction="x"),
    contains=["reduction"],
)


@binary_cross_entropy_with_logits.reference
def _(input, target, weight=None, pos_weight=None, reduction="mean"):
    spread = np.logaddexp(0, -input) * (1 if pos_weight is None else 1 + (pos_weight - 1) * target)
    loss = (1 - target) * input + spread
    return reduce_loss_of(
        (loss if weight is None else loss * weight).astype(target.dtype), reduction
    )


@binary_cross_entropy_with_logits.samples
def _(s):
    for reduction in ("mean", "sum", "none"):
        yield s(s.array(3, 4), s.array(3, 4, low=0.0, high=1.0), reduction=reduction)
    yield s(s.array(3, 4), s.array(3, 4, low=0.0, high=1.0), s.array(4), s.array(4, low=0.5))
    yield s(s.array(6, low=-60.0, high=60.0), s.array(6, low=0.0, high=1.0))
    for one, two in (("float64", "float32"), ("float32", "float64")):
        target = s.array(4, low=0.0, high=1.0, dtype=two)
        call = s(s.array(4, dtype=one), target, s.array(4, dtype=one))
        yield call if one == "float64" else call.loosely(1e4)  # its logarithms are float32's


binary_cross_entropy_with_logits.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(3)),
    contains=["with_logits", "input", "target", "(2, 3)", "(3,)"],
)


for _wrong in (-0.25, 1.5, float("nan")):
    for _operator in (bce_elements, binary_cross_entropy):
        _operator.error(
            "ValueError",
            lambda s, wrong=_wrong: s(
                s.np.array([0.0, 1.0, wrong], "float32"), s.np.array([0.0, 1.0, 1.0], "float32")
            ),
            contains=[_operator.name, "`input`", "[0, 1]", f"{_wrong:g}"],
        )
