"""Test data of convolution/unfolding: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.views.slicing import slice_along
from plait_ops.specs.convolution.unfolding import unfold, unfold_backward


@unfold_backward.reference
def _(grad, input_size, dim, size, step):
    result = np.zeros(input_size, grad.dtype)
    at = dim % len(input_size)
    for k in range(size):
        slice_along(result, at, k, k + (grad.shape[at] - 1) * step + 1, step)[...] += grad[..., k]
    return result


@unfold.reference
def _(self, dim, size, step):
    if not self.ndim:
        return self.reshape(1)[:size]
    windows = (
        np.lib.stride_tricks.sliding_window_view(self, size, dim)
        if size
        else np.zeros((*self.shape, 0), self.dtype)
    )
    if not size:
        lead = list(self.shape)
        lead[dim] = self.shape[dim] // step + 1
        return np.zeros((*lead, 0), self.dtype)
    return slice_along(windows, dim % self.ndim, None, None, step)


unfold.samples(
    lambda s: iter(
        [
            s(s.array(5), 0, 2, 1),
            s(s.array(2, 6), -1, 3, 2),
            s(s.backwards(5, 2), 0, 5, 1),
            s(s.array(4), 0, 1, 3),
            s(s.array(), 0, 1, 1),
        ]
    )
)
unfold_backward.samples(
    lambda s: iter([s(s.array(4, 2), (5,), 0, 2, 1), s(s.array(2, 2, 3), (2, 6), -1, 3, 2)])
)
unfold.error(
    "ValueError", lambda s: s(s.array(3), 0, 4, 1), contains=["unfold", "size", "4", "(3,)"]
)
unfold.error("ValueError", lambda s: s(s.array(3), 0, 2, 0), contains=["unfold", "step", "0"])
unfold.error("IndexError", lambda s: s(s.array(3), 1, 2, 1), contains=["unfold", "dim", "(3,)"])
unfold_backward.error(
    "ShapeError", lambda s: s(s.array(3, 2), (-1,), 0, 2, 1), contains=["unfold_backward", "-1"]
)
