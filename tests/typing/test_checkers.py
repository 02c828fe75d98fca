"""Type checkers know every public name, report planted mistakes, and nothing else.

The session `types` runs these tests; they need mypy and basedpyright, which is pyright packaged
with what it needs to run.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

HERE = pathlib.Path(__file__).parent
MODULES = (
    "plait",
    "plait.array_api",
    "plait.autograd",
    "plait_core",
    "plait.distributed",
    "plait.distributions",
    "plait.fft",
    "plait.func",
    "plait.func.pytree",
    "plait.linalg",
    "plait.multiprocessing",
    "plait.nn",
    "plait.nn.functional",
    "plait.nn.init",
    "plait.nn.utils",
    "plait.optim",
    "plait.optim.lr_scheduler",
    "plait.profiler",
    "plait.sparse",
    "plait.special",
    "plait.utils.data",
)
COMMANDS = {
    "mypy": ["-m", "mypy", "--strict"],
    "pyright": ["-m", "basedpyright", "--pythonpath", sys.executable],
}
SETTINGS = '{"typeCheckingMode": "standard"}'  # pyright's own rules, without those added to them


@pytest.fixture(params=COMMANDS)
def reports(
    request: pytest.FixtureRequest,
    tmp_path: pathlib.Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], list[str]]:
    """Return a function that checks the text of a program and returns the checker's reports."""

    def check(text: str) -> list[str]:
        (tmp_path / "pyrightconfig.json").write_text(SETTINGS)
        (tmp_path / "program.py").write_text(text)
        command = [sys.executable, *COMMANDS[request.param], "program.py"]
        cache = tmp_path_factory.getbasetemp() / "mypy"
        environment = {**os.environ, "NO_COLOR": "1", "MYPY_CACHE_DIR": str(cache)}
        environment.pop("MYPYPATH", None)
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        lines = re.findall(r"program\.py:\d+:.*(?:error|warning).*", done.stdout)
        assert bool(lines) == bool(done.returncode), done.stdout + done.stderr
        return lines

    return check


def _line(report: str) -> int:
    return int(report.split("program.py:")[1].partition(":")[0])


def test_nothing_is_reported_in_a_correct_program(reports: Callable[[str], list[str]]) -> None:
    assert reports((HERE / "correct.py").read_text()) == []


def test_every_mistake_is_reported(reports: Callable[[str], list[str]]) -> None:
    text = (HERE / "mistakes.py").read_text()
    marked = {i for i, line in enumerate(text.splitlines(), 1) if "# mistake" in line}
    assert len(marked) >= 20
    assert {_line(report) for report in reports(text)} == marked


def test_every_public_name_is_known(reports: Callable[[str], list[str]]) -> None:
    lines, used = [], 0
    for name in MODULES:
        module = importlib.import_module(name)
        public = dir(module) if name in ("plait", "plait_core") else module.__all__
        results = [each for each in public if not each.startswith("_")]
        lines += [f"from {name} import {each} as n{used + i}" for i, each in enumerate(results)]
        used += len(results)
    assert used > 1500
    assert reports("\n".join(lines) + "\n") == []


def test_every_public_member_of_a_tensor_is_known(reports: Callable[[str], list[str]]) -> None:
    plait = importlib.import_module("plait")
    results = [name for name in dir(plait.Tensor) if not name.startswith("_")]
    lines = [f"n{i} = x.{name}" for i, name in enumerate(results)]
    assert reports("\n".join(["import plait", "x = plait.zeros(2)", *lines]) + "\n") == []
