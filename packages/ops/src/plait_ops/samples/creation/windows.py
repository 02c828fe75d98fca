"""Test data of creation/windows: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.creation.windows import (
    TAU,
    bartlett_window,
    blackman_window,
    cosine_window,
    hamming_window,
    hann_window,
    kaiser_window,
)


def _window(operator):

    @operator.samples
    def _(s):
        for n in (0, 1, 2, 7, 8):
            yield s(n)
        yield s(6, False)
        yield s(5, dtype="float64")

    operator.error("ValueError", lambda s: s(-1), contains=["window_length", "-1"])
    operator.error("DTypeError", lambda s: s(4, dtype="int64"), contains=["dtype", "int64"])


def _reference(formula):
    def reference(window_length, periodic=True, dtype=None, **numbers):
        if window_length < 2:
            return np.ones(window_length, dtype or "float32")
        last = window_length if periodic else window_length - 1
        result = formula(np.arange(window_length) / last, **numbers)
        return result.astype(dtype or "float32")

    return reference


_window(cosine_window)


cosine_window.reference(
    lambda window_length, periodic=True, a=0.5, b=0.5, c=0.0, dtype=None: _reference(
        lambda t: a - b * np.cos(TAU * t) + c * np.cos(2 * TAU * t)
    )(window_length, periodic, dtype)
)

_window(hann_window)
_window(hamming_window)
_window(blackman_window)
_window(bartlett_window)
_window(kaiser_window)
hann_window.reference(_reference(lambda t: 0.5 - 0.5 * np.cos(TAU * t)))
blackman_window.reference(
    _reference(lambda t: 0.42 - 0.5 * np.cos(TAU * t) + 0.08 * np.cos(2 * TAU * t))
)
bartlett_window.reference(_reference(lambda t: 1 - np.abs(2 * t - 1)))
hamming_window.reference(
    lambda window_length, periodic=True, alpha=0.54, beta=0.46, dtype=None: _reference(
        lambda t: alpha - beta * np.cos(TAU * t)
    )(window_length, periodic, dtype)
)
kaiser_window.reference(
    lambda window_length, periodic=True, beta=12.0, dtype=None: _reference(
        lambda t: np.i0(beta * np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))) / np.i0(beta)
    )(window_length, periodic, dtype)
)
