"""Fourier transforms: the operators whose names begin with ``fft_``.

>>> import plait_core as pc
>>> pc.fft.irfft(pc.fft.rfft(pc.tensor([1.0, 2.0, 3.0, 4.0])))
tensor([1., 2., 3., 4.])
"""

from __future__ import annotations

from plait_core._namespaces import fill as _fill, shown as _shown

__all__: list[str] = []

__getattr__ = _fill(globals(), "fft_")
__dir__ = _shown(globals())
