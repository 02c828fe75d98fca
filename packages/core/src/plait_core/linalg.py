"""Linear algebra: factorizations, systems of equations, norms.

Matrices are the last two dimensions; the dimensions before them are a batch. The functions are the
operators whose names begin with ``linalg_``, and run LAPACK on every matrix of a batch.

    >>> import plait_core as pc
    >>> a = pc.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> pc.linalg.solve(a, pc.tensor([1.0, 1.0]))
    tensor([0.5000, 0.2500])
"""

from __future__ import annotations

from plait_abi import LinAlgError
from plait_abi.arguments import name_arguments as _name_arguments
from plait_core._functions._products import multi_dot
from plait_core._namespaces import fill as _fill, shown as _shown

__all__ = ["LinAlgError", "multi_dot"]

_name_arguments(globals())
__getattr__ = _fill(globals(), "linalg_")
__dir__ = _shown(globals())
