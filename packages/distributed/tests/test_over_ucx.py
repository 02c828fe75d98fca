"""The tests of this package with the provider `ucx`."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
MODULES = (
    "test_collectives.py",
    "test_data_parallel.py",
    "test_errors.py",
    "test_functional.py",
    "test_groups.py",
    "test_join.py",
    "test_messages.py",
    "test_zero.py",
)


@pytest.mark.skipif("PLAIT_TEST_BACKEND" in os.environ, reason="these are the tests that it runs")
def test_all_over_ucx() -> None:
    if importlib.util.find_spec("plait_ucx") is None:
        pytest.skip("plait_ucx is not installed")
    import plait_ucx

    try:
        plait_ucx.library_version()
    except RuntimeError as error:
        pytest.skip(str(error))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *(str(HERE / name) for name in MODULES)],
        env={**os.environ, "PLAIT_TEST_BACKEND": "ucx"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
