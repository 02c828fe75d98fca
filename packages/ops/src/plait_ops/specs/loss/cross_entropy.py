"""Cross entropy of classes and of probabilities."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.specs.loss.nll_loss import classes_fit, classes_gradient_fits
from plait_ops.words import check, is_floating, numel, require_same, result

# Softmax, logarithm and loss in one pass over the classes; one number for each row is saved.
cross_entropy_forward = Operator(
    "cross_entropy_forward(Tensor input, Tensor target, Tensor? weight, str reduction, int ignore_index) -> (Tensor, Tensor)",
    doc="`nll_loss` of `log_softmax(input)` along the classes, and the logarithm of the sum of exponentials, in the shape of the target.",
    dtypes="floating",
    internal=True,
    auxiliary=[1],
    kernel="in[1] is int64; out[1] has its shape.",
    libm="wide",
)
cross_entropy_forward.batch("loss")
cross_entropy_backward = Operator(
    "cross_entropy_backward(Tensor grad, Tensor input, Tensor lse, Tensor target, Tensor? weight, str reduction, "
    "int ignore_index) -> Tensor",
    doc="``(exp(input - lse) - [class is target]) * weight[target] * grad``, divided by the sum of weights for the mean.",
    kernel="optional: without a kernel other operators compute it; in[2] is out[1] of `cross_entropy_forward`, of in[1]'s dtype as in[0] is, in[3] is int64, in[4] None or (c); any strides; rows that are ignored get zeros.",
    dtypes="floating",
    internal=True,
    libm="wide",
)
cross_entropy_backward.batch("loss_backward")


@cross_entropy_forward.shape
def _(input, target, weight, reduction):
    classes_fit(
        input, target, weight, reduction, ", or that of `input` and its dtype for probabilities"
    )
    return result(target.shape if reduction == "none" else (), input.dtype), result(
        target.shape, input.dtype
    )


@cross_entropy_forward.cost
def _(input):
    # the largest, a difference, exp, the sum
    return 4 * numel(input)


@cross_entropy_forward.decompose
def _(input, target, weight, reduction, ignore_index):
    c = 1 if input.ndim > 1 else 0
    loss = op.nll_loss(op.log_softmax(input, c), target, weight, reduction, ignore_index)
    return loss, op.logsumexp(input, [c])


@cross_entropy_forward.vjp("input")
def _(g0, input, target, weight, result1, reduction, ignore_index):
    return cross_entropy_backward(g0, input, result1, target, weight, reduction, ignore_index)


@cross_entropy_backward.shape
def _(grad, input, lse, target, weight, reduction):
    classes_gradient_fits(grad, target, weight, input.shape, reduction)
    check(
        lse.shape == target.shape,
        f"`lse` of shape {lse.shape} must have the shape of `target` {target.shape} for `input` of shape {input.shape}",
    )
    if weight is not None:
        require_same("input", input, "weight", weight)
    require_same("input", input, "grad", grad)
    require_same("input", input, "lse", lse)
    return result(input.shape, input.dtype)


@cross_entropy_backward.cost
def _(input):
    # a difference, exp, a product
    return 3 * numel(input)


@cross_entropy_backward.decompose
def _(grad, input, lse, target, weight, reduction, ignore_index):
    c = 1 if input.ndim > 1 else 0
    chosen = op.nll_loss_backward(grad, target, weight, input.shape, reduction, ignore_index)
    return chosen - op.softmax(input, c) * op.sum(chosen, [c], True)


@cross_entropy_backward.vjp("grad")
def _(g, input, lse, target, weight, reduction, ignore_index):
    c = 1 if input.ndim > 1 else 0
    shares = op.softmax(input, c)
    return op.nll_loss(g - op.sum(g * shares, [c], True), target, weight, reduction, ignore_index)


@cross_entropy_backward.vjp("input")
def _(g, grad, input, lse, target, weight, reduction, ignore_index):
    # lse depends on input too: this is the derivative through both
    c = 1 if input.ndim > 1 else 0
    shares = op.softmax(input, c)
    total = op.sum(
        op.nll_loss_backward(grad, target, weight, input.shape, reduction, ignore_index), [c], True
    )
    return -total * shares * (g - op.sum(g * shares, [c], True))


# the gradient through lse is part of the gradient of input
cross_entropy_backward.constant("lse")


cross_entropy = Composite(
    "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, int ignore_index=-100, "
    'str reduction="mean", float label_smoothing=0.0) -> Tensor',
    doc="""
    The cross entropy between ``softmax(input)`` and the target classes: `nll_loss` of ``log_softmax(input)`` along the
    classes. `target` may also hold probabilities: a float tensor of the shape of `input`. With `label_smoothing` e the
    target distribution is mixed with the uniform one: ``(1 - e) * target + e / c``.

    Args:
        weight: The weight of each class: shape (C), or None.
        target: The class of each sample as int64, or the probability of each class in the shape of `input`.
        input: Logits, not normalized: shape (N, C, ...).

    Shapes: `input` is (c,), (n, c) or (n, c, ...), `target` the same without c (or with c: probabilities), `weight` (c,).
    Dtypes: floats; `target` integers for classes.
    Raises: ShapeError for other shapes, DTypeError for other dtypes, ValueError for another `reduction`, a
    `label_smoothing` outside [0, 1] or an `ignore_index` of 0 or more beside probabilities, IndexError for a target outside [0, c).

    >>> import plait_core as pc, plait_nn.functional as F
    >>> f"{F.cross_entropy(pc.zeros(2, 4), pc.tensor([0, 3])).item():.4f}"
    '1.3863'
    """,
    dtypes="floating",
    variants="",
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
    check(
        ignore_index < 0,
        f"`ignore_index` is for classes, and `target` holds probabilities ({target.dtype}); got {ignore_index}",
        "ValueError",
    )
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
    logs = op.log_softmax(input, c)
    sharp = op.nll_loss(logs, target, weight, reduction, ignore_index)
    weighted = logs
    if weight is not None:
        weighted = logs * op.reshape(weight, [-1] + [1] * (input.ndim - 1 - c))
    counts = op.ne(target, ignore_index)
    even = op.where(counts, -op.sum(weighted, [c]), 0.0)
    share = label_smoothing / float(max(input.shape[c], 1))
    if reduction == "mean":
        even = op.sum(even) / op.sum(op.class_weights(target, weight, input, ignore_index))
    if reduction == "sum":
        even = op.sum(even)
    return sharp * (1.0 - label_smoothing) + even * share


@cross_entropy_soft.decompose
def _(input, target, weight, reduction, label_smoothing):
    check(
        input.ndim > 0 and input.shape == target.shape,
        f"`target` of a floating-point dtype holds probabilities and must have the shape of `input`, {input.shape}; got {target.shape}. Classes must be integers, as target.long() gives them",
    )
    c = 1 if input.ndim > 1 else 0
    logs = op.log_softmax(input, c)
    wanted = target
    if label_smoothing > 0.0:
        wanted = target * (1.0 - label_smoothing) + label_smoothing / float(max(input.shape[c], 1))
    if weight is not None:
        wanted = wanted * op.reshape(weight, [-1] + [1] * (input.ndim - 1 - c))
    each = -op.sum(logs * wanted, [c])
    if reduction == "mean":
        return op.sum(each) / float(max(numel(input.shape) // max(input.shape[c], 1), 1))
    return op.reduce_loss(each, reduction)
