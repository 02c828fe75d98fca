"""The kit itself: a partial provider passes, a wrong one does not, a missing one is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import plait_abi
from plait_conformance._cases import cases, copy_layout
from plait_conformance._checks import assert_same, expected

HERE = Path(__file__).parent


def build(folder: Path, *flags: str, source: str = "foreign", name: str = "foreign") -> Path:
    out = folder / f"{name}.so"
    cc = os.environ.get("CC", "cc").split()
    include = plait_abi.paths()["include"]
    subprocess.run(
        [
            *(*cc, "-std=c11", "-shared", "-fPIC", f"-I{include}", *flags),
            *(str(HERE / f"{source}.c"), "-o", str(out)),
        ],
        check=True,
    )
    return out


def build_idle(folder: Path, name: str, answer: str, *operators: str) -> Path:
    listed = ",".join(f'"{operator}"' for operator in operators)
    flags = [f'-DNAME="{name}"', f"-DOPERATORS={listed}", f"-DANSWER={answer}"]
    return build(folder, *flags, source="idle", name=name)


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
        for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout[-300:])
    }
    return done.returncode, counts, done.stdout + done.stderr


@pytest.mark.long
def test_a_partial_provider_passes(tmp_path: Path) -> None:
    library = build(tmp_path)
    code, counts, text = run_kit("--provider", "foreign", "--load", str(library), "-v")
    assert code == 0, text
    assert counts["passed"] > 20 and "failed" not in counts
    assert "role kernels.cpu, provider foreign" in text


def test_other_projects_may_have_options_of_the_same_names(tmp_path: Path) -> None:
    """The plug-in is loaded wherever pytest runs."""
    options = ["--device", "--role", "--provider", "--load", "--members", "--where"]
    adding = "".join(f"    parser.addoption({option!r})\n" for option in options)
    (tmp_path / "conftest.py").write_text(f"def pytest_addoption(parser):\n{adding}")
    test = "def test_own(pytestconfig):\n    assert pytestconfig.getoption('--device') == 'mine'\n"
    (tmp_path / "test_own.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--device", "mine"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
    assert "conformance" not in done.stdout


@pytest.mark.long
def test_a_wrong_provider_fails(tmp_path: Path) -> None:
    code, counts, text = run_kit("--provider", "foreign", "--load", str(build(tmp_path, "-DWRONG")))
    assert code == 1 and counts["failed"] > 0, text
    assert "mul-" in text and "values" in text


def test_a_missing_provider_is_named() -> None:
    code, _, text = run_kit("--provider", "nobody")
    assert code != 0 and "nobody" in text and "--load" in text


def failures(text: str) -> set[str]:
    """Names of the tests in pytest's summary, without the numbers of samples."""
    return set(re.findall(r"^FAILED \S*::(\w+\[[^\]]*?)(?:-\d+)?\]", text, flags=re.MULTILINE))


@pytest.mark.long
def test_one_that_returns_ok_and_writes_nothing_is_named(tmp_path: Path) -> None:
    compared = {"mul", "isnan", "sort", "cat"}
    operators = {*compared, "bernoulli", "uniform_"}
    library = build_idle(tmp_path, "silent", "PLAIT_OK", *operators)
    code, _, text = run_kit("--provider", "silent", "--load", str(library))
    failed = failures(text)
    assert code == 1, text
    assert {f"test_values[{operator}" for operator in compared} <= failed
    assert "test_unpredictable[uniform_" in failed, "it leaves in memory what was there"
    for operator in operators - {"uniform_"}:
        assert f"test_serves[silent-{operator}" in failed
        message = rf"silent: its kernel of {operator} returned PLAIT_OK \d+ times and never wrote"
        assert re.search(message, text)


@pytest.mark.long
def test_one_that_always_declines_is_named(tmp_path: Path) -> None:
    library = build_idle(tmp_path, "shy", "PLAIT_DECLINE", "mul", "randperm")
    code, counts, text = run_kit("--provider", "shy", "--load", str(library))
    assert code == 1, text
    named = {"test_serves[shy-mul", "test_serves[shy-randperm"}
    assert failures(text) == named, "the kernels below are right"
    assert counts["passed"] > 20
    for operator in ("mul", "randperm"):
        assert re.search(rf"shy: its kernel of {operator} accepted none of \d+ calls", text)
    alone = run_kit("--provider", "shy", "--load", str(library), "-k", "serves")
    assert alone[0] == 1 and failures(alone[2]) == named


