"""docs/tutorial/operator-in-c.md: its files are written, and its commands run, as a reader does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorial" / "operator-in-c.md"
FILE = re.compile(
    r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def commands(text: str, packages: Path) -> str:
    """Return what a reader types; the package is installed to a folder, as there is one only."""
    lines = [line for block in CONSOLE.findall(text) for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines)
    typed = "\n".join(line[2:] for line in lines)
    assert typed.count("pip install ") == 1
    return typed.replace("pip install ", f"python -m pip install -q --target {packages} ").replace(
        "\npytest ", "\npython -m pytest -p no:cacheprovider "
    )


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_the_package_of_the_page_is_built_installed_and_tested(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77")
    text = PAGE.read_text()
    files = FILE.findall(text)
    assert len(files) == text.count("{code-block}") == 6
    for name, content in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    packages = tmp_path / "packages"
    shell = commands(text, packages).replace("python ", f"{sys.executable} ")
    paths = [str(packages), *filter(None, [os.environ.get("PYTHONPATH")])]
    run = subprocess.run(
        ["bash", "-e", "-c", shell],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert "squareplus: `b` must be positive; got -1" in run.stdout
    assert "4 passed" in run.stdout
