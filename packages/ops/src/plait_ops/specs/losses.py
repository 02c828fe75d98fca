"""Losses. `reduction` is "mean", "sum" or "none"."""

import numpy as np

from plait_ops.calls import (
    abs,
    clamp_min,
    exp,
    gather,
    index_select,
    log,
    log_softmax,
    logsumexp,
    lt,
    mean,
    ne,
    reduce_loss,
    reshape,
    scatter,
    softplus,
    square,
    squeeze_dim,
    sub,
    sum,
    unsqueeze,
    where,
    zeros,
)
from plait_ops.spec import Composite, Operator, Pointwise
from plait_ops.words import (
    cast_argument,
    check,
    int64,
    is_floating,
    numel,
    require,
    require_same,
    result,
    to_dtype,
)

reduction_ = Composite(
    "reduce_loss(Tensor self, str reduction) -> Tensor",
    doc="`self`, its sum or its mean, as `reduction` says.",
    dtypes="floating",
    internal=True,
)


@reduction_.decompose
def _(self, reduction):
    if reduction == "mean":
        return mean(self)
    if reduction == "sum":
        return sum(self)
    check(
        reduction == "none",
        f'`reduction` must be "mean", "sum" or "none"; got "{reduction}"',
        "ValueError",
    )
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

    Shapes: `input` and `target` broadcast. Dtypes: float32 and float64.
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


# ---- of probabilities of two classes -------------------------------------------------------------------------------
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
    "DTypeError", lambda s: s(s.array(2, dtype="complex64")), contains=["log", "complex64"]
)

