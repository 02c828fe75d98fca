"""A test that hangs fails after a time limit, and the stacks of its processes are printed."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HANGING = """
import multiprocessing, os, subprocess, sys, threading, time

def wait_long():
    time.sleep(1000)

def test_of_a_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

def test_of_a_forked_child():
    process = multiprocessing.get_context("fork").Process(target=wait_long)
    process.start()
    process.join()

def test_of_a_program():
    code = "import time\\ndef wait_for_ever():\\n    time.sleep(1000)\\nwait_for_ever()"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=sys.__stderr__)
    try:
        process.wait()
    except BaseException:
        process.wait()

def test_that_is_good():
    pass
"""


def test_a_test_that_hangs_fails(tmp_path: pathlib.Path) -> None:
    (tmp_path / "tools").mkdir()
    for name in ("conftest.py", "tools/time_limit.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "test_hanging.py").write_text(HANGING)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir", str(tmp_path), "-rA", "--capture=sys"],
        cwd=tmp_path,
        env={**os.environ, "PLAIT_TEST_SECONDS": "4"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    text = done.stdout + done.stderr
    for name in ("lock", "forked_child", "program"):
        assert f"test_hanging.py::test_of_a_{name} has not ended in 4 s" in done.stderr, text
        assert f"FAILED test_hanging.py::test_of_a_{name}" in done.stdout, text
    assert "3 failed, 1 passed" in done.stdout, text
    for function in ("test_of_a_lock", "wait_long", "wait_for_ever"):
        assert f" in {function}" in text, text
