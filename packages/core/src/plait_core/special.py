"""Special functions: the operators whose names begin with ``special_``.

>>> import plait_core as pc
>>> pc.special.expit(pc.tensor([0.0]))
tensor([0.5000])
"""

from __future__ import annotations

from plait_core._namespaces import fill as _fill, shown as _shown

__all__: list[str] = []

__getattr__ = _fill(globals(), "special_")
__dir__ = _shown(globals())
