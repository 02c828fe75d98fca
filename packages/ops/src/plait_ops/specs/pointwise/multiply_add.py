"""Linear interpolation, and sums with a product or quotient."""

import numpy as np

from plait_ops.calls import sub
from plait_ops.spec import Pointwise
from plait_ops.words import conjugate, is_tensor

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
