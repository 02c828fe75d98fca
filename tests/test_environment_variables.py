"""The guide's table of environment variables has those that the sources read."""

from __future__ import annotations

import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent
READ = re.compile(r"(?:getenv\(|environ(?:\.get\(|\[))\s*\"(PLAIT_\w+)\"")
WRITTEN = re.compile(r"(?:environ\[\s*\"PLAIT_\w+\"\s*\]\s*=[^=]|putenv|setenv\(\"PLAIT_)")


def sources() -> list[pathlib.Path]:
    results = [
        path
        for folder in ("src", "cpp")
        for suffix in ("py", "cpp", "hpp", "h")
        for path in ROOT.glob(f"packages/*/{folder}/**/*.{suffix}")
    ]
    results += ROOT.glob("packages/*/setup.py")
    assert len(results) > 300
    return results


def test_the_table_has_the_variables_that_are_read() -> None:
    read = {name for path in sources() for name in READ.findall(path.read_text(encoding="utf-8"))}
    guide = (ROOT / "docs/guides/environment.md").read_text(encoding="utf-8")
    table = set(re.findall(r"^\| `(PLAIT_\w+)` \|", guide, re.MULTILINE))
    assert read == table
    assert {"PLAIT_BLAS_LIBRARY", "PLAIT_CACHE_BYTES", "PLAIT_NUM_THREADS"} <= read


def test_nothing_is_written_into_the_environment() -> None:
    """Exceptions are the number of jobs, which pip's build of a package takes as an option, and the
    launcher's secret, for the processes that it starts.
    """
    writers = {path.name for path in sources() if WRITTEN.search(path.read_text(encoding="utf-8"))}
    assert writers <= {"_setup.py", "run.py"}
