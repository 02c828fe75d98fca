"""What ranks print reaches the launcher's streams whole, with their ranks where that is wanted."""

from __future__ import annotations

import collections
import os
import pathlib
import signal
import subprocess
import sys

PROGRAM = """
import os, subprocess, sys
rank, way = os.environ["RANK"], sys.argv[1]
for i in range(300):
    print("rank", rank, "line", i)  # with -u, which the launcher sets, in nine writes
    print("rank", rank, "error", i, file=sys.stderr)
sys.stdout.write(rank * 300_000 + "\\n")
sys.stdout.write("no end of rank " + rank)
if way == "killed" and rank == "1":
    os.kill(os.getpid(), 9)
if way == "leaves":  # its session is another: it lives on, and holds the pipes
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    open("child" + rank, "w").write(str(child.pid))
"""


def launch(folder: pathlib.Path, way: str, *flags: str) -> tuple[int, list[str], list[str]]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "plait_distributed.run", "-n", "2", *flags, str(program), way]
    with open(folder / "out", "w") as out, open(folder / "err", "w") as err:
        code = subprocess.run(
            command, stdout=out, stderr=err, check=False, cwd=folder, timeout=300
        ).returncode
    return code, *((folder / name).read_text().splitlines() for name in ("out", "err"))


def printed(rank: int, prefix: str = "") -> list[str]:
    lines = [f"rank {rank} line {i}" for i in range(300)]
    return [prefix + line for line in (*lines, str(rank) * 300_000, f"no end of rank {rank}")]


def errors(rank: int, prefix: str = "") -> list[str]:
    return [f"{prefix}rank {rank} error {i}" for i in range(300)]


def test_lines_stay_whole(tmp_path: pathlib.Path) -> None:
    code, out, err = launch(tmp_path, "ends")
    assert code == 0
    assert collections.Counter(out) == collections.Counter(printed(0) + printed(1))
    assert collections.Counter(err) == collections.Counter(errors(0) + errors(1))


def test_ranks_stand_before_lines(tmp_path: pathlib.Path) -> None:
    _, out, err = launch(tmp_path, "ends", "--tee", "3")
    for rank in range(2):
        prefix = f"[rank{rank}]: "
        assert [line for line in out if line.startswith(prefix)] == printed(rank, prefix)
        assert [line for line in err if line.startswith(prefix)] == errors(rank, prefix)
    _, out, err = launch(tmp_path, "ends", "--tee", "1")
    assert out[0].startswith("[rank") and not err[0].startswith("[rank")


def test_what_a_killed_rank_printed_arrives(tmp_path: pathlib.Path) -> None:
    code, out, err = launch(tmp_path, "killed")
    assert code == 137 and any("rank 1" in line and "SIGKILL" in line for line in err)
    assert not collections.Counter(printed(1)) - collections.Counter(out)
    assert not collections.Counter(errors(1)) - collections.Counter(err)


def test_a_process_that_holds_the_pipes_is_not_waited_for(tmp_path: pathlib.Path) -> None:
    try:
        code, out, _ = launch(tmp_path, "leaves", "--tee", "1")  # waits for less than 600 seconds
        assert code == 0 and len(out) == 2 * 302
    finally:
        for path in tmp_path.glob("child*"):
            os.kill(int(path.read_text()), signal.SIGKILL)
