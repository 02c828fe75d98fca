"""Groups of tests that run at the same time: their counts, their output, and groups that hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "run_tests.py"


@pytest.fixture
def run(tmp_path):
    """A function that writes test files, runs each as a group, and returns status and output."""

    def run_groups(files, *options):
        groups = {}
        for name, text in files.items():
            path = tmp_path / f"test_{name}.py"
            path.write_text(text)
            groups[name] = ["-p", "no:cacheprovider", "-c", os.devnull, str(path)]
        command = [sys.executable, str(TOOL), json.dumps(groups), *options]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        return done.returncode, done.stdout

    return run_groups


def test_counts_of_all_groups_are_added(run) -> None:
    one = "def test_a(): pass\ndef test_b(): pass\n"
    two = "import pytest\ndef test_c(): pass\ndef test_d(): pytest.skip('no device')\n"
    status, output = run({"one": one, "two": two})
    assert status == 0
    assert output.rstrip().endswith("\n3 passed, 0 failed, 1 skipped")
    assert "one: passed" in output


def test_a_failure_shows_its_group_and_no_other(run) -> None:
    status, output = run(
        {
            "bad": "def test_a():\n    print('said by bad')\n    assert 1 == 2\n",
            "good": "def test_b():\n    print('said by good')\n",
        }
    )
    assert status == 1
    assert "assert 1 == 2" in output
    assert "said by bad" in output
    assert "said by good" not in output
    assert "failed: bad\n" in output
    assert output.rstrip().endswith("\n1 passed, 1 failed, 0 skipped")


@pytest.mark.parametrize(
    "text",
    ["import os\ndef test_a(): os._exit(0)\n", "import no_such_module\n", "def test_a(: pass\n"],
    ids=["exit", "import", "syntax"],
)
def test_a_group_that_does_not_come_to_its_end_fails(run, text: str) -> None:
    status, output = run({"bad": text})
    assert status == 1
    assert output.rstrip().endswith("\n0 passed, 1 failed, 0 skipped")


def test_a_group_that_hangs_is_ended_with_its_stacks(run, tmp_path) -> None:
    text = (
        "import pathlib, subprocess, sys, time\n"
        "def test_a():\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"
        "    pathlib.Path('child').write_text(str(child.pid))\n"
        "    wait_for_nothing()\n"
        "def wait_for_nothing():\n"
        "    time.sleep(1000)\n"
    )
    status, output = run({"hangs": text}, "--limit", "15")
    assert status == 1
    assert "hangs: not done after 15 s" in output
    assert "in wait_for_nothing" in output
    child = Path("/proc", (tmp_path / "child").read_text(), "stat")
    end = time.monotonic() + 120
    while child.exists() and child.read_text().rpartition(") ")[2][0] not in "ZX":
        assert time.monotonic() < end, "a process that the test started still runs"
        time.sleep(0.05)
