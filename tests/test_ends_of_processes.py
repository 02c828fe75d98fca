"""Children of a program with foreign threads end by `_exit`, whatever happens to them."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
METHODS = ("fork", "forkserver", "spawn")
# what the program prints about children of each kind that nothing happens to
KINDS = {
    "process": "exit code 0\n",
    "default process": "exit code 0\n",
    "pool": "[None, None, None, None]\n",
    "manager": "[1, 2]\n",
    "spawn": "ended\n",
    "data": "8 samples\n",
}
EVENTS = ("nothing", "signal", "flag", "exit")
# a spawned child is no child of a fork
CASES = [("spawn", "nothing"), *((m, e) for m in METHODS if m != "spawn" for e in EVENTS)]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library whose destructor waits for its thread."""
    path = tmp_path_factory.mktemp("waiting") / "waiting_library.so"
    cc = os.environ.get("CC", "cc").split()
    flags = ["-shared", "-fPIC", "-Wall", "-Werror", "-pthread", "-o", str(path)]
    subprocess.run([*cc, *flags, str(HERE / "waiting_library.c")], check=True)
    return str(path)


def run(*arguments: str) -> str:
    """Run the program; it and its children are ended if it hangs."""
    program = subprocess.Popen(
        [sys.executable, str(HERE / "ends_of_processes_program.py")],
        env={
            **os.environ,
            "ENDS_OF_PROCESSES": ",".join(arguments),
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = program.communicate(timeout=200)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        pytest.fail(f"the program hangs: {program.communicate()[0]}")
    assert program.returncode == 0, output
    assert output.splitlines()[-1] == "end", output
    assert "a child runs the program of its parent" not in output, output
    return output


@pytest.mark.parametrize(("method", "event"), CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_children_end(library: str, kind: str, method: str, event: str) -> None:
    output = run(library, kind, method, event)
    if event == "nothing":
        assert output.count(KINDS[kind]) == 2, output


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_signal_before_the_child_runs_is_handled_as_later_ones(library: str, method: str) -> None:
    assert run(library, "process", method, "signal").count("exit code 3\n") == 2


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_library_of_a_child_calls_exit(library: str, method: str) -> None:
    assert run(library, "process", method, "exit").count("exit code 7\n") == 2


@pytest.mark.parametrize("kind", ["process", "worker"])
def test_an_exception_at_each_instruction_of_a_child(library: str, kind: str) -> None:
    assert run(library, f"instructions of a {kind}", "fork", "nothing").count("done\n") == 2
