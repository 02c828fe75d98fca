"""Choosing between elements: where, clamp, masked_fill, lerp."""

import numpy as np

from plait_ops.alias import under_another_name
from plait_ops.calls import ge, gt, le, logical_and, lt, mul, sub, where, zeros_like
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import check, conjugate, is_tensor

where_ = Pointwise(
    "where(Tensor condition, Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    `self` where `condition` is True, `other` elsewhere.

    >>> import plait_core as pc
    >>> pc.where(pc.tensor([True, False]), pc.tensor([1, 2]), 0).tolist()
    [1, 0]
    """,
    conditions=["condition"],
    dtypes="any",
    scalar=False,
    exact=True,
    kernel="in[0] is bool; in[1] and in[2] have the dtype of the result or are numbers; all broadcast.",
    method=False,
    reference=lambda condition, a, b: np.where(condition, a, b),
)


@where_.vjp("self")
def _(g, condition):
    return where(condition, g, 0.0)


@where_.vjp("other")
def _(g, condition):
    return where(condition, 0.0, g)


where_.error(
    "DTypeError",
    lambda s: s(s.array(2), s.array(2), s.array(2)),
    contains=["where", "condition", "bool", "float32"],
)


@where_.samples
def _(s):
    yield s(s.array(2, 3, dtype="bool"), 1.5, 2)
    yield s(s.array(2, 3, dtype="bool"), s.array(3), 0)
    yield s(s.array(3, dtype="bool"), s.array(2, 3), s.array(2, 1, dtype="float64"))


masked_fill = Pointwise(
    "masked_fill(Tensor self, Tensor mask, Tensor|Scalar value) -> Tensor",
    doc="""
    `self` with `value` (a number or a 0-d tensor) where `mask` is True. `value` is cast to the dtype of `self`.

    >>> import plait_core as pc
    >>> pc.masked_fill(pc.tensor([1, 2]), pc.tensor([True, False]), 0).tolist()
    [0, 2]
    """,
    promote="first",
    conditions=["mask"],
    dtypes="any",
    scalar=False,
    exact=True,
    inplace=True,
    kernel="in[1] is bool; in[0] and in[2] have the dtype of the result, or in[2] is a number; all broadcast.",
)


masked_fill.reference(lambda self, mask, value: np.where(mask, value, self))


@masked_fill.vjp("self")
def _(g, mask):
    return where(mask, 0.0, g)


@masked_fill.vjp("value")
def _(g, mask):
    return where(mask, g, 0.0)


@masked_fill.samples
def _(s):
    mask = s.array(3, dtype="bool")
    yield s(s.array(3, dtype="bool"), mask, 10)
    yield s(s.array(3, dtype="int64"), mask, 1.5)
    yield s(s.array(3), mask, s.array(dtype="float64"))


masked_fill.error(
    "ValueError",
    lambda s: s(s.array(2, dtype="uint8"), s.array(2, dtype="bool"), 300),
    contains=["masked_fill", "`value`", "uint8", "300"],
)
masked_fill.error(
    "DTypeError",
    lambda s: s(s.array(2), s.array(2, dtype="bool"), 1j),
    contains=["masked_fill", "value", "complex", "float32"],
)
masked_fill.error(
    "DTypeError",
    lambda s: s(s.array(2), s.array(2), 1),
    contains=["masked_fill", "mask", "bool", "float32"],
)


def _bound(name, text, reference, sign):
    return Pointwise(
        f"{name}(Tensor self, Tensor|Scalar {name[6:]}) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1, 2, 3]), 2).tolist()
    {sign}
    """,
        dtypes="all",
        exact=True,
        reference=reference,
    )


clamp_min = _bound(
    "clamp_min", "``maximum(self, min)``; `min` may be a number.", np.maximum, "[2, 2, 3]"
)
clamp_max = _bound(
    "clamp_max", "``minimum(self, max)``; `max` may be a number.", np.minimum, "[1, 2, 2]"
)
clamp_between = Pointwise(
    "clamp_between(Tensor self, Tensor|Scalar min, Tensor|Scalar max) -> Tensor",
    doc="``minimum(maximum(self, min), max)``: `clamp` with both bounds.",
    dtypes="numeric",
    scalar="clamp",
    exact=True,
    internal=True,
    inplace=True,
    reference=lambda x, low, high: np.minimum(np.maximum(x, low), high),
)


@clamp_min.vjp("self")
def _(g, self, min):
    return mul(g, ge(self, min))


@clamp_min.vjp("min")
def _(g, self, min):
    return mul(g, lt(self, min))


@clamp_max.vjp("self")
def _(g, self, max):
    return mul(g, le(self, max))


@clamp_max.vjp("max")
def _(g, self, max):
    return mul(g, gt(self, max))


@clamp_between.vjp("self")
def _(g, self, min, max):
    return mul(g, logical_and(ge(self, min), le(self, max)))


@clamp_between.vjp("min")
def _(g, self, min, max):
    return mul(g, logical_and(lt(self, min), lt(min, max)))


@clamp_between.vjp("max")
def _(g, self, min, max):
    if is_tensor(max):
        return mul(g, gt(clamp_min(self, min), max))
    return zeros_like(g)


