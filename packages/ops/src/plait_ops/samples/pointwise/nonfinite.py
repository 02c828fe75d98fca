"""Test data of pointwise/nonfinite: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.pointwise_samples import NONFINITE, predicate
from plait_ops.specs.pointwise.nonfinite import (
    isfinite_,
    isinf,
    isnan,
    isneginf,
    isposinf,
    nan_to_num,
    replace_nonfinite,
)


def _floats(function):
    return lambda x: function(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


predicate(isposinf, _floats(np.isposinf))
predicate(isneginf, _floats(np.isneginf))

replace_nonfinite.reference(
    lambda x, nan=0, posinf=0, neginf=0: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
)


nan_to_num.reference(
    lambda self, nan=None, posinf=None, neginf=None: np.nan_to_num(
        self, nan=nan or 0.0, posinf=posinf, neginf=neginf
    )
)


@nan_to_num.samples
def _(s):
    for dtype in ("float32", "float64"):
        yield s(np.array(NONFINITE, dtype)).without_gradient()
        yield s(np.array(NONFINITE, dtype), 1.0, 2.0, -3.0).without_gradient()
    yield s(s.strided(3, 4))
    yield s(s.array(3, dtype="int32"))
    yield s(np.array([complex("nan+1j"), complex("inf-infj"), 2j], "complex64")).without_gradient()


nan_to_num.error("TypeError", lambda s: s("x"), contains=["nan_to_num", "self"])


def _predicate(operator, reference):
    operator.reference(reference)

    @operator.samples
    def _(s):
        yield s(np.array([np.nan, 1, np.inf, -np.inf, 0], "float32"))
        yield s(np.array([np.nan, 1, np.inf, -np.inf, 0], "float64"))


_predicate(isnan, np.isnan)
_predicate(isinf, np.isinf)
_predicate(isfinite_, np.isfinite)
