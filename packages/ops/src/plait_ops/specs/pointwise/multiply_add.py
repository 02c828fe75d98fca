"""Linear interpolation, and sums with a product or quotient."""

from plait_ops import calls as op
from plait_ops.spec import Pointwise
from plait_ops.words import conjugate, is_tensor, part

lerp = Pointwise(
    "lerp(Tensor self, Tensor end, Tensor|Scalar weight) -> Tensor",
    doc="""
    ``self + weight * (end - self)``. It is exactly `self` for weight 0 and exactly `end` for weight 1.

    Args:
        weight: The weight of `end`: 0 gives `input`, 1 gives `end`.
        end: The end: a tensor that broadcasts with `input`.

    >>> import plait_core as pc
    >>> pc.lerp(pc.tensor([0.0]), pc.tensor([10.0]), 0.25).tolist()
    [2.5]
    """,
    dtypes="inexact",
    variants="function method",
    libm="complex",
)


@lerp.vjp("self")
def _(g, weight):
    if is_tensor(weight):
        return g * conjugate(op.sub(1.0, weight))
    return op.sub(g, g, alpha=conjugate(weight))


@lerp.vjp("end")
def _(g, weight):
    return g * conjugate(weight)


@lerp.vjp("weight")
def _(g, self, end):
    return g * conjugate(end - self)


addcmul = Pointwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    doc="""
    ``self + value * tensor1 * tensor2``. For integers `value` must be a whole number, else TypeError.

    Args:
        value: The factor of the product or quotient.
        tensor1: The first factor.
        tensor2: The second factor.

    >>> import plait_core as pc
    >>> pc.addcmul(pc.tensor([1]), pc.tensor([2]), pc.tensor([3]), value=2).tolist()
    [13]
    """,
    factor="value",
    dtypes="arithmetic",
    variants="function method",
)
addcdiv = Pointwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    doc="""
    ``self + value * tensor1 / tensor2``.

    Args:
        value: The factor of the product or quotient.
        tensor1: The dividend.
        tensor2: The divisor.

    >>> import plait_core as pc
    >>> pc.addcdiv(pc.tensor([1.0]), pc.tensor([6.0]), pc.tensor([3.0]), value=2).tolist()
    [5.0]
    """,
    dtypes="inexact",
    domain=(0.5, 2.5),
    variants="function method",
    widens=True,
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


@part
def _between(start, end, weight):
    step = end - start
    near = op.lt(op.abs(weight), 0.5)
    return op.where(near, start + weight * step, end - step * (1.0 - weight))


@lerp.decompose
def _(self, end, weight):
    if is_tensor(weight):
        return _between(self, end, weight)
    return _between(self, end, op.full([], weight, dtype=self.dtype, device=self.device))


@addcmul.decompose
def _(self, tensor1, tensor2, value):
    return op.add(self, tensor1 * tensor2, alpha=value)


@addcdiv.decompose
def _(self, tensor1, tensor2, value):
    return op.add(self, tensor1 / tensor2, alpha=value)
