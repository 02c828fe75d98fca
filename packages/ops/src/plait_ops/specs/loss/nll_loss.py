"""The negative log likelihood of classes."""

import numpy as np

from plait_ops.calls import (
    gather,
    index_select,
    ne,
    reshape,
    scatter,
    squeeze_dim,
    sum,
    unsqueeze,
    where,
    zeros,
)
from plait_ops.spec import Composite, Operator
from plait_ops.specs.loss.losses import known_reduction
from plait_ops.words import (
    cast_argument,
    check,
    int64,
    part,
    require,
    require_same,
    result,
    to_dtype,
)

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
    classes_gradient_fits(grad, target, weight, size, reduction)
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