@pytest.mark.parametrize("answer", ["PLAIT_OK", "PLAIT_DECLINE"])
@pytest.mark.long
def test_one_for_a_composite_is_named(tmp_path: Path, answer: str) -> None:
    library = build_idle(tmp_path, "fused", answer, "layer_norm", "stack")
    code, _, text = run_kit("--provider", "fused", "--load", str(library))
    assert code == 1, text
    for operator in ("layer_norm", "stack"):
        assert f"test_serves[fused-{operator}" in failures(text)
        assert f"fused: its kernel of {operator}" in text


@pytest.mark.long
def test_one_that_is_never_called_is_named(tmp_path: Path) -> None:
    hidden = build(tmp_path)
    before = build_idle(tmp_path, "before", "PLAIT_OK", "mul")
    options = ["--provider", "foreign", "--load", str(hidden), "--load", str(before)]
    code, _, text = run_kit(*options, "-k", "serves")
    assert code == 1, text
    assert failures(text) == {"test_serves[foreign-mul"}
    assert "foreign: its kernel of mul was never called" in text


@pytest.mark.long
def test_an_operator_of_the_provider_s_own_is_skipped_by_name(tmp_path: Path) -> None:
    library = build_idle(tmp_path, "inventor", "PLAIT_OK", "invented")
    text = run_kit("--provider", "inventor", "--load", str(library), "-rs")[2]
    assert "the kit has no samples of invented, which inventor defines" in text
    assert "passed" not in text and "failed" not in text


IN_PYTHON = """
import numpy as np
import plait_abi
import plait_core

def put(out, function, x, *sizes, **settings):
    out.numpy()[...] = getattr(np.fft, function)(x.numpy(), *sizes, **settings)

def c2c(x, dim, norm, forward, out):
    put(out, "fftn" if forward else "ifftn", x, axes=dim, norm=norm)

def r2c(x, dim, norm, onesided, out):
    x = x.float() if x.itemsize == 2 else x
    put(out, "rfftn" if onesided else "fftn", x, axes=dim, norm=norm)

def c2r(x, dim, norm, last, out):
    put(out, "irfftn", x, [*(x.shape[d] for d in dim[:-1]), last], axes=dim, norm=norm)

kernels = [plait_abi.kernel(f"fft_{f.__name__}", f) for f in (c2c, r2c, c2r)]
"""


@pytest.mark.long
def test_kernels_in_python_are_held_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy_transforms.py").write_text(IN_PYTHON)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    code, counts, text = run_kit("--provider", "numpy_transforms", "-p", "numpy_transforms")
    assert code == 0 and counts["passed"] > 20 and "failed" not in counts, text


def test_single_tests_of_a_provider_stand_alone(tmp_path: Path) -> None:
    library = build(tmp_path)
    code, counts, text = run_kit("--provider", "foreign", "--load", str(library), "-k", "serves")
    assert code == 0 and counts == {"passed": 1}, text


@pytest.mark.parametrize("layout", ["reversed", "expanded", "transposed"])
def test_copies_keep_their_layout(layout: str) -> None:
    base = np.arange(12.0).reshape(3, 4)
    array = {
        "reversed": base[::-1],
        "expanded": np.broadcast_to(base[:1], (3, 4)),
        "transposed": base.T,
    }[layout]
    fresh = copy_layout(array)
    assert fresh.strides == array.strides and not np.shares_memory(fresh, array)
    np.testing.assert_array_equal(fresh, array)


def test_signs_of_vectors_are_free_and_their_products_are_compared() -> None:
    case = next(case for case in cases({"linalg_svd"}) if case.sample.args[0].dtype.kind == "c")
    u, s, vh = expected(case)
    phases = np.exp(1j * np.arange(1, 1 + len(s))).astype(u.dtype)
    assert_same(case, [u * phases, s, vh / phases[:, None]], [u, s, vh], "values")
    for wrong in ([u * phases, s, vh], [2 * u, s, vh / 2], [u, s + 0.1, vh]):
        with pytest.raises(AssertionError, match="linalg_svd"):
            assert_same(case, wrong, [u, s, vh], "values")
