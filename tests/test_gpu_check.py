"""tools/gpu_check.py: parts that fail, records that are merged, and the page."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / "tools" / "gpu_check.py"
sys.path[:0] = [str(TOOL.parent), str(ROOT / "benchmarks")]

import gpu_check  # noqa: E402
from gpu.page import PARTS, page, problems, read  # noqa: E402

TIME = {"plait": 0.002, "torch": 0.001}
RESULTS: dict[str, dict[str, Any]] = {
    "correct": {
        "trainings": {"alexnet": {"float32": {"difference": 1e-7}}},
        "steps": {"alexnet": {"requests": [1, 0], "waited": False}},
        "operators": {"status": 0, "tail": ["680 passed"]},
        "kit": {"left_out": "plait-conformance is not installed"},
    },
    "models": {
        "models": {"alexnet float32": TIME, "vgg19 float32": {"error": "plait: no memory"}},
        "launch": {"plait": 2e-6},
    },
    "bandwidth": {
        "kernels": {"copy": {"bytes": 1000, "plait": 1e-9}},
        "products": {"512 float32": {"operations": 2 * 512**3, **TIME}},
        "convolutions": {"64 to 64": {"operations": 10**9, **TIME}},
    },
    "processes": {"sharing": {"status": 0, "seconds": 0.1}},
    "sanitizer": {"left_out": "there is no compute-sanitizer on PATH"},
}


def record(part: str, **more: Any) -> dict[str, Any]:
    versions = {"versions": {"plait": "1"}, "card": "a card", "commit": "c0ffee", "time": "2030-01"}
    return {"part": part, "emulated": False, **versions, **more}


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("import os; os.abort()", "it was ended by SIGABRT"),
        ("raise ValueError('no such thing')", "exit status 1: ValueError: no such thing"),
        ("pass", ""),
    ],
)
def test_a_process_that_fails_says_why(program: str, text: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert gpu_check.run_process([sys.executable, "-c", program], 60, log) == text


def test_a_process_that_hangs_is_stopped_with_those_it_started(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    hold = f"import fcntl, time; f = open({str(lock)!r}); fcntl.flock(f, 2); time.sleep(600)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"
    log = tmp_path / "log"
    text = gpu_check.run_process([sys.executable, "-c", program], 1, log)
    assert text == "stopped after 1 s"
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # it returns as the process that held it is gone


def test_a_part_that_fails_leaves_its_reason_and_the_record_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = argparse.Namespace(out=tmp_path, seconds=1.0, small=True)
    known = {key: value for key, value in record("").items() if key != "part"}
    ends = iter(["", "it was ended by SIGSEGV", ""])

    def run_process(words: list[str], seconds: float, log: Path) -> str:
        end = next(ends)
        if not end:
            (tmp_path / "models.part").write_text(json.dumps(RESULTS["models"]))
        return end

    monkeypatch.setattr(gpu_check, "run_process", run_process)
    no_memory = ["models, vgg19 float32: plait: no memory"]
    assert gpu_check.start_part("models", arguments, known) == no_memory
    assert gpu_check.start_part("models", arguments, known) == ["it was ended by SIGSEGV"]
    assert read([tmp_path])["models"]["result"] == RESULTS["models"]
    (tmp_path / "models.json").unlink()
    assert "It failed: it was ended by SIGSEGV." in page(read([tmp_path]))
    assert gpu_check.start_part("models", arguments, known) == no_memory
    assert not (tmp_path / "models.failed.json").exists()
    printed = capsys.readouterr().out
    assert "models: failed" in printed and "  it was ended by SIGSEGV" in printed


def test_records_are_merged_and_the_best_ones_count(tmp_path: Path) -> None:
    records = {
        "old": record("models", result=1),
        "new": record("models", result=2, time="2031-01"),
        "failed": record("models", failure="x", time="2032-01"),
        "emulated": record("models", result=3, time="2033-01", emulated=True),
    }
    for name, value in records.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "facts.json").write_text("{}")
    assert read([tmp_path]) == {"models": records["new"]}


def test_a_page_has_all_that_was_measured() -> None:
    text = page({part: record(part, result=result) for part, result in RESULTS.items()})
    rows = [
        "| alexnet | float32 | 1.0e-07 |",
        "| alexnet | 1, 0 | no |",
        "Tests of `operators`: 680 passed",
        "| alexnet float32 | 2.00 | 1.00 | 0.50 |",
        "| mean of 1, float32 | | | 0.50 |",
        "- models, vgg19 float32: plait: no memory",
        "| 512 float32 | 0.1 | 0.50 |",
        "| 64 to 64 | 0.5 | 0.50 |",
        "there is no compute-sanitizer on PATH",
        "a card, commit c0ffee, 2030-01, plait 1.",
    ]
    assert [row for row in rows if row not in text] == []
    assert text.count("Never run on a GPU") == 1  # the part with pictures has no record


def test_the_page_of_the_site_has_all_parts() -> None:
    text = (ROOT / "docs" / "benchmarks" / "gpu.md").read_text()
    assert text.startswith(page({}).split("## ")[0])
    assert [title for title in PARTS.values() if f"\n## {title}\n" not in text] == []


def test_wrong_results_are_found_at_any_depth() -> None:
    result = {"kit": {"status": 1, "tail": ["x", "3 failed"]}, "a": {"b": {"error": "no"}}}
    wrong = problems(record("correct", result=result))
    assert list(wrong) == ["kit: status 1: 3 failed", "a, b: no"]


def test_without_a_driver_the_program_says_so(tmp_path: Path) -> None:
    pytest.importorskip("plait_cuda")
    environment = {**os.environ, "PLAIT_CUDA_EMULATION": "1", "PLAIT_CUDA_DEVICES": "0"}
    command = [sys.executable, str(TOOL), "--out", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "gpu_check: no device can be used" in done.stderr
    assert "the NVIDIA driver finds no device" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("part", ["correct", "models", "bandwidth", "sanitizer"])
def test_a_part_runs_on_the_emulation(part: str, tmp_path: Path) -> None:
    pytest.importorskip("plait_cuda")
    environment = {**os.environ, "PLAIT_CUDA_EMULATION": "1"}
    command = [sys.executable, str(TOOL), part, "--small", "--out", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    records = read([tmp_path])
    assert list(records) == [part] and "result" in records[part]
    assert page(records) == page({})  # the emulation measures no GPU
