"""Test data of linalg/determinants: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.linalg.systems import square_errors
from plait_ops.samples.matrices import regular
from plait_ops.specs.linalg.determinants import det, linalg_det_, linalg_slogdet_, logdet, slogdet

linalg_det_.reference(lambda A: np.asarray(np.linalg.det(A)))


@linalg_det_.samples
def _(s):
    yield s(regular(s, 3, 3)).loosely(100)
    yield s(regular(s, 2, 3, 3, dtype="float64")).loosely(100)
    yield s(regular(s, 2, 3, 3).swapaxes(1, 2)[::-1]).loosely(100)
    yield s(s.np.ones((2, 2), "float32"))
    yield s(s.np.zeros((2, 2), "float32"))
    yield s(regular(s, 3, 3, dtype="complex64")).loosely(100)
    yield s(s.array(0, 3, 3))
    yield s(s.array(2, 0, 0))


square_errors(linalg_det_)
linalg_slogdet_.reference(lambda A: tuple(np.asarray(x) for x in np.linalg.slogdet(A)))


@linalg_slogdet_.samples
def _(s):
    yield s(regular(s, 3, 3)).loosely(10)
    yield s(-regular(s, 2, 3, 3, dtype="float64")).loosely(10)
    yield s(regular(s, 3, 3, dtype="complex64")).loosely(10)
    yield s(s.np.ones((2, 2), "float32"))
    yield s(s.np.zeros((2, 2), "float32"))
    yield s(s.array(0, 3, 3))
    yield s(s.array(2, 0, 0))


square_errors(linalg_slogdet_)
det.reference(lambda self: linalg_det_(self))
slogdet.reference(lambda self: linalg_slogdet_(self))


@logdet.reference
def _(self):
    sign, size = np.linalg.slogdet(self)
    if self.dtype.kind == "c":
        return np.asarray(np.log(sign) + size).astype(self.dtype)
    return np.asarray(np.where(sign < 0, np.nan, size)).astype(self.dtype)


for _each in (det, slogdet, logdet):
    _each.samples(
        lambda s: iter(
            [
                s(regular(s, 3, 3)).loosely(100),
                s(regular(s, 2, 2, 2)),
                s(regular(s, 3, 3, dtype="complex64")).loosely(100),
            ]
        )
    )
    _each.error("ShapeError", lambda s: s(s.array(2, 3)), contains=["square", "(2, 3)"])
