"""The command `python -m plait_profiler`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "plait_profiler", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("end", "status", "says"),
    [
        ("", 0, ""),
        ("sys.exit(7)", 7, ""),
        ("sys.exit('no data')", 1, "no data"),
        ("raise OSError('no file')", 1, "OSError: no file"),
        ("signal.raise_signal(signal.SIGINT)", 130, "KeyboardInterrupt"),
    ],
)
def test_the_table_is_there_however_a_program_ends(
    tmp_path: Path, end: str, status: int, says: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import signal, sys\nimport plait_core as pc\npc.ones(3).exp()\n{end}\n")
    trace = tmp_path / "trace.json"
    result = run("--trace", trace, program)
    assert result.returncode in (status, 128 - status)  # -SIGINT, or a shell's number for it
    assert "\nexp " in result.stdout
    assert says in result.stderr
    assert trace.exists()


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [("--sort", "speed", "must be one of cpu_time"), ("--trace", "a.txt", "must end in one of")],
)
def test_options_are_checked_before_the_program_runs(
    tmp_path: Path, option: str, value: str, says: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text("print('it ran')\n")
    result = run(option, value, program)
    assert result.returncode == 2
    assert f"argument {option}: " in result.stderr and says in result.stderr
    assert "it ran" not in result.stdout


def test_sorted_by_the_name_of_an_accelerator(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys\nimport plait_core as pc\npc.ones(int(sys.argv[1])).exp()\n")
    result = run("--sort", "self_cuda_time_total", "--rows", "1", program, "3")
    assert result.returncode == 0
    assert "row_limit" in result.stdout
