"""Check that changes have the form that CONTRIBUTING.md requires.

    python tools/check_changes.py

It checks CHANGELOG.md, the files of ``changes/`` and ``docs/design/`` and, in a git checkout, the
subjects of the last commits.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

from changelog import violations
from package_graph import ROOT, load_all

__all__ = ["check", "main"]

COMMITS = 20  # number of last commits to check; older ones were pushed
SUBJECT = 72  # limit of a subject's characters, which git and its viewers show
WORDS = 900  # limit of a design note: one page
_FRAGMENT = re.compile(r"([a-z]+)\.[a-z0-9_-]+\.md")


def _check_fragments(root: pathlib.Path) -> Iterator[str]:
    packages = {*load_all(root), "docs"}
    for path in sorted((root / "changes").iterdir()):
        if path.name == "README.md":
            continue
        match = _FRAGMENT.fullmatch(path.name)
        if match is None or match[1] not in packages:
            yield f"{path}: a name <package>.<what>.md is required; see changes/README.md"
        elif not path.read_text(encoding="utf-8").strip():
            yield f"{path}: one or two sentences are required"


def _check_changelog(root: pathlib.Path) -> Iterator[str]:
    path = root / "CHANGELOG.md"
    if path.exists():
        yield from violations(path.read_text(encoding="utf-8"))


def _check_notes(root: pathlib.Path) -> Iterator[str]:
    for path in sorted((root / "docs" / "design").glob("*.md")):
        if not re.match(r"\d{4}-", path.name):
            yield f"{path}: a name <number of four digits>-<what>.md is required"
        text = path.read_text(encoding="utf-8")
        if len(text.split()) > WORDS:
            yield (
                f"{path}: at most {WORDS} words are allowed; it has {len(text.split())}. Leave the "
                "question, the decision and the alternatives; figures belong to "
                "docs/benchmarks/decisions.md"
            )
        if "Rejected" not in text:
            yield f"{path}: what was rejected, and why, is required"


def _check_subjects(root: pathlib.Path) -> Iterator[str]:
    if not (root / ".git").exists():
        return
    command = ["git", "log", "--no-merges", f"-{COMMITS}", "--format=%h %s"]
    log = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    for line in log.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > SUBJECT:
            yield f"{commit}: a subject of at most {SUBJECT} characters is required: {subject}"


def check(root: pathlib.Path = ROOT) -> list[str]:
    """Return a line for every file or commit with a wrong form."""
    checks = (_check_changelog, _check_fragments, _check_notes, _check_subjects)
    return [line.replace(f"{root}/", "") for check in checks for line in check(root)]


def main() -> int:
    """Print files and commits with a wrong form; return 1 if there are any."""
    lines = check()
    for line in lines:
        print(line, file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
