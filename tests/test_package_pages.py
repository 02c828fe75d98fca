"""The page of each package on a package index: its README names it, and its example runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PACKAGES = sorted(path.parent for path in (ROOT / "packages").glob("*/pyproject.toml"))
# what an example needs from other projects
NEEDED = {"mpi": "mpi4py", "onnx": "onnx"}
# examples that need a running cluster, or are commands
NOT_RUN = {"conformance", "ray"}


def program(page: Path) -> str:
    """Return the Python of a page."""
    return "\n".join(BLOCK.findall(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_page_has_an_example(package: Path) -> None:
    text = (package / "README.md").read_text(encoding="utf-8")
    assert text.startswith(("# plait-" + package.name, "# plait\n")), package
    assert BLOCK.search(text) or (package.name in NOT_RUN and "```console" in text), package
    compile(program(package / "README.md"), f"{package.name}/README.md", "exec")


@pytest.mark.parametrize(
    "package", [each for each in PACKAGES if each.name not in NOT_RUN], ids=lambda path: path.name
)
def test_the_example_of_a_page_runs(package: Path, tmp_path: Path) -> None:
    if package.name in NEEDED:
        pytest.importorskip(NEEDED[package.name])
    script = tmp_path / "page.py"
    script.write_text(program(package / "README.md"))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{package.name}/README.md\n{done.stderr}"
