"""The tests that a replacement of a plait component must pass.

For role ``kernels.cpu`` the cases come from the operators' specs: samples and NumPy references, the
layouts that kernels get wrong, the ``out=`` and in-place forms, and the errors that each operator
must give::

    pytest --pyargs plait_conformance --role kernels.cpu --provider NAME --load matmul.so

``--provider`` limits the run to the operators that this provider has kernels for; without it
everything that is installed is tested. A provider may decline cases: the kernel below it then
answers, and the result counts.
"""

from __future__ import annotations

from plait_conformance._cases import Case, cases
from plait_conformance._checks import (
    check_error,
    check_inplace,
    check_layouts,
    check_out,
    check_values,
)

__all__ = [
    "Case",
    "cases",
    "check_error",
    "check_inplace",
    "check_layouts",
    "check_out",
    "check_values",
]
