"""Losses of pairs of tensors. `reduction` is "mean", "sum" or "none"."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import check, part, require, require_common


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
        return op.mean(self)
    if reduction == "sum":
        return op.sum(self)
    return self


# ---- of pairs of tensors -------------------------------------------------------------------------
_DTYPES = {
    "floating": "Dtypes: floating-point dtypes.",
    "inexact": "Dtypes: floating-point and complex dtypes.",
    "arithmetic": "Dtypes: integers (no mean; differences of unsigned ones wrap around), floats, complex.",
}


@part
def common_dtype(input, target, group):
    """Check the dtype to which two tensors promote."""
    require("input", require_common("input", input, "target", target), group)


def _loss(schema, formula, example, more="", dtypes="inexact"):
    name = schema.partition("(")[0]
    operator = Composite(
        schema,
        doc=f"""
    {formula}, then the mean or the sum of all, or with `reduction` "none" all of them.

    Shapes: `input` and `target` broadcast. {_DTYPES[dtypes]}
    Raises: ValueError for another `reduction`{more}, ShapeError if the shapes do not broadcast, DTypeError for other dtypes.

    >>> import plait_core as pc, plait_nn.functional as F
    >>> F.{name}(pc.tensor([0.0, 0.5]), pc.tensor([1.0, 0.5])).item()
    {example}
    """,
        dtypes=dtypes,
        variants="",
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
    dtypes="arithmetic",
)
smooth_l1_loss = _loss(
    'smooth_l1_loss(Tensor input, Tensor target, str reduction="mean", float beta=1.0) -> Tensor',
    "With ``d = abs(input - target)``: ``d ** 2 / (2 * beta)`` where d is below `beta`, ``d - beta / 2`` elsewhere",
    "0.25",
    " or a negative `beta`",
    dtypes="floating",
)
huber_loss = _loss(
    'huber_loss(Tensor input, Tensor target, str reduction="mean", float delta=1.0) -> Tensor',
    "With ``d = abs(input - target)``: ``d ** 2 / 2`` where d is at most `delta`, ``delta * (d - delta / 2)`` elsewhere",
    "0.25",
    " or a `delta` that is not positive",
    dtypes="floating",
)


@mse_loss.decompose
def _(input, target, reduction):
    common_dtype(input, target, "inexact")
    return op.reduce_loss(op.square(op.sub(input, target)), reduction)


@l1_loss.decompose
def _(input, target, reduction):
    return op.reduce_loss(op.abs(op.sub(input, target)), reduction)


huber_elements = Pointwise(
    "huber_elements(Tensor input, Tensor target, float delta=1.0) -> Tensor",
    doc="With ``d = abs(input - target)``: ``d ** 2 / 2`` where d is at most `delta`, ``delta * (d - delta / 2)`` elsewhere.",
    dtypes="floating",
    internal=True,
    widens=True,
)
huber_backward = Pointwise(
    "huber_backward(Tensor grad, Tensor input, Tensor target, float delta=1.0) -> Tensor",
    doc="``grad * clamp(input - target, -delta, delta)``: the derivative of `huber_elements`.",
    dtypes="floating",
    internal=True,
    widens=True,
)


@huber_elements.vjp("input")
@huber_backward.vjp("grad")
def _(g, input, target, delta):
    return huber_backward(g, input, target, delta)


@huber_elements.vjp("target")
def _(g, input, target, delta):
    return huber_backward(g, target, input, delta)


@huber_backward.vjp("input")
def _(g, grad, input, target, delta):
    return op.where(op.le(op.abs(input - target), delta), g * grad, 0.0)


@huber_backward.vjp("target")
def _(g, grad, input, target, delta):
    return op.where(op.le(op.abs(input - target), delta), -g * grad, 0.0)


@huber_elements.decompose
def _(input, target, delta):
    d = input - target
    m = op.clamp(d, -delta, delta)
    return m * (d - 0.5 * m)


@huber_backward.decompose
def _(grad, input, target, delta):
    return grad * op.clamp(input - target, -delta, delta)


@smooth_l1_loss.decompose
def _(input, target, reduction, beta):
    common_dtype(input, target, "floating")
    check(beta >= 0.0, f"`beta` must not be negative; got {beta}", "ValueError")
    if beta == 0.0:
        return op.reduce_loss(op.abs(op.sub(input, target)), reduction)
    loss = op.reduce_loss(huber_elements(input, target, beta), reduction)
    if beta != 1.0:
        loss = loss / beta
    return loss


@huber_loss.decompose
def _(input, target, reduction, delta):
    common_dtype(input, target, "floating")
    check(delta > 0.0, f"`delta` must be positive; got {delta}", "ValueError")
    return op.reduce_loss(huber_elements(input, target, delta), reduction)
