"""Test data of fft/frequencies: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq

fftfreq.reference(
    lambda n, d=1.0, dtype=None, device=None: np.fft.fftfreq(n, d).astype(dtype or "float32")
)
rfftfreq.reference(
    lambda n, d=1.0, dtype=None, device=None: np.fft.rfftfreq(n, d).astype(dtype or "float32")
)
for _each in (fftfreq, rfftfreq):
    _each.samples(lambda s: iter([s(4), s(5, 0.5), s(1), s(6, 2.0, dtype="float64")]))
    _each.error("ValueError", lambda s: s(0), contains=[_each.schema.base, "`n`", "0"])


def _axes(dim):
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return None
    return dim


fftshift.reference(lambda input, dim=None: np.fft.fftshift(input, _axes(dim)))
ifftshift.reference(lambda input, dim=None: np.fft.ifftshift(input, _axes(dim)))
for _each in (fftshift, ifftshift):
    _each.samples(
        lambda s: iter(
            [
                s(s.array(5)),
                s(s.array(4, 5)),
                s(s.array(4, 5), 1),
                s(s.array(2, 3, 4, dtype="complex64"), (0, -1)),
                s(s.array(4, 5, dtype="int64"), [0]),
                s(s.array(0, 3)),
            ]
        )
    )
    _each.error(
        "IndexError",
        lambda s: s(s.array(2, 3), 2),
        contains=[_each.schema.base, "dim", "(2, 3)", "2"],
    )
