"""The provider `mpi` in jobs of several processes."""

from __future__ import annotations

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
        begin = f"rank {old}, now {new} of 2: sum 4, lost [1], in time True: all_reduce: "
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
