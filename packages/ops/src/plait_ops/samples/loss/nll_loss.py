"""Test data of loss/nll_loss: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.loss.nll_loss import class_indices, class_weights, nll_loss, nll_loss_backward


def weights_of_classes(target, weight, dtype, ignore_index):
    counts = target != ignore_index
    choice = np.ones(target.shape, dtype) if weight is None else weight[np.where(counts, target, 0)]
    return np.where(counts, choice, 0).astype(dtype)


def negative_log_likelihood(input, target, weight=None, reduction="mean", ignore_index=-100):
    c = 1 if input.ndim > 1 else 0
    weights = weights_of_classes(target, weight, input.dtype, ignore_index)
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
    weights = weights_of_classes(target, weight, grad.dtype, ignore_index)
    result = np.zeros(size, grad.dtype)
    safe = np.where(target == ignore_index, 0, target)
    each = -weights * (grad / weights.sum() if reduction == "mean" else grad)
    np.put_along_axis(
        result, np.expand_dims(safe, c), np.expand_dims(each, c).astype(grad.dtype), c
    )
    return result


nll_loss.reference(negative_log_likelihood)
class_indices.reference(
    lambda target, ignore_index: np.where(target == ignore_index, 0, target).astype("int64")
)
class_weights.reference(
    lambda target, weight, like, ignore_index: weights_of_classes(
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


def class_samples(s):
    for reduction in ("mean", "sum", "none"):
        yield s(s.array(4, 3), s.indices(3, 4), reduction=reduction)
        yield s(s.array(4, 3), s.indices(3, 4), s.array(3, low=0.5), reduction=reduction)
    yield s(s.array(3), s.indices(3))
    yield s(s.array(2, 3, 4), s.indices(3, 2, 4))
    yield s(s.array(4, 3), np.array([0, -100, 2, 1]))
    yield s(s.array(4, 3), np.array([0, 1, 2, 1], "uint8"), ignore_index=1)
    yield s(s.strided(4, 3, dtype="float64"), s.indices(3, 4))


nll_loss.samples(class_samples)


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
nll_loss_backward.error(
    "DTypeError",
    lambda s: s(s.array(), s.indices(3, 4), s.array(3, dtype="int8"), (4, 3), "mean", -100),
    contains=["nll_loss_backward", "weight", "int8", "float32"],
)