_BCE = 'binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, str reduction="mean") -> Tensor'
binary_cross_entropy = Composite(
    _BCE,
    doc="""
    ``-weight * (target * log(input) + (1 - target) * log(1 - input))`` with logarithms of at least -100; `input` are
    probabilities. Then the mean or sum of all, or with `reduction` "none" each one.

    Shapes: `input` and `target` have one shape, `weight` broadcasts to it. Dtypes: float32 and float64.
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

    Shapes: `input` and `target` have one shape, `weight` and `pos_weight` broadcast to it. Dtypes: float32 and float64.
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


# ---- of classes ----------------------------------------------------------------------------------------------------
nll_loss = Operator(
    'nll_loss(Tensor input, Tensor target, Tensor? weight=None, str reduction="mean", int ignore_index=-100) -> Tensor',
    doc="""
    The negative log likelihood ``-weight[target] * input[target]`` of the target classes, `input` being log probabilities;
    targets equal to `ignore_index` count nothing. Then the weighted mean or the sum, or with `reduction` "none" each one.

    Shapes: `input` is (c,), (n, c) or (n, c, ...), `target` the same without c, `weight` (c,). Dtypes: floats; `target`
    integers.
    Raises: ShapeError for other shapes, DTypeError for other dtypes, ValueError for another `reduction`, IndexError for a
    target outside [0, c).

    >>> import plait_core as pc
    >>> pc.nll_loss(pc.tensor([[-1.0, -2.0]]), pc.tensor([1])).item()
    2.0
    """,
    dtypes="floating",
    method=False,
)
nll_loss_backward = Operator(
    "nll_loss_backward(Tensor grad, Tensor target, Tensor? weight, int[] size, str reduction, int ignore_index) -> Tensor",
    doc="The derivative of `nll_loss` for an input of shape `size`.",
    dtypes="floating",
    internal=True,
)


@nll_loss.shape
def _(input, target, weight, reduction):
    check(input.ndim > 0, f"`input` must have at least 1 dimension; got shape {input.shape}")
    c = 1 if input.ndim > 1 else 0
    require("input", input.dtype, "floating")
    require("target", target.dtype, "integer")
    cast_argument("target", int64)
    check(
        target.shape == input.shape[:c] + input.shape[c + 1 :],
        f"`target` of shape {target.shape} must have the shape of `input` {input.shape} without dimension {c}",
    )
    if weight is not None:
        check(
            weight.ndim == 1 and weight.shape[0] == input.shape[c],
            f"`weight` must have shape {tuple(input.shape[c : c + 1])} for `input` of shape {input.shape}; got {weight.shape}",
        )
        require_same("input", input, "weight", weight)
    check(
        reduction in ("mean", "sum", "none"),
        f'`reduction` must be "mean", "sum" or "none"; got "{reduction}"',
        "ValueError",
    )
    return result(target.shape if reduction == "none" else (), input.dtype)


class_weights = Composite(
    "class_weights(Tensor target, Tensor? weight, Tensor like, int ignore_index) -> Tensor",
    doc="The weight of each target's class, 1 without `weight`; 0 where it is ignored. The dtype is that of `like`.",
    dtypes="floating",
    internal=True,
)
class_indices = Composite(
    "class_indices(Tensor target, int ignore_index) -> Tensor",
    doc="`target` as int64 with 0 where it is ignored.",
    dtypes="integer",
    internal=True,
)


@class_weights.decompose
def _(target, weight, like, ignore_index):
    counts = ne(target, ignore_index)
    if weight is None:
        return to_dtype(counts, like.dtype)
    chosen = index_select(weight, 0, reshape(class_indices(target, ignore_index), [-1]))
    return where(counts, reshape(chosen, target.shape), 0.0)


@class_indices.decompose
def _(target, ignore_index):
    return to_dtype(where(ne(target, ignore_index), target, 0), int64)


@nll_loss.decompose
def _(input, target, weight, reduction, ignore_index):
    c = 1 if input.ndim > 1 else 0
    weights = class_weights(target, weight, input, ignore_index)
    picked = squeeze_dim(gather(input, c, unsqueeze(class_indices(target, ignore_index), c)), [c])
    # an ignored element may be infinite: 0 times it is not 0
    loss = where(ne(weights, 0.0), -picked * weights, 0.0)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return sum(loss)
    return sum(loss) / sum(weights)


@nll_loss_backward.shape
def _(grad, target, weight, size, reduction):
    check(len(size) > 0, f"`size` must have at least 1 dimension; got {size}")
    c = 1 if len(size) > 1 else 0
    check(
        target.shape == size[:c] + size[c + 1 :],
        f"`target` of shape {target.shape} does not fit `size` {size} without dimension {c}",
    )
    check(
        reduction in ("mean", "sum", "none"),
        f'`reduction` must be "mean", "sum" or "none"; got "{reduction}"',
        "ValueError",
    )
    if weight is not None:
        check(
            weight.ndim == 1 and weight.shape[0] == size[c],
            f"`weight` of shape {weight.shape} does not fit `size` {size}",
        )
    want = target.shape if reduction == "none" else ()
    check(
        grad.shape == want,
        f"`grad` must have shape {want} for `reduction` {reduction}; got {grad.shape}",
    )
    require("grad", grad.dtype, "floating")
    require("target", target.dtype, "integer")
    cast_argument("target", int64)
    return result(size, grad.dtype)


@nll_loss_backward.decompose
def _(grad, target, weight, size, reduction, ignore_index):
    c = 1 if len(size) > 1 else 0
    weights = class_weights(target, weight, grad, ignore_index)
    each = -weights * (grad / sum(weights) if reduction == "mean" else grad)
    made = zeros(size, dtype=grad.dtype, device=grad.device)
    return scatter(made, c, unsqueeze(class_indices(target, ignore_index), c), unsqueeze(each, c))


@nll_loss.vjp("input")
def _(g, input, target, weight, reduction, ignore_index):
    return nll_loss_backward(g, target, weight, input.shape, reduction, ignore_index)


@nll_loss_backward.vjp("grad")
def _(g, target, weight, reduction, ignore_index):
    return nll_loss(g, target, weight, reduction, ignore_index)


def _class_weights(target, weight, dtype, ignore_index):
    counts = target != ignore_index
    chosen = np.ones(target.shape, dtype) if weight is None else weight[np.where(counts, target, 0)]
    return np.where(counts, chosen, 0).astype(dtype)


def _nll(input, target, weight=None, reduction="mean", ignore_index=-100):
    c = 1 if input.ndim > 1 else 0
    weights = _class_weights(target, weight, input.dtype, ignore_index)
    safe = np.where(target == ignore_index, 0, target)
    picked = np.take_along_axis(input, np.expand_dims(safe, c), c).reshape(target.shape)
    loss = -picked * weights
    if reduction == "none":
        return loss
    with np.errstate(all="ignore"):
        return (loss.sum() / weights.sum() if reduction == "mean" else loss.sum()).astype(
            input.dtype
        )


@nll_loss_backward.reference
def _(grad, target, weight, size, reduction, ignore_index):
    c = 1 if len(size) > 1 else 0
    weights = _class_weights(target, weight, grad.dtype, ignore_index)
    made = np.zeros(size, grad.dtype)
    safe = np.where(target == ignore_index, 0, target)
    each = -weights * (grad / weights.sum() if reduction == "mean" else grad)
    np.put_along_axis(made, np.expand_dims(safe, c), np.expand_dims(each, c).astype(grad.dtype), c)
    return made


nll_loss.reference(_nll)
class_indices.reference(
    lambda target, ignore_index: np.where(target == ignore_index, 0, target).astype("int64")
)
class_weights.reference(
    lambda target, weight, like, ignore_index: _class_weights(
        target, weight, like.dtype, ignore_index
    )
)
class_indices.samples(
    lambda s: iter([s(s.indices(3, 4), 1), s(s.indices(3, 2, 2, dtype="uint8"), 5)])
)
class_weights.samples(
    lambda s: iter(
        [s(s.indices(3, 4), None, s.array(1), 1), s(s.indices(3, 4), s.array(3), s.array(1), 5)]
    )
)
class_indices.error("TypeError", lambda s: s("x", 1), contains=["class_indices", "target"])
class_weights.error(
    "TypeError", lambda s: s("x", None, s.array(1), 1), contains=["class_weights", "target"]
)


def _class_samples(s):
    for reduction in ("mean", "sum", "none"):
        yield s(s.array(4, 3), s.indices(3, 4), reduction=reduction)
        yield s(s.array(4, 3), s.indices(3, 4), s.array(3, low=0.5), reduction=reduction)
    yield s(s.array(3), s.indices(3))
    yield s(s.array(2, 3, 4), s.indices(3, 2, 4))
    yield s(s.array(4, 3), np.array([0, -100, 2, 1]))
    yield s(s.array(4, 3), np.array([0, 1, 2, 1], "uint8"), ignore_index=1)
    yield s(s.strided(4, 3, dtype="float64"), s.indices(3, 4))


nll_loss.samples(_class_samples)


@nll_loss_backward.samples
def _(s):
    yield s(s.array(), s.indices(3, 4), None, (4, 3), "mean", -100)
    yield s(s.array(4), s.indices(3, 4), s.array(3), (4, 3), "none", 1)
    yield s(s.array(), s.indices(3), None, (3,), "sum", -100)


nll_loss.error(
    "ShapeError",
    lambda s: s(s.array(4, 3), s.indices(3, 3)),
    contains=["nll_loss", "target", "(3,)", "(4, 3)"],
)
nll_loss.error(
    "ShapeError",
    lambda s: s(s.array(4, 3), s.indices(3, 4), s.array(4)),
    contains=["nll_loss", "weight", "(3,)", "(4,)"],
)
nll_loss.error(
    "DTypeError", lambda s: s(s.array(4, 3), s.array(4)), contains=["nll_loss", "target", "float32"]
)
nll_loss.error(
    "ValueError",
    lambda s: s(s.array(4, 3), s.indices(3, 4), reduction="x"),
    contains=["nll_loss", "reduction", "x"],
)
nll_loss.error("IndexError", lambda s: s(s.array(4, 3), np.array([0, 1, 3, 0])), contains=["3"])
nll_loss_backward.error(
    "ShapeError",
    lambda s: s(s.array(2), s.indices(3, 4), None, (4, 3), "none", 1),
    contains=["grad", "(4,)", "(2,)"],
)


# The pass over the classes that softmax, logarithm and loss share; what is saved is one number a row.
cross_entropy_forward = Operator(
    "cross_entropy_forward(Tensor input, Tensor target, Tensor? weight, str reduction, int ignore_index) -> (Tensor, Tensor)",
    doc="`nll_loss` of `log_softmax(input)` along the classes, and the logarithm of the sum of exponentials, of target's shape.",
    dtypes="floating",
    internal=True,
    method=False,
    auxiliary=[1],
    kernel="in[1] is int64; out[1] has its shape.",
)
cross_entropy_backward = Operator(
    "cross_entropy_backward(Tensor grad, Tensor input, Tensor lse, Tensor target, Tensor? weight, str reduction, "
    "int ignore_index) -> Tensor",
    doc="``(exp(input - lse) - [class is target]) * weight[target] * grad``, over the sum of weights for the mean.",
    dtypes="floating",
    internal=True,
)


@cross_entropy_forward.shape
def _(input, target, weight, reduction):
    check(input.ndim > 0, f"`input` must have at least 1 dimension; got shape {input.shape}")
    c = 1 if input.ndim > 1 else 0
    require("input", input.dtype, "floating")
    require("target", target.dtype, "integer")
    cast_argument("target", int64)
    check(
        target.shape == input.shape[:c] + input.shape[c + 1 :],
        f"`target` of shape {target.shape} must have the shape of `input` {input.shape} without dimension {c}, "
        f"or that of `input` and its dtype for probabilities",
    )
    if weight is not None:
        check(
            weight.ndim == 1 and weight.shape[0] == input.shape[c],
            f"`weight` must have shape {tuple(input.shape[c : c + 1])} for `input` of shape {input.shape}; got {weight.shape}",
        )
        require_same("input", input, "weight", weight)
    check(
        reduction in ("mean", "sum", "none"),
        f'`reduction` must be "mean", "sum" or "none"; got "{reduction}"',
        "ValueError",
    )
    return result(target.shape if reduction == "none" else (), input.dtype), result(
        target.shape, input.dtype
    )


@cross_entropy_forward.decompose
def _(input, target, weight, reduction, ignore_index):
    c = 1 if input.ndim > 1 else 0
    lse = logsumexp(input, [c])
    loss = nll_loss(input - unsqueeze(lse, c), target, weight, reduction, ignore_index)
    return loss, lse


@cross_entropy_forward.vjp("input")
def _(g0, input, target, weight, result1, reduction, ignore_index):
    return cross_entropy_backward(g0, input, result1, target, weight, reduction, ignore_index)


@cross_entropy_backward.shape
def _(grad, input, lse, target, weight, reduction):
    check(input.ndim > 0, f"`input` must have at least 1 dimension; got shape {input.shape}")
    c = 1 if input.ndim > 1 else 0
    check(
        target.shape == input.shape[:c] + input.shape[c + 1 :] and lse.shape == target.shape,
        f"`target` of shape {target.shape} and `lse` of shape {lse.shape} do not fit `input` of shape {input.shape}",
    )
    check(
        reduction in ("mean", "sum", "none"),
        f'`reduction` must be "mean", "sum" or "none"; got "{reduction}"',
        "ValueError",
    )
    if weight is not None:
        check(
            weight.ndim == 1 and weight.shape[0] == input.shape[c],
            f"`weight` of shape {weight.shape} does not fit `input` of shape {input.shape}",
        )
        require_same("input", input, "weight", weight)
    want = target.shape if reduction == "none" else ()
    check(
        grad.shape == want,
        f"`grad` must have shape {want} for `reduction` {reduction}; got {grad.shape}",
    )
    require("input", input.dtype, "floating")
    require("target", target.dtype, "integer")
    cast_argument("target", int64)
    require_same("input", input, "grad", grad)
    require_same("input", input, "lse", lse)
    return result(input.shape, input.dtype)


@cross_entropy_backward.decompose
def _(grad, input, lse, target, weight, reduction, ignore_index):
    c = 1 if input.ndim > 1 else 0
    chosen = nll_loss_backward(grad, target, weight, input.shape, reduction, ignore_index)
    return chosen - exp(input - unsqueeze(lse, c)) * sum(chosen, [c], True)


@cross_entropy_backward.vjp("grad")
def _(g, input, lse, target, weight, reduction, ignore_index):
    c = 1 if input.ndim > 1 else 0
    shares = exp(input - unsqueeze(lse, c))
    return nll_loss(g - sum(g * shares, [c], True), target, weight, reduction, ignore_index)


@cross_entropy_backward.vjp("input")
def _(g, grad, input, lse, target, weight, reduction, ignore_index):
    # lse depends on input too: this is the derivative through both
    c = 1 if input.ndim > 1 else 0
    shares = exp(input - unsqueeze(lse, c))
    total = sum(
        nll_loss_backward(grad, target, weight, input.shape, reduction, ignore_index), [c], True
    )
    return -total * shares * (g - sum(g * shares, [c], True))


# what goes through lse is counted in input
cross_entropy_backward.constant("lse")


def _logsumexp(input, c):
    top = input.max(c, keepdims=True)
    return (np.log(np.exp(input - top).sum(c, keepdims=True)) + top).squeeze(c)


@cross_entropy_forward.reference
def _(input, target, weight, reduction, ignore_index):
    c = 1 if input.ndim > 1 else 0
    lse = np.asarray(_logsumexp(input, c))
    return _nll(input - np.expand_dims(lse, c), target, weight, reduction, ignore_index), lse


@cross_entropy_backward.reference
def _(grad, input, lse, target, weight, reduction, ignore_index):
    c = 1 if input.ndim > 1 else 0
    chosen = nll_loss_backward(grad, target, weight, input.shape, reduction, ignore_index)
    return chosen - np.exp(input - np.expand_dims(lse, c)) * chosen.sum(c, keepdims=True)


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
    # second derivatives are checked where they belong, through cross_entropy: lse is no free argument
    x = s.array(4, 3)
    yield s(s.array(), x, _logsumexp(x, 1), s.indices(3, 4), None, "mean", -100).without_gradient()
    yield s(
        s.array(4), x, _logsumexp(x, 1), s.indices(3, 4), s.array(3), "none", 1
    ).without_gradient()


cross_entropy = Composite(
    "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, int ignore_index=-100, "
    'str reduction="mean", float label_smoothing=0.0) -> Tensor',
    doc="""
    The cross entropy between ``softmax(input)`` and the target classes: `nll_loss` of ``log_softmax(input)`` along the
    classes. `target` may also hold probabilities: a float tensor of the shape of `input`. With `label_smoothing` e the
    target distribution is mixed with the uniform one: ``(1 - e) * target + e / c``.

    Shapes: `input` is (c,), (n, c) or (n, c, ...), `target` the same without c (or with c: probabilities), `weight` (c,).
    Dtypes: floats; `target` integers for classes.
    Raises: ShapeError for other shapes, DTypeError for other dtypes, ValueError for another `reduction` or a
    `label_smoothing` outside [0, 1], IndexError for a target outside [0, c).

    >>> import plait_core as pc
    >>> f"{pc.cross_entropy(pc.zeros(2, 4), pc.tensor([0, 3])).item():.4f}"
    '1.3863'
    """,
    dtypes="floating",
    method=False,
)


@cross_entropy.decompose
def _(input, target, weight, ignore_index, reduction, label_smoothing):
    check(
        0.0 <= label_smoothing <= 1.0,
        f"`label_smoothing` must be in [0, 1]; got {label_smoothing}",
        "ValueError",
    )
    if not is_floating(target.dtype):
        if label_smoothing == 0.0:
            loss, _lse = cross_entropy_forward(input, target, weight, reduction, ignore_index)
            return loss
        return cross_entropy_smooth(input, target, weight, ignore_index, reduction, label_smoothing)
    return cross_entropy_soft(input, target, weight, reduction, label_smoothing)


cross_entropy_smooth = Composite(
    "cross_entropy_smooth(Tensor input, Tensor target, Tensor? weight, int ignore_index, str reduction, "
    "float label_smoothing) -> Tensor",
    doc="`cross_entropy` of classes with label smoothing.",
    dtypes="floating",
    internal=True,
)
cross_entropy_soft = Composite(
    "cross_entropy_soft(Tensor input, Tensor target, Tensor? weight, str reduction, float label_smoothing) -> Tensor",
    doc="`cross_entropy` of probabilities.",
    dtypes="floating",
    internal=True,
)


@cross_entropy_smooth.decompose
def _(input, target, weight, ignore_index, reduction, label_smoothing):
    check(input.ndim > 0, f"`input` must have at least 1 dimension; got shape {input.shape}")
    c = 1 if input.ndim > 1 else 0
    logs = log_softmax(input, c)
    sharp = nll_loss(logs, target, weight, reduction, ignore_index)
    weighted = logs
    if weight is not None:
        weighted = logs * reshape(weight, [-1] + [1] * (input.ndim - 1 - c))
    counts = ne(target, ignore_index)
    even = where(counts, -sum(weighted, [c]), 0.0)
    share = label_smoothing / float(max(input.shape[c], 1))
    if reduction == "mean":
        even = sum(even) / sum(class_weights(target, weight, input, ignore_index))
    if reduction == "sum":
        even = sum(even)
    return sharp * (1.0 - label_smoothing) + even * share


@cross_entropy_soft.decompose
def _(input, target, weight, reduction, label_smoothing):
    check(
        input.ndim > 0 and input.shape == target.shape,
        f"`target` of shape {target.shape} holds probabilities and must have the shape of `input`, {input.shape}",
    )
    c = 1 if input.ndim > 1 else 0
    logs = log_softmax(input, c)
    wanted = target
    if label_smoothing > 0.0:
        wanted = target * (1.0 - label_smoothing) + label_smoothing / float(max(input.shape[c], 1))
    if weight is not None:
        wanted = wanted * reshape(weight, [-1] + [1] * (input.ndim - 1 - c))
    each = -sum(logs * wanted, [c])
    if reduction == "mean":
        return sum(each) / float(max(numel(input.shape) // max(input.shape[c], 1), 1))
    return reduce_loss(each, reduction)


def _log_softmax(x, c):
    return x - np.expand_dims(_logsumexp(x, c), c)


@cross_entropy.reference
def _(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    c = 1 if input.ndim > 1 else 0
    logs = _log_softmax(input, c)
    columns = (1,) * c + (-1,) + (1,) * (input.ndim - 1 - c)
    if target.dtype.kind == "f":
        wanted = target * (1 - label_smoothing) + label_smoothing / input.shape[c]
        each = -(logs * wanted * (1 if weight is None else weight.reshape(columns))).sum(c)
        return _reduced(np.asarray(each).astype(input.dtype), reduction)
    weights = _class_weights(target, weight, input.dtype, ignore_index)
    sharp = _nll(logs, target, weight, "none", ignore_index)
    even = -(logs * (1 if weight is None else weight.reshape(columns))).sum(c) * (
        target != ignore_index
    )
    each = sharp * (1 - label_smoothing) + even * (label_smoothing / input.shape[c])
    if reduction == "mean":
        return (each.sum() / weights.sum()).astype(input.dtype)
    return _reduced(np.asarray(each).astype(input.dtype), reduction)


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
    yield from _class_samples(s)
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
