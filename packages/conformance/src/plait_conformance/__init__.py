"""The tests that a replacement of a plait component must pass.

For role ``kernels.cpu`` the cases come from the operators' specs: samples and NumPy references,
layouts that are error-prone for kernels, the ``out=`` and in-place forms, and the errors that each
operator must give::

    pytest --pyargs plait_conformance --role kernels.cpu --provider NAME --load ./matmul.so

``--provider`` limits the run to the operators that this provider has kernels for; without it
everything that is installed is tested. A provider may decline cases: the kernel below it then
answers, and the result counts. A kernel that is never called, accepts no call, or returns without
ever writing a result fails by name.

For role ``engine`` the gradients of every operator are compared with finite differences at its
samples, and then programs are tested: accumulation, shared results, roots and seeds, modes, writes
in place, views, threads. An engine may raise NotImplementedError for difficult cases; a wrong
gradient is a failure::

    pytest --pyargs plait_conformance --role engine --provider NAME --load ./engine.so

For role ``communicator`` groups of processes run collectives of all kinds, and some are killed::

    pytest --pyargs plait_conformance --role communicator --provider NAME --where FORM
"""

from __future__ import annotations

from plait_conformance._cases import Case, cases
from plait_conformance._checks import (
    check_error,
    check_inplace,
    check_layouts,
    check_out,
    check_unpredictable,
    check_values,
)
from plait_conformance._engine import engine_in_force, right_or_refused
from plait_conformance._gradients import Derivative, check_derivative, derivatives
from plait_conformance._kernels import Registered, check_serves, registered

__all__ = [
    "Case",
    "Derivative",
    "Registered",
    "cases",
    "check_derivative",
    "check_error",
    "check_inplace",
    "check_layouts",
    "check_out",
    "check_serves",
    "check_unpredictable",
    "check_values",
    "derivatives",
    "engine_in_force",
    "registered",
    "right_or_refused",
]
