"""tools/gpu_set.py: what travels to a machine with a GPU."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import gpu_set  # noqa: E402


def test_the_archive_runs_without_the_repository(tmp_path: Path) -> None:
    gpu_set.archive(tmp_path / "sources.tar.gz", "c0ffee")
    assert [path.name for path in tmp_path.iterdir()] == ["sources.tar.gz"]
    with tarfile.open(tmp_path / "sources.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    sources = tmp_path / "sources"
    assert (sources / "COMMIT").read_text() == "c0ffee\n"
    assert (sources / "packages" / "cuda" / "tests" / "test_samples.py").exists()
    command = [sys.executable, str(sources / "tools" / "gpu_check.py"), "--page"]
    page = tmp_path / "gpu.md"
    subprocess.run([*command, str(page), str(tmp_path)], check=True)
    assert "Never run on a GPU" in page.read_text()


@pytest.mark.parametrize(("size", "status"), [(1 << 20, 0), (3 << 20, 1)])
def test_a_set_that_is_too_large_is_an_error(
    size: int,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def collect(python: str, architectures: str, out: Path, without: list[str]) -> None:
        (out / "wheels").mkdir()
        (out / "wheels" / "a.whl").write_bytes(bytes(size))
        (out / "run.sh").write_bytes(bytes(1 << 19))

    monkeypatch.setattr(gpu_set, "collect", collect)
    assert gpu_set.main(["--out", str(tmp_path), "--limit", "2"]) == status
    printed = capsys.readouterr().out
    assert f"{size / (1 << 20):7.2f} MiB  wheels/a.whl\n   0.50 MiB  run.sh\n" in printed
    assert ("at most 2 MiB are allowed" in printed) == bool(status)
