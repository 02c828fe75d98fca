"""The parts of benchmarks/table1 that measure nothing: statistics, cases, the page."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS / "table1"), str(BENCHMARKS)]

import machine  # noqa: E402
import page  # noqa: E402
import peers  # noqa: E402
import picture  # noqa: E402
import places  # noqa: E402
import summary  # noqa: E402
import worker  # noqa: E402
from turns import Case, Record, run_case  # noqa: E402


@pytest.fixture(scope="module")
def table1() -> ModuleType:
    """The program, which cannot be imported by its name."""
    path = BENCHMARKS / "table1" / "__main__.py"
    spec = importlib.util.spec_from_file_location("table1_main", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def record(peer: str, seconds: list[float], section: str = "training", batch: int = 8) -> Record:
    case = Case(section, "resnet50", "training", batch)
    return Record(case, peer, "1.0", seconds, list(seconds), 2.0, 1.0, 5_000_000)


def test_median_and_quartiles() -> None:
    result = summary.summary([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (result.low, result.median, result.high) == (2.0, 3.0, 4.0)
    assert result.spread == pytest.approx(1 / 3)


def test_few_times_have_their_extremes() -> None:
    assert summary.summary([3.0, 1.0]) == summary.Summary(2.0, 1.0, 3.0)
    with pytest.raises(ValueError, match="seconds is empty"):
        summary.summary([])


def test_ratios_and_throughput() -> None:
    ours, theirs = record("plait", [1.0, 1.0, 4.0]), record("torch", [2.0])
    assert summary.ratio(ours, theirs) == 0.5
    assert math.isnan(summary.ratio(ours, record("jax", [])))
    assert summary.throughput(ours, 25) == 200.0
    assert summary.mean_ratio([0.5, math.nan, 2.0]) == pytest.approx(1.0)
    assert math.isnan(summary.mean_ratio([math.nan]))


def test_the_machine_is_described_without_names() -> None:
    text = "vendor_id\t: GenuineIntel\nmodel name\t: X\nflags\t: fpu avx2 fma avx512f\n"
    result = machine.described(text)
    assert result["processor"].startswith("Intel ")
    assert result["instruction sets"] == "avx2, fma, avx512f"
    assert machine.described("")["instruction sets"] == "unknown"
    assert "processors" in machine.description()


def test_workers_get_threads_and_instruction_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAIT_CPU", raising=False)
    plain = peers.environment(peers.PEERS["plait"], 3, avx2=False)
    assert plain["OMP_NUM_THREADS"] == "3"
    assert "PLAIT_CPU" not in plain
    assert peers.environment(peers.PEERS["plait"], 3, avx2=True)["PLAIT_CPU"] == "avx2"
    limited = peers.environment(peers.PEERS["torch"], 1, avx2=True)
    assert limited["ATEN_CPU_CAPABILITY"] == "avx2"


def test_sections_have_their_cases(table1: ModuleType) -> None:
    training = table1.cases_of("training", None, 2)
    assert [case.model for case in training][:2] == ["alexnet", "vgg19"]
    assert len(training) == 6 and len(table1.cases_of("inference", None, 2)) == 8
    assert [case.threads for case in table1.cases_of("one-thread", ["gnmt"], 4)] == [1]
    assert all(case.avx2 for case in table1.cases_of("avx2", None, 2))
    assert all(case.neighbour for case in table1.cases_of("neighbour", None, 2))
    assert {case.batch for case in table1.cases_of("batches", ["vgg19"], 2)} == {
        *(1, 2, 4, 8, 16, 32, 64)
    }
    assert table1.cases_of("training", ["bert"], 2) == []


def test_records_are_replaced_and_stored(table1: ModuleType) -> None:
    old, new, other = record("plait", [2.0]), record("plait", [1.0]), record("torch", [])
    assert table1.merged([old, other], [new]) == [new, other]
    stored = json.loads(json.dumps(other.values()))
    assert Record.from_values(stored) == other
    other.first = math.nan
    assert json.loads(json.dumps(other.values()))["first"] is None
    assert math.isnan(Record.from_values(other.values()).first)


def test_the_page_has_figures_reasons_and_the_fastest_in_bold() -> None:
    absent = record("mxnet", [])
    absent.missing = "no wheel"
    records = [
        *(record("plait", [0.5, 0.5, 0.5]), record("torch", [1.0, 1.0, 1.0]), absent),
        record("plait", [0.25], "batches-training", 1),
        record("torch", [0.5], "batches-training", 1),
    ]
    text = page.markdown(records, {"processors": "2"}, "2026-01-31", "table1.svg")
    assert "| plait | **16 ± 0%** |" in text
    assert "| torch | 8 ± 0% |" in text
    assert "| mxnet | N/A |" in text
    assert "- mxnet, ResNet-50: no wheel" in text
    assert "| to torch | 0.50 | 0.50 |" in text
    assert "| ResNet-50 | 1 | 250 | 500 | 0.50 |" in text
    assert "| date | 2026-01-31 |" in text
    assert "(table1.svg)" in text
    assert "| plait | 2000; 1000 |" in text


@pytest.mark.parametrize(
    ("value", "text"), [(5.4321e6, "5.43e6"), (15512.0, "15500"), (463.2, "463"), (0.1234, "0.123")]
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert page.number(value) == text


def test_the_picture_is_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    records = [record("plait", [0.5]), record("torch", [1.0]), record("mxnet", [])]
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    assert all(picture.draw(records, file) for file in files)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert not picture.draw(records[:1], tmp_path / "c.svg")


def test_a_side_that_is_not_installed_has_a_reason(tmp_path: Path) -> None:
    place = tmp_path / "mxnet"
    place.mkdir()
    (place / "missing.txt").write_text("pip: no matching distribution")
    reason = places.python_of(peers.PEERS["mxnet"], tmp_path)
    (result,) = run_case(
        Case("training", "resnet50", "training", 1), [(peers.PEERS["mxnet"], reason)], 2
    )
    assert result.missing == "pip: no matching distribution"
    assert result.seconds == []


def test_a_worker_makes_steps_in_turns() -> None:
    case = Case("inference", "neumf", "inference", 16, threads=1)
    (result,) = run_case(case, [(peers.PEERS["plait"], sys.executable)], 2)
    assert result.missing == ""
    assert len(result.seconds) == len(result.cpu) == 2
    assert result.memory >= result.imported > 0
    assert result.first > 0 and result.second > 0


def test_an_error_in_a_worker_is_the_reason() -> None:
    case = Case("training", "no such model", "training", 16, threads=1)
    (result,) = run_case(case, [(peers.PEERS["plait"], sys.executable)], 2)
    assert result.missing == "KeyError: 'no such model'"


def test_the_peak_of_memory_is_that_of_this_process() -> None:
    assert 10_000_000 < worker.peak_bytes() < 1 << 40
