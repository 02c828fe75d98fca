"""Test data of reduction/nan_reductions: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.reduction.nan_reductions import nanmean, nansum


def _axes(dim):
    if dim is None or (isinstance(dim, (tuple, list)) and not len(dim)):
        return None
    return tuple(dim) if isinstance(dim, (tuple, list)) else dim


def _reduction(operator, reference):

    @operator.reference
    def _(self, dim=None, keepdim=False, dtype=None):
        result = dtype or ("int64" if self.dtype.kind in "biu" else self.dtype)
        with np.errstate(all="ignore"):
            return np.asarray(
                reference(
                    self.astype("float64") if self.dtype.kind == "f" else self,
                    axis=_axes(dim),
                    keepdims=keepdim,
                )
            ).astype(result)

    @operator.samples
    def _(s):
        x = s.array(3, 4)
        x[x > 1] = np.nan
        yield s(x)
        yield s(x, 1)
        yield s(x, (0, 1), True)
        yield s(x.T, (-1,), True)
        yield s(np.full((2, 3), np.nan, "float32"), 0).without_gradient()
        yield s(s.array(2, 3), 0, dtype="float64")
        yield s(s.array(0, 2), 0).without_gradient()

    operator.error(
        "IndexError", lambda s: s(s.array(2, 3), 2), contains=["sum", "dim", "(2, 3)", "2"]
    )


_reduction(nansum, np.nansum)
_reduction(nanmean, np.nanmean)
nansum.samples(lambda s: iter([s(s.array(3, 4, dtype="int64"), 1), s(s.array(5, dtype="bool"))]))
nanmean.error(
    "DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=["nanmean", "self", "int64"]
)
