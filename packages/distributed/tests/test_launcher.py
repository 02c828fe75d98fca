"""``python -m plait_distributed.run``."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from plait_distributed.run import main

LONG = 120.0  # seconds, for machines that are busy; a test that passes waits for none of them
PROGRAM = """
import os, subprocess, sys, time
import plait_core as pc, plait_distributed as dist
dist.init_process_group(timeout=300)
rank, way = dist.get_rank(), sys.argv[1]
x = pc.ones(1)
dist.all_reduce(x)
names = ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_RUN_ID")
open(f"out{rank}", "w").write(f"{x.item()} " + " ".join(os.environ[n] for n in names))
if way == "raises" and rank == 1:
    raise KeyError("the first to fail")
if way == "aborts" and rank == 1:
    dist.get_default_group().abort("the loss is not finite")
    for peer in dist.get_default_group().peers:  # the others fail before
        while peer.pid != os.getpid() and os.path.exists(f"/proc/{peer.pid}"):
            if open(f"/proc/{peer.pid}/stat").read().rpartition(") ")[2][0] in "ZX":
                break
            time.sleep(0.01)
    raise ArithmeticError("of the rank that aborts")
if way == "killed" and rank == 1:
    os.kill(os.getpid(), 9)
if way == "waits":
    open(f"child{rank}", "w").write(str(subprocess.Popen(["sleep", "600"]).pid))
    open(f"ready{rank}", "w").close()
    time.sleep(600)
dist.barrier()
"""


@pytest.fixture(name="program")
def program_in_a_folder(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


# The launcher, which lets a rank on a busy machine have a minute to show that it failed first.
PATIENT = """
import sys
from plait_distributed import _launcher, run
_launcher._SECOND_LOOK = 60.0
sys.exit(run.main(sys.argv[1:]))
"""


def launch(program: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PATIENT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=program.parent,
        timeout=300,
    )


def test_ranks_get_their_environment(program: pathlib.Path) -> None:
    done = launch(program, "-n", "2", "--rdzv-id", "job", str(program), "ends")
    assert (done.returncode, done.stderr) == (0, "")
    for rank in range(2):
        assert (program.parent / f"out{rank}").read_text() == f"2.0 {rank} 2 127.0.0.1 job"


def test_a_module_is_run(program: pathlib.Path) -> None:
    flags = ("--nproc_per_node=1", "--standalone", "--master-port", "29511", "-m")
    done = launch(program, *flags, "program", "ends")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("way", "code", "text"),
    [
        ("raises", 1, "rank 1 (pid {}) exited with 1:\n  Traceback"),
        ("killed", 137, "rank 1 (pid {}) was ended by SIGKILL"),
    ],
)
def test_the_first_failure_is_reported(
    program: pathlib.Path, way: str, code: int, text: str
) -> None:
    done = launch(program, "-n", "3", str(program), way)
    assert done.returncode == code, done.stderr
    before, after = text.split("{}")
    report = done.stderr[done.stderr.rindex("plait_distributed.run: ") :]
    assert before in report and after in report
    assert ("the first to fail" in report) == (way == "raises") and "RankLost" not in report


def test_a_rank_that_aborts_is_reported_though_others_fail_before(program: pathlib.Path) -> None:
    done = launch(program, "-n", "3", str(program), "aborts")
    report = done.stderr.rpartition("plait_distributed.run: ")[2]
    assert done.returncode == 1 and report.startswith("rank 1 (pid "), done.stderr
    assert "of the rank that aborts" in report


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_the_launcher_ends(program: pathlib.Path, number: int) -> None:
    launcher = subprocess.Popen(
        [sys.executable, "-m", "plait_distributed.run", "-n", "2", str(program), "waits"],
        cwd=program.parent,
        stderr=subprocess.DEVNULL,
    )
    folder = program.parent
    until(lambda: all((folder / f"ready{rank}").exists() for rank in range(2)))
    ranks = [int(line) for line in _children(launcher.pid)]
    inner = [int((folder / f"child{rank}").read_text()) for rank in range(2)]
    assert len(ranks) == 2
    launcher.send_signal(number)
    code = launcher.wait(LONG)
    assert code == (-9 if number == signal.SIGKILL else 128 + number)
    until(lambda: not any(map(_runs, ranks)))
    if number == signal.SIGKILL:  # nobody was left to end what the ranks had started
        for pid in inner:
            os.kill(pid, signal.SIGKILL)
    else:
        until(lambda: not any(map(_runs, inner)))


HOLDS_A_FOLDER = """
import sys
from plait_distributed._notes import note_folder
with note_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_the_folder_of_a_killed_launcher_is_removed_by_the_next(tmp_path: pathlib.Path) -> None:
    def start() -> tuple[subprocess.Popen[str], pathlib.Path]:
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS_A_FOLDER], text=True, env=environment, **pipes
        )
        assert process.stdout is not None
        return process, pathlib.Path(process.stdout.readline().strip())

    (tmp_path / "plait-job-of-another").mkdir()  # without a lock it is nobody's that is gone
    killed, first = start()
    working, second = start()
    killed.kill()
    killed.communicate()
    assert first.is_dir() and second.is_dir()
    third, _ = start()
    assert not first.exists() and second.is_dir()
    for each in (working, third):
        each.communicate()
        assert each.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["plait-job-of-another"]


