"""Print the table of RESULTS.md from the reports of an attack.

    python tests/attack/results.py RESULTS.jsonl

conftest.py writes the file when PLAIT_ATTACK_RESULTS names it; `nox -s attack` does both.
"""

from __future__ import annotations

import collections
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["main", "table"]


def machine() -> str:
    """Return the processor and the number of cores that this process may use."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    name = re.search(r"model name\s*:\s*(.*)", text)
    flags = re.search(r"flags\s*:\s*(.*)", text)
    level = "AVX-512" if flags and "avx512f" in flags.group(1).split() else "no AVX-512"
    cores = len(os.sched_getaffinity(0))
    return f"{name.group(1) if name else platform.machine()}, {level}, {cores} cores"


def commit() -> str:
    """Return the commit, and whether the tree differs from it."""

    def git(*words: str) -> str:
        here = pathlib.Path(__file__).parent
        done = subprocess.run(
            ["git", *words], cwd=here, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + (
        " with changes" if git("status", "--porcelain") else ""
    )


def table(lines: Iterable[dict[str, Any]]) -> str:
    """Return one row for each test; known: expected failures, whose reasons stand in the tests."""
    rows: dict[str, collections.Counter[str]] = {}
    repeats: list[str] = []
    for line in lines:
        counts = rows.setdefault(line["test"].split("[")[0], collections.Counter())
        counts["cases"] += 1
        counts["rounds"] += line["rounds"] or 1
        counts["ms"] += int(1000 * line["seconds"])
        counts[line["outcome"]] += 1
        if line["outcome"] == "failed":
            repeats += line["repeat"] or [f"python -m pytest {line['test']}"]
    text = ["| attack | cases | rounds | seconds | skipped | known | findings |"]
    text += ["|---|--:|--:|--:|--:|--:|--:|"]
    for test, counts in sorted(rows.items()):
        name = test.removeprefix("tests/attack/").removeprefix("tests/")
        numbers = (counts["cases"], counts["rounds"], counts["ms"] // 1000)
        cells = [*numbers, counts["skipped"], counts["known"], counts["failed"]]
        text.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    if repeats:
        text += ["", "Findings, each repeated by its line:", ""]
        text += [f"    {line}" for line in repeats]
    return "\n".join(text)


def main(arguments: Sequence[str]) -> int:
    """Print the section for RESULTS.md."""
    (name,) = arguments
    text = pathlib.Path(name).read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    python = platform.python_version()
    print(f"\n{today}, commit {commit()}, {machine()}, Python {python}.\n")
    print(table(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
