"""plait_core runs with the kernels of one level of processors, as PLAIT_LEVELS=native builds it."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import plait_core
from plait_core.instruction_sets import kernel_library

PACKAGE = pathlib.Path(plait_core.__file__).parent


@pytest.fixture
def native(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the package with the library that this processor runs, and no other."""
    left_out = shutil.ignore_patterns("libplait_cpu_*", "__pycache__")
    copy = tmp_path / "plait_core"
    shutil.copytree(PACKAGE, copy, ignore=left_out)
    library = f"lib{kernel_library()}.so"
    shutil.copy(PACKAGE / "lib" / library, copy / "lib" / library)
    return tmp_path


def run(folder: pathlib.Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_computes(native: pathlib.Path) -> None:
    code = "import plait_core as pc; print(pc.__file__); print((pc.ones(3) + 1).sum().item())"
    done = run(native, code)
    assert done.stdout.split() == [str(native / "plait_core/__init__.py"), "6.0"], done.stderr


@pytest.mark.skipif(kernel_library() == "plait_cpu_base", reason="there is one level here")
def test_another_level_is_an_error_that_says_why(native: pathlib.Path) -> None:
    done = run(native, "import plait_core", PLAIT_CPU="base")
    assert done.returncode == 1
    assert "PLAIT_LEVELS=native" in done.stderr


@pytest.mark.skipif(kernel_library() == "plait_cpu_base", reason="it needs libplait_cpu_exact")
def test_the_reproducible_mode_needs_no_other_library(native: pathlib.Path) -> None:
    code = "import plait_core as pc; pc.set_reproducible(True); print(pc.ones(3).sum().item())"
    assert run(native, code).stdout.strip() == "3.0"
