"""Losses of the probabilities of two classes."""

import numpy as np

from plait_ops.calls import (
    clamp_min,
    log,
    reduce_loss,
    softplus,
)
from plait_ops.spec import Composite, Pointwise
from plait_ops.specs.loss.losses import _reduced
from plait_ops.words import (
    check,
)

bce_elements = Pointwise(
    "bce_elements(Tensor input, Tensor target) -> Tensor",
    doc="``-(target * log(input) + (1 - target) * log(1 - input))`` with logarithms of at least -100.",
    dtypes="floating",
    internal=True,
    domain=(0.05, 0.95),
    reference=lambda x, t: (
        -(t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(np.log1p(-x), -100))
    ),
)
bce_backward = Pointwise(
    "bce_backward(Tensor grad, Tensor input, Tensor target) -> Tensor",
    doc="``grad * (input - target) / max(input * (1 - input), 1e-12)``: the derivative of `bce_elements`.",
    dtypes="floating",
    internal=True,
    domain=(0.05, 0.95),
    reference=lambda g, x, t: g * (x - t) / np.maximum(x * (1 - x), 1e-12),
)


@bce_elements.vjp("input")
def _(g, input, target):
    return bce_backward(g, input, target)


@bce_elements.vjp("target")
def _(g, input):
    return g * (clipped_log(1.0 - input) - clipped_log(input))


@bce_backward.vjp("grad")
def _(g, input, target):
    return bce_backward(g, input, target)


@bce_backward.vjp("input")
def _(g, grad, input, target):
    spread = clamp_min(input * (1.0 - input), 1e-12)
    return g * grad * (1.0 - (input - target) * (1.0 - 2.0 * input) / spread) / spread


@bce_backward.vjp("target")
def _(g, grad, input):
    return -g * grad / clamp_min(input * (1.0 - input), 1e-12)


clipped_log = Composite(
    "clipped_log(Tensor self) -> Tensor",
    doc="The logarithm, at least -100.",
    dtypes="floating",
    internal=True,
)


@clipped_log.decompose
def _(self):
    return clamp_min(log(self), -100.0)


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

_BCE = 'binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, str reduction="mean") -> Tensor'
binary_cross_entropy = Composite(
    _BCE,
    doc="""
    ``-weight * (target * log(input) + (1 - target) * log(1 - input))`` with logarithms of at least -100; `input` are
    probabilities. Then the mean or sum of all, or with `reduction` "none" each one.

    Shapes: `input` and `target` have one shape, `weight` broadcasts to it. Dtypes: floating-point dtypes.
    Raises: ValueError for another `reduction`, ShapeError for other shapes.

    >>> import plait_core as pc
    >>> f"{pc.binary_cross_entropy(pc.tensor([0.5]), pc.tensor([1.0])).item():.4f}"
    '0.6931'
    """,
    dtypes="floating",
    method=False,
)


@binary_cross_entropy.decompose
def _(input, target, weight, reduction):
    check(
        input.shape == target.shape,
        f"`input` and `target` must have one shape; got {input.shape} and {target.shape}",
    )
    loss = bce_elements(input, target)
    if weight is not None:
        loss = loss * weight
    return reduce_loss(loss, reduction)


@binary_cross_entropy.reference
def _(input, target, weight=None, reduction="mean"):
    with np.errstate(divide="ignore"):
        loss = -(
            target * np.maximum(np.log(input), -100)
            + (1 - target) * np.maximum(np.log1p(-input), -100)
        )
    return _reduced((loss if weight is None else loss * weight).astype(input.dtype), reduction)


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


binary_cross_entropy_with_logits = Composite(
    "binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    'str reduction="mean") -> Tensor',
    doc="""
    `binary_cross_entropy` of ``sigmoid(input)``, exact also for large inputs:
    ``weight * ((1 - target) * input + (1 + (pos_weight - 1) * target) * softplus(-input))``.

    Shapes: `input` and `target` have one shape, `weight` and `pos_weight` broadcast to it. Dtypes: floating-point dtypes.
    Raises: ValueError for another `reduction`, ShapeError for other shapes.

    >>> import plait_core as pc
    >>> f"{pc.binary_cross_entropy_with_logits(pc.tensor([0.0]), pc.tensor([1.0])).item():.4f}"
    '0.6931'
    """,
    dtypes="floating",
    method=False,
)


@binary_cross_entropy_with_logits.decompose
def _(input, target, weight, pos_weight, reduction):
    check(
        input.shape == target.shape,
        f"`input` and `target` must have one shape; got {input.shape} and {target.shape}",
    )
    spread = softplus(-input, 1.0, 40.0)
    if pos_weight is not None:
        spread = spread * (1.0 + (pos_weight - 1.0) * target)
    loss = (1.0 - target) * input + spread
    if weight is not None:
        loss = loss * weight
    return reduce_loss(loss, reduction)


@binary_cross_entropy_with_logits.reference
def _(input, target, weight=None, pos_weight=None, reduction="mean"):
    spread = np.logaddexp(0, -input) * (1 if pos_weight is None else 1 + (pos_weight - 1) * target)
    loss = (1 - target) * input + spread
    return _reduced((loss if weight is None else loss * weight).astype(input.dtype), reduction)


@binary_cross_entropy_with_logits.samples
def _(s):
    for reduction in ("mean", "sum", "none"):
        yield s(s.array(3, 4), s.array(3, 4, low=0.0, high=1.0), reduction=reduction)
    yield s(s.array(3, 4), s.array(3, 4, low=0.0, high=1.0), s.array(4), s.array(4, low=0.5))
    yield s(s.array(6, low=-60.0, high=60.0), s.array(6, low=0.0, high=1.0))


binary_cross_entropy_with_logits.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(3)),
    contains=["with_logits", "input", "target", "(2, 3)", "(3,)"],
)
