"""Collectives over messages with more members than tests can start processes for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

import plait_abi


@pytest.fixture(scope="module")
def program(compile_cpp: Callable[..., str]) -> str:
    return compile_cpp("collectives_in_memory")


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