RESTARTED = """
import os, sys
count = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
rank = os.environ["RANK"]
with open(f"starts{rank}", "a") as file:
    file.write(f"{count} ")
if sys.argv[1] == "meet":
    import plait_distributed as dist
    dist.init_process_group(timeout=300)
    dist.barrier()
while sys.argv[1] == "waits" and rank == "0":  # one that has ended well is not waited for
    if os.path.exists("starts1") and len(open("starts1").read().split()) > int(sys.argv[2]):
        break
sys.exit(5 if rank == "1" and count < int(sys.argv[2]) else 0)
"""


@pytest.mark.parametrize(
    ("flags", "way", "starts"),
    [
        (["--max-restarts", "2"], "meet", ["0 1 2 ", "0 1 2 "]),
        (["--max-restarts", "2", "--elastic"], "waits", ["0 ", "0 1 2 "]),
    ],
    ids=["all", "one"],
)
def test_ranks_are_started_again(
    tmp_path: pathlib.Path, flags: list[str], way: str, starts: list[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(RESTARTED)
    done = launch(program, "-n", "2", *flags, str(program), way, "2")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("rank 1 (pid ") == 2 and "exited with 5" in done.stderr
    assert [(tmp_path / f"starts{rank}").read_text() for rank in range(2)] == starts


def test_restarts_are_used_up(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RESTARTED)
    done = launch(program, "-n", "2", "--max-restarts", "1", str(program), "alone", "9")
    assert done.returncode == 5
    # the others go on and end well
    flags = ("-n", "2", "--max-restarts", "1", "--elastic")
    done = launch(program, *flags, str(program), "alone", "9")
    assert done.returncode == 0 and "the others go on" in done.stderr
    # nobody does
    done = launch(program, "-n", "1", "--elastic", "--no-python", "false")
    assert done.returncode == 1


LATE = """
import os, sys, time
from plait_distributed import elastic
again = os.environ["TORCHELASTIC_RESTART_COUNT"] != "0"
if again:
    open("again", "w").close()
elastic.init_process_group(timeout=300)
elastic.run(lambda state: None)(elastic.State())
if os.environ["RANK"] == "1":
    sys.exit(3)  # behind the end of the training
while not os.path.exists("again"):
    time.sleep(0.01)
"""


def test_a_rank_that_is_started_again_behind_the_end(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(LATE)
    done = launch(program, "-n", "2", "--elastic", "--max-restarts", "2", str(program))
    assert done.returncode == 0, done.stderr
    assert "elastic: the training has ended: other ranks of the job came" in done.stderr


def _children(pid: int) -> list[str]:
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _runs(pid: int) -> bool:
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def until(condition: Any) -> None:
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--nnodes", "2", "x.py"], "launchers need a secret"),
        (["--nnodes", "3:2", "x.py"], "must be N or MIN:MAX, got 3:2"),
        (["-n", "0", "x.py"], "must be positive"),
        (["-n", "two", "x.py"], "must have a number, got 'two'"),
        (["--max-restarts", "-1", "x.py"], "must not be negative, got -1"),
        (["--nnodes", "2", "--node-rank", "2", "x.py"], r"must be in \[0, 2\), got 2"),
        (["--nnodes", "2", "--node-rank", "-5", "x.py"], r"must be in \[0, 2\), got -5"),
        (["--nnodes", "2", "--timeout", "nan", "x.py"], "must be positive, got nan"),
        (["--nnodes", "2", "--timeout", "0", "x.py"], "must be positive, got 0"),
        (["--master-port", "99999", "x.py"], r"must be in \[1, 65535\], got 99999"),
        (["--rdzv-endpoint", "here:-1", "x.py"], r"must be in \[1, 65535\], got -1"),
    ],
)
def test_what_is_not_there_is_said(
    arguments: list[str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLAIT_JOB_SECRET", raising=False)
    with pytest.raises(SystemExit, match=text):
        main(arguments)
