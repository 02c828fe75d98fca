"""Losses of classifiers: negative log-likelihood, cross-entropy, binary cross-entropy."""

import numpy as np

from plait_ops.calls import (
    clamp_min,
    div,
    embedding,
    eq,
    log,
    log_softmax,
    masked_fill,
    mean,
    mul,
    ones_like,
    reshape,
    sum,
)
from plait_ops.spec import Composite, Operator, Pointwise
from plait_ops.words import check, int64, is_floating, require, require_same, result


def _pick(input, target, weight, ignore_index):
    """Per place: -input[target], the weight of the target, both 0 where it is ignored; classes on axis 1."""
    x = input if input.ndim > 1 else input[None]
    t = target if input.ndim > 1 else target[None]
    keep = t != ignore_index
    at = np.where(keep, t, 0)
    picked = np.take_along_axis(x, at[:, None], 1)[:, 0]
    w = np.where(keep, 1.0 if weight is None else weight[at], 0.0)
    return (-(picked * w)).reshape(target.shape), w.reshape(target.shape)


nll_loss = Operator(
    'nll_loss(Tensor input, Tensor target, Tensor? weight=None, int ignore_index=-100, str reduction="mean") -> Tensor',
    doc="""
    ``-weight[t] * input[n, t]`` with ``t = target[n]``; "mean" divides the sum by the sum of those weights, "none"
    keeps one loss for each place. Places whose target is `ignore_index` count nothing.

    Shapes: input (n, c, *) of log-probabilities and target (n, *), or (c,) and (); weight (c,). `target` is int64.

    Raises: ShapeError if the shapes do not fit; DTypeError; ValueError for another `reduction`; IndexError if a target
    is no class.

    >>> import plait_core as pc
    >>> pc.nll_loss(pc.tensor([[-1.0, -2.0]]), pc.tensor([1])).item()
    2.0
    """,
    dtypes="floating",
    method=False,
    kernel="sum and mean give a 0-d result; none gives target's shape.",
)


@nll_loss.shape
def _(input, target, weight, reduction):
    check(
        reduction in ("mean", "sum", "none"),
        f'`reduction` must be "mean", "sum" or "none"; got "{reduction}"',
        "ValueError",
    )
    check(input.ndim > 0, f"`input` must have a dimension of classes; got shape {input.shape}")
    require("input", input.dtype, "floating")
    check(target.dtype == int64, f"`target` must be int64; got {target.dtype}", "DTypeError")
    places = input.shape[:0]
    if input.ndim > 1:
        places = input.shape[:1] + input.shape[2:]
    check(
        target.shape == places,
        f"`target` must have shape {tuple(places)} for `input` of shape {input.shape}; got {target.shape}",
    )
    classes = input.shape[min(1, input.ndim - 1)]
    if weight is not None:
        check(
            weight.ndim == 1 and weight.shape[0] == classes,
            f"`weight` must have shape ({classes},) for `input` of shape {input.shape}; got {weight.shape}",
        )
        require_same("input", input, "weight", weight)
    if reduction == "none":
        return result(target.shape, input.dtype)
    return result([], input.dtype)


@nll_loss.vjp("input")
def _(g, input, target, weight, ignore_index, reduction):
    return nll_loss_backward(g, target, weight, input.shape, ignore_index, reduction)


@nll_loss.reference
def _(input, target, weight=None, ignore_index=-100, reduction="mean"):
    each, w = _pick(input, target, weight, ignore_index)
    with np.errstate(all="ignore"):
        y = {"none": each, "sum": each.sum(), "mean": np.divide(each.sum(), w.sum())}[reduction]
    return np.asarray(y, input.dtype)


def _nll_samples(s, input):
    for reduction in ("mean", "sum", "none"):
        yield s(input(s, 5, 4), s.indices(4, 5), reduction=reduction)
        yield s(input(s, 2, 3, 4), s.indices(3, 2, 4), reduction=reduction)
    yield s(input(s, 4), s.indices(4))
    yield s(input(s, 5, 4), np.array([1, -100, 3, -100, 0]))
    yield s(input(s, 5, 4), np.array([1, 2, 3, 2, 0]), s.array(4, low=0.5, high=2))
    yield s(input(s, 5, 4), np.array([1, 2, 3, 2, 0]), s.array(4, low=0.5, high=2), 2, "none")
    yield s(input(s, 4, 5).T, s.indices(4, 5))
    yield s(input(s, 0, 4), s.indices(4, 0), reduction="sum")
    yield s(input(s, 3, 4).astype("float64"), s.indices(4, 3))
    yield s(input(s, 130, 10), s.indices(10, 130)).loosely(4)


