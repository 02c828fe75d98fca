"""Make the table of branch coverage from the counters of `nox -s coverage`, with gcovr.

    python tools/branches.py OBJECTS OUT

OBJECTS holds the counters that compilers and tests left, a folder for each package; OUT gets a page
for each file and ``branches.md``, the table by folder, which is printed too. Branches of exceptions
and branches that the compiler made are not counted.
"""

from __future__ import annotations

import collections
import json
import pathlib
import subprocess
import sys
from collections.abc import Sequence

__all__ = ["main", "table"]


def _counted(objects: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    """Run gcovr over all counters and return its summary."""
    stage = objects.parent / "stage"
    summary = out / "summary.json"
    command = [sys.executable, "-m", "gcovr", "--root", str(stage), "--exclude-throw-branches"]
    command += ["--exclude-unreachable-branches", "--merge-mode-functions=merge-use-line-min"]
    command += ["--gcov-ignore-parse-errors=all", "--gcov-ignore-errors=all"]
    command += ["--exclude", ".*/generated/.*", "--json-summary", str(summary)]
    command += ["--html-details", str(out / "index.html"), str(objects)]
    subprocess.run(command, check=True)
    return summary


def table(summary: dict[str, list[dict[str, object]]]) -> str:
    """Return the table of gcovr's summary by folder, as Markdown."""
    groups: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for file in summary["files"]:
        path = pathlib.PurePosixPath(str(file["filename"]))
        folder = path.parent.as_posix()
        for kind in ("branch", "line", "function"):
            for count in ("covered", "total"):
                groups[folder][f"{kind}_{count}"] += int(str(file[f"{kind}_{count}"]))
    lines = ["| folder | branches | taken | lines | functions |", "|---|--:|--:|--:|--:|"]
    for folder, counts in sorted(groups.items()):
        share = [
            f"{100 * counts[f'{kind}_covered'] / max(counts[f'{kind}_total'], 1):.1f} %"
            for kind in ("branch", "line", "function")
        ]
        total = counts["branch_total"]
        lines.append(f"| {folder} | {total} | {share[0]} | {share[1]} | {share[2]} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Write the pages and print the table."""
    objects, out = (pathlib.Path(name).resolve() for name in arguments)
    out.mkdir(parents=True, exist_ok=True)
    text = table(json.loads(_counted(objects, out).read_text(encoding="utf-8")))
    (out / "branches.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
