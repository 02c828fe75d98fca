"""The provider `mpi` in jobs of several processes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_mpi


def test_alone() -> None:
    assert (plait_mpi.rank(), plait_mpi.size(), plait_mpi.lost()) == (0, 1, [])
    group = plait_abi.Communicator.open("mpi", "mpi:alone", 0, 1)
    x, y = np.arange(4.0), np.zeros(4)
    group.start("all_reduce", [x], [y], reduction="mean")
    assert (y == x).all()
    group.start("barrier")
    group.close()


@pytest.mark.parametrize(
    ("where", "size", "text"),
    [
        ("shm:name", 1, '`where` must be "mpi:NAME", got "shm:name"'),
        ("mpi:", 1, '`where` must be "mpi:NAME"'),
        ("mpi:x", 2, "`size` must be at most 1, the number of processes, got 2"),
    ],
)
def test_wrong_places(where: str, size: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        plait_abi.Communicator.open("mpi", where, 0, size, 1.0)


@pytest.mark.parametrize("count", [2, 4])
def test_values(job: Any, count: int) -> None:
    done = job(count, "collectives.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["done"] * count


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_the_others_go_on_without_a_lost_rank(job: Any, how: str) -> None:
    done = job(3, "losing_a_rank.py", how, options=("--with-ft", "ulfm"))
    if "unrecognized" in done.stderr or "unknown option" in done.stderr:
        pytest.skip("this mpiexec does not know --with-ft ulfm")
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("rank"))
    assert len(lines) == 2, done.stdout + done.stderr
    for new, (old, line) in enumerate(zip((0, 2), lines, strict=True)):
        begin = f"rank {old}, now {new} of 2: sum 4, lost [1]: all_reduce: "
        assert line.startswith(begin) and "rank 1 (pid " in line and line.endswith("died"), line


def test_a_rank_that_fails_ends_the_job(job: Any) -> None:
    program = (
        "import numpy, plait_abi, plait_mpi as m\n"
        "group = plait_abi.Communicator.open('mpi', 'mpi:x', m.rank(), m.size())\n"
        "assert m.rank() != 1, 'rank one fails'\n"
        "group.start('barrier')\n"
    )
    done = job(3, "-c", program)
    assert done.returncode != 0
    assert "rank one fails" in done.stderr
    assert "left the group" in done.stderr or "is broken" in done.stderr, done.stderr


def test_a_rank_that_holds_the_interpreters_lock_is_not_lost(job: Any) -> None:
    program = (
        "import ctypes, numpy, plait_abi, plait_mpi as m\n"
        "group = plait_abi.Communicator.open('mpi', 'mpi:x', m.rank(), m.size(), 200.0)\n"
        "group.start('barrier')\n"
        "x = numpy.ones(500_000)\n"
        "if m.rank() == 1: ctypes.PyDLL(None).sleep(6)\n"
        "group.start('all_reduce', [x], [x])\n"
        "print(x[-1], m.lost(), flush=True)\n"
    )
    done = job(2, "-c", program)
    assert done.stdout.splitlines() == ["2.0 []"] * 2, done.stdout + done.stderr


LOCKED = """
#include <unistd.h>
int locked;
int MPI_Testsome(int n, void *r, int *d, int *i, void *s) {
  (void)n, (void)r, (void)i, (void)s;
  *d = 0;
  return 0;
}
int MPI_Test(void *request, int *done, void *status) {
  extern int PMPI_Test(void *, int *, void *);
  while (locked) sleep(1);
  return PMPI_Test(request, done, status);
}
"""
PROGRAM_THAT_IS_LOCKED = """
import ctypes, sys
from mpi4py import MPI
library = ctypes.CDLL(sys.argv[1])
MPI.__file__ = sys.argv[1]  # where the functions are looked for
import plait_abi, plait_mpi
group = plait_abi.Communicator.open("mpi", "mpi:x", 0, 1, 600.0)
ctypes.c_int.in_dll(library, "locked").value = 1
try:
    while True:
        group.start("barrier")
except plait_abi.PlaitError as error:
    print(error)
"""


def test_an_mpi_that_does_not_return(tmp_path: pathlib.Path) -> None:
    """A waiting call fails after 10 s, and the process ends, though MPI_Finalize would never
    return.
    """
    names = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines()}
    libraries = [name for name in names if "/libmpi" in name and ".so" in name]
    source, shim = tmp_path / "locked.c", tmp_path / "locked.so"
    source.write_text(LOCKED)
    compiler = os.environ.get("CC", "cc").split()
    build = [*compiler, "-shared", "-fPIC", str(source), "-o", str(shim), *libraries]
    subprocess.run(build, check=True)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM_THAT_IS_LOCKED, str(shim)],
        capture_output=True,
        text=True,
        timeout=300,  # less than that of the group
    )
    assert "the transport has not returned from MPI_Test for 10 s" in done.stdout
    assert done.returncode == 1 and "the process ends without MPI_Finalize" in done.stderr