@nll_loss.samples
def _(s):
    yield from _nll_samples(s, lambda s, *shape: s.array(*shape, low=-3, high=0))


nll_loss.error(
    "ShapeError",
    lambda s: s(s.array(5, 4), s.indices(4, 3)),
    contains=["nll_loss", "target", "(5,)", "(5, 4)", "(3,)"],
)
nll_loss.error(
    "DTypeError", lambda s: s(s.array(5, 4), s.array(5)), contains=["nll_loss", "target", "int64", "float32"]
)
nll_loss.error(
    "ValueError",
    lambda s: s(s.array(5, 4), s.indices(4, 5), reduction="max"),
    contains=["nll_loss", "reduction", "max", "mean"],
)
nll_loss.error(
    "IndexError",
    lambda s: s(s.array(2, 4), np.array([0, 4])),
    contains=["nll_loss", "target", "4"],
)
nll_loss.error(
    "ShapeError",
    lambda s: s(s.array(5, 4), s.indices(4, 5), s.array(3)),
    contains=["nll_loss", "weight", "(4,)", "(3,)"],
)


nll_loss_backward = Operator(
    "nll_loss_backward(Tensor gy, Tensor target, Tensor? weight, int[] input_size, int ignore_index, str reduction)"
    " -> Tensor",
    doc="""
    The gradient of nll_loss with respect to its input of shape `input_size`: ``-gy * weight[t]`` at every target's
    place (over the sum of weights for "mean"), zero elsewhere.

    Raises: ShapeError if the shapes do not fit; IndexError if a target is no class.

    >>> import plait_core as pc
    >>> pc.nll_loss_backward(pc.tensor(1.0), pc.tensor([1]), None, (1, 2), -100, "mean").tolist()
    [[0.0, -1.0]]
    """,
    dtypes="floating",
    internal=True,
)


@nll_loss_backward.shape
def _(gy, target, weight, input_size, reduction):
    require("gy", gy.dtype, "floating")
    check(
        reduction in ("mean", "sum", "none"),
        f'`reduction` must be "mean", "sum" or "none"; got "{reduction}"',
        "ValueError",
    )
    check(target.dtype == int64, f"`target` must be int64; got {target.dtype}", "DTypeError")
    fits = len(input_size) > 0
    if len(input_size) == 1:
        fits = target.ndim == 0
    if len(input_size) > 1:
        fits = input_size[:1] + input_size[2:] == target.shape
    if reduction == "none":
        fits = fits and gy.shape == target.shape
    else:
        fits = fits and gy.ndim == 0
    check(
        fits,
        f"`gy` of shape {gy.shape}, `target` of shape {target.shape} and `input_size` {tuple(input_size)} "
        f"are not those of one loss",
    )
    if weight is not None:
        check(
            weight.ndim == 1 and weight.shape[0] == input_size[min(1, len(input_size) - 1)],
            f"`weight` of shape {weight.shape} must have an element for each class of {tuple(input_size)}",
        )
        require_same("gy", gy, "weight", weight)
    return result(input_size, gy.dtype)


@nll_loss_backward.vjp("gy")
def _(g, target, weight, ignore_index, reduction):
    return nll_loss(g, target, weight, ignore_index, reduction)


@nll_loss_backward.reference
def _(gy, target, weight, input_size, ignore_index, reduction):
    x = np.zeros(tuple(input_size), gy.dtype)
    _, w = _pick(x, target, weight, ignore_index)
    scale = gy / w.sum() if reduction == "mean" else gy
    wide, t = (x, target) if x.ndim > 1 else (x[None], target[None])
    at = np.where(t == ignore_index, 0, t)
    np.put_along_axis(wide, at[:, None], np.broadcast_to(-scale * w, target.shape).reshape(t.shape)[:, None], 1)
    return x


@nll_loss_backward.samples
def _(s):
    yield s(s.array(), s.indices(4, 5), None, (5, 4), -100, "mean")
    yield s(s.array(), s.indices(4, 5), None, (5, 4), -100, "sum")
    yield s(s.array(5), s.indices(4, 5), None, (5, 4), -100, "none")
    yield s(s.array(), np.array([1, -100, 3, 2]), s.array(4, low=0.5, high=2), (4, 4), -100, "mean")
    yield s(s.array(2, 4), s.indices(3, 2, 4), None, (2, 3, 4), -100, "none")
    yield s(s.array(), s.indices(4), None, (4,), -100, "mean")
    yield s(s.array(dtype="float64"), s.indices(4, 3), None, (3, 4), -100, "mean")