clamp = Composite(
    "clamp(Tensor self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor",
    doc="""
    ``minimum(maximum(self, min), max)``; a bound that is None does not bind. Where `min` is above `max` the result is `max`.

    Raises: ValueError if both bounds are None, ShapeError if shapes do not broadcast, DTypeError for bool.

    >>> import plait_core as pc
    >>> pc.clamp(pc.tensor([1, 2, 3, 4]), 2, 3).tolist()
    [2, 2, 3, 3]
    """,
    inplace=True,
    out=True,
    dtypes="numeric",
)
clip = Composite(
    "clip(Tensor self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor",
    doc=under_another_name("`clamp` under NumPy's name.", "clip", clamp),
    inplace=True,
    out=True,
    dtypes="numeric",
)


@clamp.decompose
@clip.decompose
def _(self, min, max):
    check(
        min is not None or max is not None,
        "`min` or `max` must be given; got None for both",
        "ValueError",
    )
    if min is None:
        return clamp_max(self, max)
    if max is None:
        return clamp_min(self, min)
    return clamp_between(self, min, max)


@clamp.reference
@clip.reference
def _(self, min=None, max=None):
    made = self if min is None else clamp_min(self, min)
    return made if max is None else clamp_max(made, max)


@clamp.samples
@clip.samples
def _(s):
    yield s(s.distinct(4, 5), -1.2, 1.3)
    yield s(s.distinct(4, 5), min=0.1)
    yield s(s.distinct(4, 5), max=0.1)
    yield s(s.array(8, dtype="int64"), -2, 3)
    yield s(s.array(3, 4), s.array(4, high=0), s.array(3, 1, low=0.1))
    yield s(s.array(8, dtype="int64"), 0.5)


@clamp_between.samples
def _(s):
    yield s(s.array(3, 4), -1, 1.5)
    yield s(s.array(3, 4), s.array(4), 1.5).without_gradient()


for each in (clamp, clip):
    each.error(
        "ValueError",
        lambda s: s(s.array(2, dtype="uint8"), -1, 300),
        contains=[each.schema.base, "`min`", "uint8", "-1"],
    )
    each.error("ValueError", lambda s: s(s.array(2)), contains=[each.name, "min", "max"])
    each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), s.array(4), 1.0),
        contains=["broadcast", "(2, 3)", "(4,)"],
    )
    each.error(
        "DTypeError", lambda s: s(s.array(2, dtype="bool"), False, True), contains=["self", "bool"]
    )


lerp = Pointwise(
    "lerp(Tensor self, Tensor end, Tensor|Scalar weight) -> Tensor",
    doc="""
    ``self + weight * (end - self)``: `self` for weight 0, `end` for weight 1, both exactly.

    >>> import plait_core as pc
    >>> pc.lerp(pc.tensor([0.0]), pc.tensor([10.0]), 0.25).tolist()
    [2.5]
    """,
    dtypes="inexact",
    reference=lambda a, b, w: np.where(np.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w)),
)


@lerp.vjp("self")
def _(g, weight):
    if is_tensor(weight):
        return g * conjugate(sub(1.0, weight))
    return sub(g, g * conjugate(weight))


@lerp.vjp("end")
def _(g, weight):
    return g * conjugate(weight)


@lerp.vjp("weight")
def _(g, self, end):
    return g * conjugate(end - self)


addcmul = Pointwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    doc="""
    ``self + value * tensor1 * tensor2``.

    >>> import plait_core as pc
    >>> pc.addcmul(pc.tensor([1]), pc.tensor([2]), pc.tensor([3]), value=2).tolist()
    [13]
    """,
    dtypes="arithmetic",
    reference=lambda a, b, c, value: a + np.asarray(value).astype(a.dtype) * b * c,
)
addcdiv = Pointwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    doc="""
    ``self + value * tensor1 / tensor2``.

    >>> import plait_core as pc
    >>> pc.addcdiv(pc.tensor([1.0]), pc.tensor([6.0]), pc.tensor([3.0]), value=2).tolist()
    [5.0]
    """,
    dtypes="inexact",
    domain=(0.5, 2.5),
    reference=lambda a, b, c, value: a + np.asarray(value).astype(a.dtype) * b / c,
)


@addcmul.vjp("self")
@addcdiv.vjp("self")
def _(g):
    return g


@addcmul.vjp("tensor1")
def _(g, tensor2, value):
    return g * conjugate(tensor2) * conjugate(value)


@addcmul.vjp("tensor2")
def _(g, tensor1, value):
    return g * conjugate(tensor1) * conjugate(value)


@addcdiv.vjp("tensor1")
def _(g, tensor2, value):
    return g / conjugate(tensor2) * conjugate(value)


@addcdiv.vjp("tensor2")
def _(g, tensor1, tensor2, value):
    return -g * conjugate(tensor1 / (tensor2 * tensor2)) * conjugate(value)


addcmul.samples(lambda s: iter([s(s.array(3), s.array(3), s.array(3), value=-2)]))
addcdiv.samples(lambda s: iter([s(s.array(3), s.array(3), s.array(3, low=0.5), value=0.5)]))
