"""Makes modules beside the tests importable, and lets tests write into a folder of their own."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples in docstrings write files."""
    monkeypatch.chdir(tmp_path)
