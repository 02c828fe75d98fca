"""Test data of random/dropout: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.random.dropout import dropout, native_dropout, native_dropout_backward

native_dropout.reference(
    lambda input, p: (np.zeros(input.shape, input.dtype), np.zeros(input.shape, bool))
)
native_dropout.samples(
    lambda s: iter(
        [s(s.array(3, 4), 0.5), s(s.strided(3, 4), 0.0), s(s.array(3), 1.0), s(s.array(0), 0.1)]
    )
)
native_dropout.error(
    "ValueError", lambda s: s(s.array(2), 1.5), contains=["native_dropout", "p", "1.5"]
)
native_dropout.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="int64"), 0.5),
    contains=["native_dropout", "input", "int64"],
)

native_dropout_backward.reference(
    lambda grad_output, mask, scale: grad_output * mask * grad_output.dtype.type(scale)
)
native_dropout_backward.samples(
    lambda s: iter(
        [
            s(s.array(3, 4), np.arange(12).reshape(3, 4) % 3 == 0, 2.0),
            s(s.strided(3, 4), np.arange(12).reshape(3, 4) % 2 == 0, 0.0),
            s(s.array(0), np.zeros(0, bool), 2.0),
        ]
    )
)
native_dropout_backward.error(
    "DTypeError",
    lambda s: s(s.array(2), s.array(2), 2.0),
    contains=["native_dropout_backward", "mask", "float32"],
)


dropout.reference(lambda input: input)
dropout.samples(
    lambda s: iter([s(s.array(3, 4)), s(s.array(3, 4), 0.1, False), s(s.array(3), 1.0)])
)
dropout.error("ValueError", lambda s: s(s.array(2), -0.5), contains=["dropout", "p", "-0.5"])
