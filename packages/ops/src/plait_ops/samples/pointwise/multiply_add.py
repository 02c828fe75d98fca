"""Test data of pointwise/multiply_add: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.multiply_add import addcdiv, addcmul, lerp

lerp.reference(lambda a, b, w: np.where(np.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w)))
addcmul.reference(lambda a, b, c, value: a + np.asarray(value).astype(a.dtype) * b * c)
addcdiv.reference(lambda a, b, c, value: a + np.asarray(value).astype(a.dtype) * b / c)
addcmul.samples(lambda s: iter([s(s.array(3), s.array(3), s.array(3), value=-2)]))
addcdiv.samples(lambda s: iter([s(s.array(3), s.array(3), s.array(3, low=0.5), value=0.5)]))
