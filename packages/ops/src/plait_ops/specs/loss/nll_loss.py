"""The negative log likelihood of classes."""

from plait_ops import calls as op
from plait_ops.costs import nbytes
from plait_ops.spec import Composite, Operator
from plait_ops.specs.loss.losses import known_reduction
from plait_ops.words import (
    cast_argument,
    check,
    int64,
    itemsize,
    numel,
    part,
    require,
    require_same,
    result,
    to_dtype,
)

nll_loss = Operator(
    'nll_loss(Tensor input, Tensor target, Tensor? weight=None, str reduction="mean", int ignore_index=-100) -> Tensor',
    doc="""
    The negative log likelihood ``-weight[target] * input[target]`` of the target classes, where `input` holds log
    probabilities. Targets equal to `ignore_index` are left out. The result is the weighted mean or the sum, or with
    `reduction` "none" all of them.

    Shapes: `input` is (c,), (n, c) or (n, c, ...), `target` the same without c, `weight` (c,). Dtypes: floats; `target`
    integers.
    Raises: ShapeError for other shapes, DTypeError for other dtypes, ValueError for another `reduction`, IndexError for a
    target outside [0, c).

    >>> import plait_core as pc, plait_nn.functional as F
    >>> F.nll_loss(pc.tensor([[-1.0, -2.0]]), pc.tensor([1])).item()
    2.0
    """,
    kernel="optional: without a kernel other operators compute it; in[0] is (c), (n, c) or (n, c, ...), in[1] int64 without the dimension of classes, in[2] None or (c) of in[0]'s dtype, any strides; in[3] is none, mean or sum; rows whose target is in[4] are left out; another target outside [0, c) is an IndexError that names it.",
    dtypes="floating",
    variants="",
)
nll_loss.batch("loss")
nll_loss_backward = Operator(
    "nll_loss_backward(Tensor grad, Tensor target, Tensor? weight, int[] size, str reduction, int ignore_index) -> Tensor",
    doc="The derivative of `nll_loss` with respect to its input, which has shape `size`.",
    kernel="optional: without a kernel other operators compute it; in[0] has the shape of the result of `nll_loss`, the others are its arguments, in[1] is int64; every element of the result is written, zeros included.",
    dtypes="floating",
    internal=True,
)
nll_loss_backward.batch("code")


@part
def classes_fit(input, target, weight, reduction, otherwise):
    """Check the arguments of a loss of classes; `otherwise` ends the text about the shape."""
    check(input.ndim > 0, f"`input` must have at least 1 dimension; got shape {input.shape}")
    c = 1 if input.ndim > 1 else 0
    require("input", input.dtype, "floating")
    require("target", target.dtype, "integer")
    cast_argument("target", int64)
    check(
        target.shape == input.shape[:c] + input.shape[c + 1 :],
        f"`target` of shape {target.shape} must have the shape of `input` {input.shape} without dimension {c}{otherwise}",
    )
    if weight is not None:
        check(
            weight.ndim == 1 and weight.shape[0] == input.shape[c],
            f"`weight` must have shape {tuple(input.shape[c : c + 1])} for `input` of shape {input.shape}; got {weight.shape}",
        )
        require_same("input", input, "weight", weight)
    known_reduction(reduction)


@part
def classes_gradient_fits(grad, target, weight, size, reduction):
    """Check the arguments of a derivative for an input of shape `size`."""
    check(len(size) > 0, f"`size` must have at least 1 dimension; got {size}")
    c = 1 if len(size) > 1 else 0
    check(
        target.shape == size[:c] + size[c + 1 :],
        f"`target` of shape {target.shape} does not fit `size` {size} without dimension {c}",
    )
    known_reduction(reduction)
    if weight is not None:
        check(
            weight.ndim == 1 and weight.shape[0] == size[c],
            f"`weight` of shape {weight.shape} does not fit `size` {size}",
        )
        require_same("grad", grad, "weight", weight)
    want = target.shape if reduction == "none" else ()
    check(
        grad.shape == want,
        f"`grad` must have shape {want} for `reduction` {reduction}; got {grad.shape}",
    )
    require("grad", grad.dtype, "floating")
    require("target", target.dtype, "integer")
    cast_argument("target", int64)


@nll_loss.shape
def _(input, target, weight, reduction):
    classes_fit(input, target, weight, reduction, "")
    return result(target.shape if reduction == "none" else (), input.dtype)


@nll_loss.cost
def _(input, target, result):
    # one element of each row, and its weight
    picked = 2 * numel(target)
    return picked, nbytes(target) + picked * itemsize(input.dtype), nbytes(result)


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
    counts = op.ne(target, ignore_index)
    if weight is None:
        return to_dtype(counts, like.dtype)
    chosen = op.index_select(weight, 0, op.reshape(class_indices(target, ignore_index), [-1]))
    return op.where(counts, op.reshape(chosen, target.shape), 0.0)


@class_indices.decompose
def _(target, ignore_index):
    return to_dtype(op.where(op.ne(target, ignore_index), target, 0), int64)


@nll_loss.decompose
def _(input, target, weight, reduction, ignore_index):
    c = 1 if input.ndim > 1 else 0
    weights = class_weights(target, weight, input, ignore_index)
    picked = op.squeeze_dim(
        op.gather(input, c, op.unsqueeze(class_indices(target, ignore_index), c)), [c]
    )
    # an ignored element may be infinite: 0 times it is not 0
    loss = op.where(op.ne(weights, 0.0), -picked * weights, 0.0)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return op.sum(loss)
    return op.sum(loss) / op.sum(weights)


@nll_loss_backward.shape
def _(grad, target, weight, size, reduction):
    classes_gradient_fits(grad, target, weight, size, reduction)
    return result(size, grad.dtype)


@nll_loss_backward.cost
def _(target):
    return numel(target)


@nll_loss_backward.decompose
def _(grad, target, weight, size, reduction, ignore_index):
    c = 1 if len(size) > 1 else 0
    weights = class_weights(target, weight, grad, ignore_index)
    each = -weights * (grad / op.sum(weights) if reduction == "mean" else grad)
    made = op.zeros(size, dtype=grad.dtype, device=grad.device)
    return op.scatter(
        made, c, op.unsqueeze(class_indices(target, ignore_index), c), op.unsqueeze(each, c)
    )


@nll_loss.vjp("input")
def _(g, input, target, weight, reduction, ignore_index):
    return nll_loss_backward(g, target, weight, input.shape, reduction, ignore_index)


@nll_loss_backward.vjp("grad")
def _(g, target, weight, reduction, ignore_index):
    return nll_loss(g, target, weight, reduction, ignore_index)
