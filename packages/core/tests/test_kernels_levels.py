"""The libraries of the instruction sets: which one is used, and that each passes the same tests."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from plait_core.instruction_sets import kernel_levels, kernel_library

HERE = pathlib.Path(__file__).parent
needs_base = pytest.mark.skipif("base" not in kernel_levels(), reason="built for one processor")
PROVIDER = """
import plait_core
from plait_abi import binding
for kind, name, provider, _, active, *_ in binding.records():
    if (kind, name) == ("kernel", "add") and active:
        print(provider)
"""


def run(arguments: list[str], level: str) -> str:
    environment = {**os.environ, "PLAIT_CPU": level}
    result = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=1200
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout.strip()


def test_the_library_in_use() -> None:
    assert run(["-c", PROVIDER], "") == kernel_library()


@needs_base
def test_the_requested_library() -> None:
    assert run(["-c", PROVIDER], "base") == "plait_cpu_base"


# of test_specs.py those that call kernels; errors and examples do not depend on them
OF_KERNELS = "test_values or test_layouts or test_in_place or (test_out and not fit) or test_copies"


def test_pointwise_bits_do_not_depend_on_avx512() -> None:
    if kernel_library() != "plait_cpu_avx2":
        pytest.skip("the processor has no AVX2")
    lines = [run([str(HERE / "pointwise_bits.py")], level).splitlines() for level in ("", "avx2")]
    assert len(lines[0]) > 100
    assert lines[0] == lines[1]


@needs_base
@pytest.mark.repeats
@pytest.mark.parametrize("one_in", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("pattern", "choice"),
    [
        ("test_kernels_[oprs]*.py", ""),
        ("test_kernels_[cm]*.py", ""),
        ("test_specs.py", OF_KERNELS),
    ],
)
def test_the_baseline_passes_the_same_tests(pattern: str, choice: str, one_in: int) -> None:
    files = [str(path) for path in sorted(HERE.glob(pattern))]
    assert files
    options = ["-p", "no:cacheprovider", "--one-in", str(one_in), "-k", choice]
    run(["-m", "pytest", "-q", "-x", *options, *files], "base")


@pytest.mark.parametrize(
    ("name", "value"),
    [("PLAIT_NUM_THREADS", "two"), ("PLAIT_NUM_THREADS", "0"), ("PLAIT_CPU", "sse")],
)
def test_settings_that_mean_nothing_are_refused(name: str, value: str) -> None:
    environment = {**os.environ, name: value}
    command = [sys.executable, "-c", "import plait_core"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert result.returncode == 1
    assert f"{name}: " in result.stderr
    assert repr(value) in result.stderr
