"""Losses of the probabilities of two classes."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import check, is_floating, to_dtype

bce_elements = Pointwise(
    "bce_elements(Tensor input, Tensor target) -> Tensor",
    doc="``-(target * log(input) + (1 - target) * log(1 - input))`` with logarithms of at least -100.",
    dtypes="floating",
    internal=True,
    domain=(0.05, 0.95),
    bounded=("input", 0.0, 1.0),
    widens=True,
    libm="wide",
)
bce_backward = Pointwise(
    "bce_backward(Tensor grad, Tensor input, Tensor target) -> Tensor",
    doc="``grad * (input - target) / max(input * (1 - input), 1e-12)``: the derivative of `bce_elements`.",
    dtypes="floating",
    internal=True,
    domain=(0.05, 0.95),
    widens=True,
)

# Of logits: a pass over both tensors, and one for the derivative. The target comes first, as the
# result has its order in memory in PyTorch.
logit_bce_elements = Pointwise(
    "logit_bce_elements(Tensor target, Tensor input) -> Tensor",
    doc="``(1 - target) * input + log(1 + exp(-input))``, without overflow.",
    dtypes="floating",
    internal=True,
    widens=True,
    libm="wide",
)
logit_bce_backward = Pointwise(
    "logit_bce_backward(Tensor grad, Tensor input, Tensor target) -> Tensor",
    doc="``grad * (sigmoid(input) - target)``: the derivative of `logit_bce_elements`.",
    dtypes="floating",
    internal=True,
    widens=True,
    libm="wide",
)


@bce_elements.vjp("input")
@bce_backward.vjp("grad")
def _(g, input, target):
    return bce_backward(g, input, target)


@bce_elements.vjp("target")
def _(g, input):
    return g * (clipped_log(1.0 - input) - clipped_log(input))


@bce_backward.vjp("input")
def _(g, grad, input, target):
    spread = op.clamp_min(input * (1.0 - input), 1e-12)
    return g * grad * (1.0 - (input - target) * (1.0 - 2.0 * input) / spread) / spread


@bce_backward.vjp("target")
def _(g, grad, input):
    return -g * grad / op.clamp_min(input * (1.0 - input), 1e-12)


@bce_backward.decompose
def _(grad, input, target):
    return grad * (input - target) / op.clamp_min(input * (1.0 - input), 1e-12)


@logit_bce_elements.vjp("input")
@logit_bce_backward.vjp("grad")
def _(g, input, target):
    return logit_bce_backward(g, input, target)


@logit_bce_elements.vjp("target")
def _(g, input):
    return -g * input


@logit_bce_backward.vjp("input")
def _(g, grad, input):
    return op.sigmoid_backward(g * grad, op.sigmoid(input))


@logit_bce_backward.vjp("target")
def _(g, grad):
    return -g * grad


@logit_bce_elements.decompose
def _(target, input):
    return (1.0 - target) * input - op.log_sigmoid(input)


@logit_bce_backward.decompose
def _(grad, input, target):
    return grad * (op.sigmoid(input) - target)


clipped_log = Composite(
    "clipped_log(Tensor self) -> Tensor",
    doc="The logarithm, at least -100.",
    dtypes="floating",
    internal=True,
)


@clipped_log.decompose
def _(self):
    return op.clamp_min(op.log(self), -100.0)


_BCE = 'binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, str reduction="mean") -> Tensor'
binary_cross_entropy = Composite(
    _BCE,
    doc="""
    ``-weight * (target * log(input) + (1 - target) * log(1 - input))`` with logarithms of at least -100; `input` holds
    probabilities. The result is the mean or the sum of all, or with `reduction` "none" all of them.

    Shapes: `input` and `target` have one shape, `weight` broadcasts to it. Dtypes: floating-point dtypes.
    Raises: ValueError for another `reduction` and for elements of `input` that are no probabilities, ShapeError for other
    shapes.

    >>> import plait_core as pc, plait_nn.functional as F
    >>> f"{F.binary_cross_entropy(pc.tensor([0.5]), pc.tensor([1.0])).item():.4f}"
    '0.6931'
    """,
    dtypes="floating",
    variants="",
)


@binary_cross_entropy.decompose
def _(input, target, weight, reduction):
    check(
        input.shape == target.shape,
        f"`input` and `target` must have the same shape; got {input.shape} and {target.shape}",
    )
    loss = bce_elements(input, target)
    if weight is not None:
        loss = loss * weight
    return op.reduce_loss(loss, reduction)


binary_cross_entropy_with_logits = Composite(
    "binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    'str reduction="mean") -> Tensor',
    doc="""
    `binary_cross_entropy` of ``sigmoid(input)``, exact also for large inputs:
    ``weight * ((1 - target) * input + (1 + (pos_weight - 1) * target) * softplus(-input))``.

    Args:
        weight: What the loss of each element is multiplied with, or None.
        input: Logits: the logarithms of the odds.

    Shapes: `input` and `target` have one shape, `weight` and `pos_weight` broadcast to it. Dtypes: floating-point dtypes; the
    result has that of `target`, as in PyTorch.
    Raises: ValueError for another `reduction`, ShapeError for other shapes.

    >>> import plait_core as pc
    >>> f"{pc.binary_cross_entropy_with_logits(pc.tensor([0.0]), pc.tensor([1.0])).item():.4f}"
    '0.6931'
    """,
    dtypes="floating",
)


@binary_cross_entropy_with_logits.decompose
def _(input, target, weight, pos_weight, reduction):
    check(
        input.shape == target.shape,
        f"`input` and `target` must have the same shape; got {input.shape} and {target.shape}",
    )
    if pos_weight is None:
        loss = logit_bce_elements(target, input)
    else:
        spread = op.softplus(-input, 1.0, 40.0) * (1.0 + (pos_weight - 1.0) * target)
        loss = (1.0 - target) * input + spread
    if weight is not None:
        loss = loss * weight
    if is_floating(target.dtype):
        loss = to_dtype(loss, target.dtype)
    return op.reduce_loss(loss, reduction)