nll_loss_backward.error(
    "ShapeError",
    lambda s: s(s.array(3), s.indices(4, 5), None, (5, 4), -100, "none"),
    contains=["nll_loss_backward", "gy", "(3,)", "(5,)", "(5, 4)"],
)
nll_loss_backward.error(
    "IndexError",
    lambda s: s(s.array(), np.array([7]), None, (1, 4), -100, "mean"),
    contains=["nll_loss_backward", "target", "7"],
)


cross_entropy = Composite(
    "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, int ignore_index=-100, "
    'str reduction="mean", float label_smoothing=0.0) -> Tensor',
    doc="""
    The negative log-likelihood of `target` under ``softmax(input)``. Targets are classes (int64) or probabilities
    (floating-point, of the shape of `input`). `label_smoothing` moves that part of the probability evenly to all
    classes.

    Shapes: input (n, c, *) of logits, target (n, *) of classes, or (c,) and (); weight (c,).

    Raises: as nll_loss; ValueError if `label_smoothing` is not in [0, 1].

    >>> import plait_core as pc
    >>> round(pc.cross_entropy(pc.zeros(1, 4), pc.tensor([2])).item(), 4)
    1.3863
    """,
    dtypes="floating",
    method=False,
)


@cross_entropy.decompose
def _(input, target, weight, ignore_index, reduction, label_smoothing):
    check(input.ndim > 0, f"`input` must have a dimension of classes; got shape {input.shape}")
    check(
        label_smoothing >= 0 and label_smoothing <= 1,
        f"`label_smoothing` must be in [0, 1]; got {label_smoothing}",
        "ValueError",
    )
    check(
        reduction in ("mean", "sum", "none"),
        f'`reduction` must be "mean", "sum" or "none"; got "{reduction}"',
        "ValueError",
    )
    dim = min(1, input.ndim - 1)
    logs = log_softmax(input, dim)
    classes = input.shape[dim]
    wide = [1] * input.ndim
    wide[dim] = classes
    if is_floating(target.dtype):
        check(
            target.shape == input.shape,
            f"`target` of probabilities must have the shape {input.shape} of `input`; got {target.shape}",
        )
        goal = target
        if label_smoothing > 0:
            goal = target * (1 - label_smoothing) + label_smoothing / classes
        each = mul(goal, logs)
        if weight is not None:
            each = mul(each, reshape(weight, wide))
        losses = -sum(each, [dim])
        if reduction == "none":
            return losses
        total = sum(losses)
        if reduction == "sum":
            return total
        places = 1
        for size in losses.shape:
            places = places * size
        return div(total, places)
    hard = nll_loss(logs, target, weight, ignore_index, reduction)
    if label_smoothing == 0:
        return hard
    spread = logs
    if weight is not None:
        spread = mul(logs, reshape(weight, wide))
    ignored = eq(target, ignore_index)
    smooth = masked_fill(-sum(spread, [dim]), ignored, 0)
    if reduction != "none":
        smooth = sum(smooth)
    if reduction == "mean":
        if weight is None:
            ones = ones_like(target, dtype=input.dtype)
            smooth = div(smooth, sum(masked_fill(ones, ignored, 0)))
        else:
            at = masked_fill(target, ignored, 0)
            chosen = reshape(embedding(reshape(weight, [classes, 1]), at), target.shape)
            smooth = div(smooth, sum(masked_fill(chosen, ignored, 0)))
    return hard * (1 - label_smoothing) + smooth * (label_smoothing / classes)


