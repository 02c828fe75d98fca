"""What tests draw without a seed of their own is the same in each run, whatever ran before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

DRAWS = """
import random
import numpy as np
import plait_core as pc

at_import = pc.rand(1).item()

def test_a():
    pc.rand(100)

def test_b():
    print("drawn:", at_import, pc.rand(1).item(), np.random.rand(), random.random())
"""


def draws(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, "-s"]
    command += ["--rootdir", str(folder), str(folder / "test_draws.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    (line,) = (line for line in done.stdout.splitlines() if "drawn:" in line)
    return line.rpartition("drawn:")[2]


def test_draws_are_those_of_the_test_and_the_option(tmp_path: Path) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    with (tmp_path / "conftest.py").open("a") as file:
        file.write("import plait_core\n")  # as the conftest of a package
    (tmp_path / "test_draws.py").write_text(DRAWS)
    every, alone = draws(tmp_path), draws(tmp_path, "-k", "test_b")
    assert every == alone
    other = draws(tmp_path, "--seed=1")
    assert all(x != y for x, y in zip(every.split(), other.split(), strict=True))
