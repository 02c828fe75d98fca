"""Test data of reduction/quantiles: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.reduction.quantiles import nanquantile, quantile, quantile_of_


def _quantile(operator):
    name = operator.schema.base
    reference = getattr(np, name)

    @operator.reference
    def _(self, q, dim=None, keepdim=False, interpolation="linear"):
        at = dim if self.ndim else None
        result = np.asarray(reference(self, q, axis=at, keepdims=keepdim, method=interpolation))
        return result.astype(self.dtype)

    @operator.samples
    def _(s):
        yield s(s.distinct(3, 5), 0.5)
        yield s(s.distinct(3, 5), 0.3, 1)
        yield s(s.distinct(3, 5), np.array([0, 0.25, 0.6, 1], "float32"), 1).without_gradient()
        yield s(s.distinct(3, 5), np.array([0.1, 0.3, 0.6], "float32"), 1)
        yield s(s.distinct(3, 5), np.array([0.4, 0.7], "float32"), 0, True)
        yield s(s.distinct(3, 5), np.array(0.35, "float32"), None, True)
        yield s(s.distinct(2, 3, 4, dtype="float64"), np.array([0.1, 0.9]), 1)
        for interpolation in ("lower", "higher", "midpoint", "nearest"):
            yield s(
                s.distinct(3, 6),
                np.array([0.15, 0.33, 0.77], "float32"),
                1,
                interpolation=interpolation,
            )
        infinite = np.array([[2, np.nan, -np.inf, 1], [3, 0, np.inf, 0]], "float32")
        yield s(infinite, np.array([0.25, 0.7], "float32"), 0).without_gradient()
        yield s(s.array(), 0.5)

    operator.error(
        "ValueError",
        lambda s: s(s.array(3), 0.5, interpolation="cubic"),
        contains=["quantile", "interpolation", "cubic"],
    )
    operator.error(
        "ShapeError", lambda s: s(s.array(0), 0.5), contains=["quantile", "self", "(0,)"]
    )
    operator.error(
        "ShapeError", lambda s: s(s.array(3), s.array(1, 1)), contains=["quantile", "q", "(1, 1)"]
    )
    operator.error(
        "IndexError",
        lambda s: s(s.array(2, 3), 0.5, 2),
        contains=["quantile", "dim", "(2, 3)", "2"],
    )
    operator.error(
        "DTypeError",
        lambda s: s(s.array(3, dtype="int64"), 0.5),
        contains=["quantile", "self", "int64"],
    )


_quantile(quantile)
_quantile(nanquantile)


quantile_of_.reference(
    lambda self, q, dim, keepdim, interpolation, ignore_nan: (
        nanquantile if ignore_nan else quantile
    )(self, q, dim, keepdim, interpolation=interpolation)
)
quantile_of_.samples(lambda s: iter([s(s.distinct(3, 5), 0.3, 1, False, "linear", False)]))
quantile_of_.error(
    "ValueError",
    lambda s: s(s.array(3), 0.5, 0, False, "cubic", False),
    contains=["quantile_of", "interpolation", "cubic"],
)
