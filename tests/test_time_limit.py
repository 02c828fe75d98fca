"""A test that hangs fails: its name, the stacks of its threads and of its children are printed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

HANGS = """
import multiprocessing, threading, time

def wait_in_a_child():
    time.sleep(1000)

def wait_in_a_thread():
    time.sleep(1000)

def test_that_hangs():
    print("printed before")
    threading.Thread(target=wait_in_a_thread, daemon=True).start()
    process = multiprocessing.get_context("fork").Process(target=wait_in_a_child)
    process.start()
    process.join()  # returns when the child is ended, which must not make the test pass

def test_after_it():
    pass
"""


def test_a_hang_is_a_failure_with_stacks(tmp_path) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_hang.py").write_text(HANGS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["--timeout=8", "--timeout-method=thread", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    output = done.stdout + done.stderr
    assert done.returncode == 1
    assert "test_that_hangs is over its limit of 8 s" in output
    assert "printed before" in output
    for function in ("test_that_hangs", "wait_in_a_thread", "wait_in_a_child"):
        assert f"in {function}" in output, function
    assert "passed" not in output
