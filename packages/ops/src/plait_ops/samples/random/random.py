"""Test data of random/random: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.random.random import (
    bernoulli,
    bernoulli_fill,
    normal,
    rand,
    rand_like,
    randint,
    randint_high,
    randn,
    randn_like,
    randperm,
    uniform,
)


def _size_errors(operator, *lead):
    name = operator.schema.base
    operator.error("ShapeError", lambda s: s(*lead, (2, -1)), contains=[name, "size", "(2, -1)"])
    operator.error(
        "ShapeError", lambda s: s(*lead, (2**40, 2**40)), contains=[name, "size", "2**63"]
    )
    operator.error("ShapeError", lambda s: s(*lead, (1,) * 65), contains=[name, "size", "64", "65"])


def _draw(operator):
    name = operator.schema.base

    operator.reference(lambda size, dtype=None: np.zeros(size, dtype or "float32"))
    operator.samples(lambda s: iter([s((20, 30)), s(2, 3, dtype="float64"), s(()), s((0, 2))]))
    operator.error(
        "DTypeError", lambda s: s((2,), dtype="int64"), contains=[name, "dtype", "int64"]
    )
    _size_errors(operator)


_draw(rand)
_draw(randn)


def _like(operator):
    name = operator.schema.base

    operator.reference(lambda self, dtype=None: np.zeros(self.shape, dtype or self.dtype))
    operator.samples(
        lambda s: iter([s(s.array(2, 3)), s(s.array(3, dtype="int64"), dtype="float64")])
    )
    operator.error(
        "DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=[name, "self", "int64"]
    )


_like(rand_like)
_like(randn_like)
randint.reference(lambda low, high, size, dtype="int64": np.zeros(size, dtype))
randint_high.reference(lambda high, size, dtype="int64": np.zeros(size, dtype))
randint.samples(lambda s: iter([s(-3, 4, (20, 3)), s(0, 2, (4,), dtype="float32"), s(0, 1, ())]))
randint_high.samples(lambda s: iter([s(4, (20, 3)), s(2, (4,), dtype="uint8")]))
randint.error("ValueError", lambda s: s(3, 3, (2,)), contains=["randint", "low", "high", "3"])
randint_high.error("ValueError", lambda s: s(0, (2,)), contains=["randint", "high", "0"])
for _low, _high, _dtype in (
    (0, 300, "uint8"),
    (-1, 3, "uint8"),
    (0, 3, "bool"),
    (0, 10**6, "float16"),
):
    randint.error(
        "ValueError",
        lambda s, low=_low, high=_high, dtype=_dtype: s(low, high, (2,), dtype=dtype),
        contains=["randint", "low" if _low else "high", _dtype],
    )
randint_high.error(
    "ValueError", lambda s: s(300, (2,), dtype="uint8"), contains=["randint", "high", "uint8"]
)
_size_errors(randint, 0, 4)
_size_errors(randint_high, 4)
randperm.reference(lambda n, dtype="int64": np.zeros(n, dtype))
randperm.samples(lambda s: iter([s(10), s(0), s(5, dtype="int32")]))
randperm.error(
    "ValueError", lambda s: s(3000, dtype="float16"), contains=["randperm", "n", "2049", "float16"]
)
randperm.error(
    "ValueError", lambda s: s(300, dtype="uint8"), contains=["randperm", "n", "299", "uint8"]
)
randperm.error("ShapeError", lambda s: s(-1), contains=["randperm", "n", "-1"])
bernoulli.reference(lambda self: np.zeros(self.shape, self.dtype))
bernoulli.samples(
    lambda s: iter(
        [s(s.array(3, 4, low=0.0, high=1.0)), s(s.array(low=0.0, high=1.0, dtype="float64"))]
    )
)
bernoulli.error(
    "ValueError",
    lambda s: s(np.array([0.5, 1.5], "float32")),
    contains=["bernoulli", "self", "probabilities"],
)
bernoulli.error(
    "DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=["bernoulli", "self", "int64"]
)


def _fill(operator):
    operator.reference(lambda self: self)
    operator.samples(
        lambda s: iter(
            [s(s.array(3, 4)), s(s.strided(3, 4)), s(s.array(dtype="float64")), s(s.array(0))]
        )
    )


_fill(uniform)
_fill(normal)
_fill(bernoulli_fill)
uniform.error("ValueError", lambda s: s(s.array(2), 1.0, 0.0), contains=["uniform_", "low", "high"])
normal.error("ValueError", lambda s: s(s.array(2), 0.0, -1.0), contains=["normal_", "std", "-1"])
bernoulli_fill.error(
    "ValueError", lambda s: s(s.array(2), 1.5), contains=["bernoulli_", "p", "1.5"]
)
for each in (uniform, normal):
    each.error(
        "DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=[each.name, "self", "int64"]
    )
