"""Products, convolutions and linear algebra under every kernel of OpenBLAS that the processor runs.

The short form runs the accuracy of products alone under each; with half a minute or more a test,
the package's own tests of these operators run, too.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TESTS = ROOT / "packages/core/tests"
SECONDS = float(os.environ.get("PLAIT_ATTACK_SECONDS", "2"))
BAR = 30
"""Units of ``eps * sqrt(k)``, as in the package's test of accuracy."""

NEEDS = {
    "Prescott": {"pni"},
    "Nehalem": {"sse4_2"},
    "Sandybridge": {"avx"},
    "Haswell": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "Cooperlake": {"avx512f", "avx512_bf16"},
    "SapphireRapids": {"avx512f", "amx_tile"},
    "NEOVERSEN1": {"asimd", "asimddp"},
    "NEOVERSEV1": {"asimd", "sve"},
    "ARMV8": {"asimd"},
}
"""Core types, and the flags of a processor that executes their instructions."""

FILES = ("test_kernels_matmul.py", "test_kernels_conv.py", "test_linalg.py")


def flags() -> set[str]:
    """What /proc/cpuinfo says of this processor."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith(("flags", "Features"))]
    return set(lines[0].split(":")[1].split()) if lines else set()


RUNNABLE = [core for core, needed in NEEDS.items() if needed <= flags()]


def run(core: str, *command: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "OPENBLAS_CORETYPE": core}
    return subprocess.run(
        [sys.executable, *command],
        env=variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_some_kernels_run_here() -> None:
    assert RUNNABLE


@pytest.mark.parametrize("core", RUNNABLE)
def test_accuracy(core: str) -> None:
    done = run(core, str(TESTS / "product_accuracy.py"))
    assert done.returncode == 0, done.stderr
    lines = [line.split(None, 1) for line in done.stdout.splitlines()]
    assert len(lines) > 20
    bad = {name: value for value, name in lines if not float(value) <= BAR}
    assert bad == {}, f"reproduce: OPENBLAS_CORETYPE={core} python {TESTS}/product_accuracy.py"


@pytest.mark.skipif(SECONDS < 30, reason="PLAIT_ATTACK_SECONDS is less than 30")
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("core", RUNNABLE)
def test_package(core: str, file: str) -> None:
    done = run(core, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(TESTS / file))
    assert done.returncode == 0, f"OPENBLAS_CORETYPE={core}\n{done.stdout[-3000:]}"
