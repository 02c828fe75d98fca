"""Collectives over messages with more members than tests can start processes for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import plait_abi

HERE = Path(__file__).parent


@pytest.fixture(name="program", scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = tmp_path_factory.mktemp("collectives") / "collectives_in_memory"
    cxx = os.environ.get("CXX", "c++").split()
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    extra = os.environ.get("PLAIT_BUILD_FLAGS", "").split()
    source = str(HERE / "collectives_in_memory.cpp")
    folder = f"-I{plait_abi.paths()['include']}"
    subprocess.run([*cxx, *flags, *extra, folder, source, "-ldl", "-o", str(program)], check=True)
    return str(program)


@pytest.mark.parametrize(("members", "letters"), [(5, 4), (16, 15), (17, 5), (33, 6)])
@pytest.mark.long
def test_letters_of_a_collective(program: str, members: int, letters: int) -> None:
    """Up to 16 members write to each other; more of them hand calls on, in log2 n letters."""
    done = subprocess.run(
        [program, str(plait_abi.paths()["libplait_abi.so"]), str(members)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.stdout.split() == [str(letters), "done"], done.stdout + done.stderr
