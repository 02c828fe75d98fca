"""Test data of pointwise/pairwise_extremes: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.pairwise_extremes import fmax, fmin, maximum, minimum

maximum.reference(np.maximum)
minimum.reference(np.minimum)
fmax.reference(np.fmax)
fmin.reference(np.fmin)
