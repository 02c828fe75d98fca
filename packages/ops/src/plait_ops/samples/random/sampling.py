"""Test data of random/sampling: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.random.sampling import (
    bernoulli_p,
    binomial,
    binomial_draw,
    multinomial,
    normal,
    normal_size,
    normal_std,
    poisson,
    randint_like,
    randint_like_high,
    standard_gamma,
)

multinomial.reference(
    lambda self, num_samples, replacement=False: np.zeros((*self.shape[:-1], num_samples), "int64")
)


@multinomial.samples
def _(s):
    yield s(s.array(5, low=0.1), 3)
    yield s(s.array(2, 5, low=0.1, dtype="float64"), 9, True)
    yield s(s.strided(2, 4, low=0.1), 4)


multinomial.error("ShapeError", lambda s: s(s.array(), 1), contains=["multinomial", "self"])
multinomial.error(
    "ValueError", lambda s: s(s.array(3, low=0.1), 4), contains=["num_samples", "3", "4"]
)
multinomial.error(
    "ValueError", lambda s: s(s.array(3, low=-2.0, high=-1.0), 1), contains=["self", "negative"]
)
multinomial.error("ValueError", lambda s: s(s.array(3, low=0.1), 0), contains=["num_samples", "0"])


for each in (poisson, standard_gamma):
    each.reference(lambda self: np.zeros(self.shape, self.dtype))
    each.samples(
        lambda s: iter(
            [
                s(s.array(3, 4, low=0.1)),
                s(s.strided(3, 4, low=0.1, high=30.0)),
                s(s.array(low=0.1, dtype="float64")),
                s(s.array(0)),
            ]
        )
    )
    each.error(
        "DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=[each.name, "self", "int64"]
    )
binomial_draw.reference(lambda count, prob: np.zeros(count.shape, count.dtype))
binomial_draw.samples(
    lambda s: iter([s(s.array(9, low=1.0, high=90.0), s.array(9, low=0.0, high=1.0))])
)
binomial_draw.error(
    "DTypeError", lambda s: s(s.array(2, dtype="int64"), s.array(2)), contains=["count", "int64"]
)


binomial.reference(
    lambda count, prob: np.zeros(
        np.broadcast_shapes(count.shape, prob.shape), np.result_type(count, prob)
    )
)
binomial.samples(
    lambda s: iter(
        [
            s(s.array(3, 4, low=0.0, high=90.0), s.array(4, low=0.0, high=1.0)),
            s(
                s.array(2, 1, low=0.0, dtype="float64"),
                s.array(3, low=0.0, high=1.0, dtype="float64"),
            ),
        ]
    )
)
binomial.error(
    "ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["binomial", "(2, 3)", "(4,)"]
)


@normal.reference
def _(mean, std):
    shape = np.broadcast_shapes(mean.shape, np.shape(std))
    return np.zeros(shape, np.result_type(mean, std) if np.ndim(std) else mean.dtype)


normal_std.reference(lambda mean, std: np.zeros(std.shape, std.dtype))
normal_size.reference(lambda mean, std, size, dtype=None: np.zeros(size, dtype or "float32"))
normal.samples(
    lambda s: iter(
        [s(s.array(3, 4), s.array(4, low=0.1)), s(s.array(3, dtype="float64"), 2.0), s(s.array(3))]
    )
)
normal_std.samples(lambda s: iter([s(1.0, s.array(3, 4, low=0.1))]))
normal_size.samples(lambda s: iter([s(1.0, 2.0, (3, 4)), s(0.0, 1.0, (), dtype="float64")]))
normal.error(
    "ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["mean", "std", "(2, 3)", "(4,)"]
)
normal_std.error(
    "DTypeError", lambda s: s(0.0, s.array(2, dtype="int64")), contains=["std", "int64"]
)
normal_size.error("ValueError", lambda s: s(0.0, -1.0, (2,)), contains=["normal", "std", "-1"])
bernoulli_p.reference(lambda self, p: np.zeros(self.shape, self.dtype))
bernoulli_p.samples(lambda s: iter([s(s.array(3, 4), 0.5), s(s.strided(3, 4, dtype="int64"), 0.1)]))
bernoulli_p.error("ValueError", lambda s: s(s.array(2), 1.5), contains=["bernoulli", "p", "1.5"])
randint_like.reference(
    lambda self, low, high, dtype=None: np.zeros(self.shape, dtype or self.dtype)
)
randint_like_high.reference(
    lambda self, high, dtype=None: np.zeros(self.shape, dtype or self.dtype)
)
randint_like.samples(lambda s: iter([s(s.array(3, 4), -2, 5), s(s.array(3), 0, 5, dtype="int64")]))
randint_like_high.samples(lambda s: iter([s(s.array(3, dtype="int32"), 5)]))
randint_like.error("ValueError", lambda s: s(s.array(2), 3, 3), contains=["low", "high", "3"])
randint_like_high.error("ValueError", lambda s: s(s.array(2), 0), contains=["high", "0"])
