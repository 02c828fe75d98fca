"""Fail for pages and pictures that a browser would show badly.

    python tools/check_docs.py

A line of code in docs/ has at most LONGEST characters: that many fit the column of a page. A
picture in SVG has neither black letters nor a white background, as pages are light or dark.
"""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Iterator

from package_graph import ROOT

__all__ = ["LONGEST", "check", "long_lines", "main"]

LONGEST = 100
"""The limit of a line's characters; docs/static/site.css has the width for it."""

WRITTEN = ("_build", "reference/operators", "reference/names")
"""Folders of docs/ that builds write."""

_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_ONE_SCHEME = re.compile(r"(?:fill|stroke)[:=]\s*\"?(?:#000000|#ffffff|black|white)\b")


def long_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the number and the length of each line of code that is too long."""
    opened = info = ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and not opened:
            opened, info = fence[1], fence[2]
        elif opened and line.strip() == opened:
            opened = ""
        elif opened and not info.startswith("{index}") and len(line) > LONGEST:
            yield number, len(line)


def check(root: pathlib.Path = ROOT) -> Iterator[str]:
    """Yield what is wrong, a line each."""
    docs = root / "docs"
    for path in sorted(docs.rglob("*")):
        name = path.relative_to(docs).as_posix()
        if name.startswith(WRITTEN):
            continue
        if path.suffix == ".md":
            for number, length in long_lines(path.read_text(encoding="utf-8")):
                yield (
                    f"docs/{name}:{number}: a line of code has at most {LONGEST} characters; "
                    f"this one has {length}, and would break"
                )
        elif path.suffix == ".svg":
            found = _ONE_SCHEME.search(path.read_text(encoding="utf-8"))
            if found:
                yield (
                    f"docs/{name}: {found[0]!r} cannot be seen on every page: use currentColor, "
                    "or none for a background (benchmarks/figures.py)"
                )


def main() -> int:
    """Print what is wrong; the exit status is 1 if anything is."""
    errors = list(check())
    for error in errors:
        print(error, file=sys.stderr)
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
