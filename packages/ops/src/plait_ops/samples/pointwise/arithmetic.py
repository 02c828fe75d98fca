"""Test data of pointwise/arithmetic: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.arithmetic import (
    add,
    gcd,
    lcm,
    mul,
    multiply,
    neg,
    positive,
    rsub,
    sub,
    subtract,
)

add.reference(
    lambda self, other, alpha: np.add(
        self, np.multiply(other, np.asarray(alpha).astype(self.dtype))
    )
)
sub.reference(
    lambda self, other, alpha: np.subtract(
        self, np.multiply(other, np.asarray(alpha).astype(self.dtype))
    )
)
mul.reference(np.multiply)
subtract.reference(lambda self, other, alpha=1: sub(self, other, alpha=alpha))
multiply.reference(lambda self, other: mul(self, other))
for each in (subtract, multiply):
    each.samples(lambda s: iter([s(s.array(2, 3), s.array(3, low=0.5)), s(s.array(3), 2.0)]))
    each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), s.array(4)),
        contains=["broadcast", "(2, 3)", "(4,)"],
    )


@add.samples
@sub.samples
def _(s):
    yield s(s.array(2, 3), s.array(3), alpha=2)
    yield s(s.array(2, 3), s.array(3), alpha=-0.5)
    yield s(s.array(3, dtype="int32"), 2, alpha=3)
    yield s(s.array(3, dtype="int64"), 2.5)
    yield s(s.array(3, dtype="float32"), s.array(dtype="float64"))
    yield s(s.array(2, 3, dtype="float64"), s.array(3, dtype="float32"))


@mul.samples
def _(s):
    yield s(s.expanded(3, 2), s.array(3, 2))
    yield s(s.array(2, 3, 4).transpose(2, 0, 1), s.array(4, 2, 3))
    yield s(s.array(2, 3, dtype="float64"), s.array(3, dtype="float32"))


for each in (add, sub, mul):
    each.error(
        "TypeError", lambda s: s(1, 2.0), contains=[each.schema.base, "self", "Tensor", "number"]
    )
    each.error("TypeError", lambda s: s(s.array(2), "x"), contains=[each.schema.base])
add.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="uint64"), s.array(2, dtype="int64")),
    contains=["add", "self", "other", "uint64", "int64"],
)


def _divisors(operator, function):
    operator.reference(function)

    @operator.samples
    def _(s):
        yield s(np.array([0, 0, 5, -5, 12, 2**40]), np.array([0, 7, 0, 15, 18, 2**33]))


rsub.reference(lambda self, other, alpha=1: sub(other, self * np.asarray(alpha, self.dtype)))
rsub.samples(
    lambda s: iter(
        [s(s.array(2, 3), s.array(3)), s(s.array(3, dtype="int64"), 4), s(s.array(3), 1, alpha=2)]
    )
)
rsub.error("ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["(2, 3)", "(4,)"])
_divisors(gcd, np.gcd)
_divisors(lcm, lambda self, other: np.abs(np.lcm(self, other)))


_TIES = [0.5, 1.5, -0.5, -2.5, 2.0, np.inf, -np.inf, np.nan, -0.0]

neg.reference(np.negative)
positive.reference(lambda self: self)
positive.samples(lambda s: iter([s(s.array(2, 3)), s(s.array(dtype="int64"))]))
positive.error("TypeError", lambda s: s("x"), contains=["positive", "self"])
neg.samples(
    lambda s: iter(
        [s(np.array(_TIES, dtype)).without_gradient() for dtype in ("float32", "float64")]
    )
)
