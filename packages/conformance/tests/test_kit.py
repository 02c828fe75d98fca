"""The kit itself: a partial provider passes, a wrong one does not, a missing one is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import plait_abi

SOURCE = Path(__file__).with_name("foreign.c")


def build(folder: Path, *flags: str) -> Path:
    out = folder / "foreign.so"
    cc = os.environ.get("CC", "cc").split()
    include = plait_abi.paths()["include"]
    subprocess.run(
        [*cc, "-std=c11", "-shared", "-fPIC", f"-I{include}", *flags, str(SOURCE), "-o", str(out)],
        check=True,
    )
    return out


def run_kit(*options: str) -> tuple[int, dict[str, int], str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "plait_conformance",
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    counts = {
        word: int(number)
        for number, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout[-300:])
    }
    return done.returncode, counts, done.stdout + done.stderr


def test_a_partial_provider_passes(tmp_path: Path) -> None:
    library = build(tmp_path)
    code, counts, text = run_kit("--provider", "foreign", "--load", str(library))
    assert code == 0, text
    assert counts["passed"] > 20 and "failed" not in counts
    assert (
        "role kernels.cpu, provider foreign"
        in run_kit("--provider", "foreign", "--load", str(library), "-v")[2]
    )


def test_a_wrong_provider_fails(tmp_path: Path) -> None:
    code, counts, text = run_kit("--provider", "foreign", "--load", str(build(tmp_path, "-DWRONG")))
    assert code == 1 and counts["failed"] > 0, text
    assert "mul-" in text and "values" in text


def test_a_missing_provider_is_named() -> None:
    code, _, text = run_kit("--provider", "nobody")
    assert code != 0 and "nobody" in text and "--load" in text


@pytest.mark.parametrize("layout", ["reversed", "expanded", "transposed"])
def test_copies_keep_their_layout(layout: str) -> None:
    import numpy as np

    from plait_conformance._cases import copy_layout

    base = np.arange(12.0).reshape(3, 4)
    array = {
        "reversed": base[::-1],
        "expanded": np.broadcast_to(base[:1], (3, 4)),
        "transposed": base.T,
    }[layout]
    fresh = copy_layout(array)
    assert fresh.strides == array.strides and not np.shares_memory(fresh, array)
    np.testing.assert_array_equal(fresh, array)
