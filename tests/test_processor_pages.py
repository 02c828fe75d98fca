"""Pages of docs/benchmarks: one a processor, with an index of each kind."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import processor_pages  # noqa: E402
from processor_pages import Processor, this_processor  # noqa: E402

CPUINFO = "vendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: {}\nmodel name\t: {}\n\n"


def test_names_are_of_maker_family_and_model() -> None:
    amd = this_processor(CPUINFO.format("AuthenticAMD", 26, 2, "AMD EPYC"))
    assert amd == Processor("amd-26-2", "AMD EPYC, family 26, model 2")
    intel = this_processor(CPUINFO.format("GenuineIntel", 6, 143, "Intel(R) Xeon(R)"))
    assert intel.stem == "intel-6-143"
    arm = this_processor("CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd40\n")
    assert arm.stem == "0x41-8-0xd40"
    assert this_processor("").stem.endswith("-unknown-unknown")


def test_a_second_processor_leaves_the_first_one_s_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for stem, rows in (("amd-26-2", [["exp", 0.5]]), ("intel-6-143", [["exp", 0.7]])):
        processor = Processor(stem, stem.upper())
        monkeypatch.setattr(processor_pages, "this_processor", lambda p=processor: p)
        values = {"date": "2026-01-31", "rows": rows}
        processor_pages.write("sweep", f"# {stem}\n", f"mean of {stem}", values, tmp_path)
        assert processor_pages.read("sweep", tmp_path)["rows"] == rows
    assert (tmp_path / "sweep" / "amd-26-2.md").read_text() == "# amd-26-2\n"
    index = (tmp_path / "sweep.md").read_text()
    assert "| [AMD-26-2](sweep/amd-26-2.md) | 2026-01-31 | mean of amd-26-2 |" in index
    assert "\nsweep/amd-26-2\nsweep/intel-6-143\n" in index


@pytest.mark.parametrize("kind", processor_pages.KINDS)
def test_the_stored_index_is_that_of_the_stored_files(kind: str, tmp_path: Path) -> None:
    (tmp_path / kind).mkdir()
    stored = sorted((processor_pages.DOCS / kind).glob("*.json"))
    for path in stored:
        assert path.with_suffix(".md").exists()
        (tmp_path / kind / path.name).write_text(json.dumps(json.loads(path.read_text())))
    assert stored
    processor_pages.write_index(kind, tmp_path)
    index = (processor_pages.DOCS / f"{kind}.md").read_text()
    assert (tmp_path / f"{kind}.md").read_text() == index