@cross_entropy.reference
def _(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    axis = min(1, input.ndim - 1)
    x = input - input.max(axis, keepdims=True) if input.size else input
    logs = x - np.log(np.exp(x).sum(axis, keepdims=True))
    classes = input.shape[axis]
    wide = [1] * input.ndim
    wide[axis] = classes
    w = np.ones(wide, input.dtype) if weight is None else weight.reshape(wide)
    if target.dtype.kind == "f":
        goal = target * (1 - label_smoothing) + label_smoothing / classes
        each = -(goal * logs * w).sum(axis)
        y = {"none": each, "sum": each.sum(), "mean": each.sum() / max(each.size, 1)}[reduction]
        return np.asarray(y, input.dtype)
    hard, own = _pick(logs, target, weight, ignore_index)
    smooth = np.where(target == ignore_index, 0, -(logs * w).sum(axis))
    each = hard * (1 - label_smoothing) + smooth * (label_smoothing / classes)
    with np.errstate(all="ignore"):
        y = {"none": each, "sum": each.sum(), "mean": np.divide(each.sum(), own.sum())}[reduction]
    return np.asarray(y, input.dtype)


@cross_entropy.samples
def _(s):
    yield from (sample.loosely(4) for sample in _nll_samples(s, lambda s, *shape: s.array(*shape)))
    for reduction in ("mean", "sum", "none"):
        yield s(s.array(5, 4), s.indices(4, 5), reduction=reduction, label_smoothing=0.1).loosely(4)
        yield s(s.array(5, 4), s.array(5, 4, low=0, high=1), reduction=reduction).loosely(4)
    yield s(
        s.array(4, 3), np.array([1, -100, 2, 0]), s.array(3, low=0.5, high=2), label_smoothing=0.2
    ).loosely(4)


cross_entropy.error(
    "ShapeError",
    lambda s: s(s.array(5, 4), s.indices(4, 3)),
    contains=["nll_loss", "target", "(5,)", "(3,)"],
)
cross_entropy.error(
    "ValueError",
    lambda s: s(s.array(5, 4), s.indices(4, 5), label_smoothing=2.0),
    contains=["cross_entropy", "label_smoothing", "2"],
)
cross_entropy.error(
    "ShapeError",
    lambda s: s(s.array(5, 4), s.array(5, 3)),
    contains=["cross_entropy", "target", "(5, 4)", "(5, 3)"],
)


bce = Pointwise(
    "bce(Tensor input, Tensor target) -> Tensor",
    doc="""
    ``-(target * log(input) + (1 - target) * log(1 - input))`` with logarithms not below -100: binary cross-entropy
    without weight and reduction.

    >>> import plait_core as pc
    >>> pc.bce(pc.tensor([1.0, 0.0]), pc.tensor([1.0, 1.0])).tolist()
    [0.0, 100.0]
    """,
    promote="float",
    dtypes="floating",
    domain=(0.05, 0.95),
    internal=True,
    reference=lambda input, target: (
        (target - 1) * np.maximum(np.log1p(-input), -100) - target * np.maximum(np.log(input), -100)
    ),
)


@bce.vjp("input")
def _(g, input, target):
    return g * (input - target) / clamp_min(input * (1 - input), 1e-12)


@bce.vjp("target")
def _(g, input):
    return g * (clamp_min(log(1 - input), -100.0) - clamp_min(log(input), -100.0))


binary_cross_entropy = Composite(
    'binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, str reduction="mean") -> Tensor',
    doc="""
    ``-weight * (target * log(input) + (1 - target) * log(1 - input))``, logarithms not below -100, reduced by
    "mean", "sum" or "none". `input` holds probabilities; outside [0, 1] the loss is NaN.

    Shapes: `input` and `target` have one shape; `weight` broadcasts to it.

    Raises: ShapeError if the shapes differ; ValueError for another `reduction`; DTypeError.

    >>> import plait_core as pc
    >>> round(pc.binary_cross_entropy(pc.tensor([0.5, 0.5]), pc.tensor([0.0, 1.0])).item(), 4)
    0.6931
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
    check(
        reduction in ("mean", "sum", "none"),
        f'`reduction` must be "mean", "sum" or "none"; got "{reduction}"',
        "ValueError",
    )
    each = bce(input, target)
    if weight is not None:
        each = mul(each, weight)
    if reduction == "mean":
        return mean(each)
    if reduction == "sum":
        return sum(each)
    return each


@binary_cross_entropy.reference
def _(input, target, weight=None, reduction="mean"):
    logs = np.maximum(np.log(input), -100), np.maximum(np.log1p(-input), -100)
    each = -(target * logs[0] + (1 - target) * logs[1])
    each = each if weight is None else each * weight
    return np.asarray({"none": each, "sum": each.sum(), "mean": each.mean()}[reduction], input.dtype)


@binary_cross_entropy.samples
def _(s):
    for reduction in ("mean", "sum", "none"):
        yield s(s.array(3, 4, low=0.1, high=0.9), s.array(3, 4, low=0, high=1), reduction=reduction)
    yield s(s.array(3, 4, low=0.1, high=0.9), s.array(3, 4, low=0, high=1), s.array(4, low=0, high=2))
    yield s(np.array([0.0, 1.0, 0.0], np.float32), np.array([0.0, 0.0, 1.0], np.float32)).without_gradient()
    yield s(
        s.array(5, low=0.1, high=0.9, dtype="float64"), s.array(5, low=0, high=1, dtype="float64")
    )


binary_cross_entropy.error(
    "ShapeError",
    lambda s: s(s.array(3), s.array(4)),
    contains=["binary_cross_entropy", "input", "(3,)", "(4,)"],
)
binary_cross_entropy.error(
    "ValueError",
    lambda s: s(s.array(3), s.array(3), reduction="x"),
    contains=["binary_cross_entropy", "reduction", "x"],
)
