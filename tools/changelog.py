"""Gather the fragments of changes/ into CHANGELOG.md, under the version of the packages.

    python tools/changelog.py            # write CHANGELOG.md, remove the fragments
    python tools/changelog.py --keep     # print what would be written, change nothing

The first section of CHANGELOG.md may have the packages' version already: until it is released, that
is until git has a tag ``v<version>``, further fragments are added to it, and its date is renewed.
"""

from __future__ import annotations

import argparse
import datetime
import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence

from package_graph import ROOT, load_all
from versions import version

__all__ = ["fragments", "gather", "main", "merged"]

TITLE = "# Changelog\nWhat users notice, by version and package. New versions are above.\n"
DOCUMENTATION = "docs"
_SECTION = re.compile(r"(?m)^## ")
_PACKAGE = re.compile(r"(?m)^### (.*)$")

Entries = dict[str, list[str]]
"""Heading to the texts below it, each an item of a list."""


def fragments(root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """Return the files of ``changes/`` that a release gathers."""
    return sorted(path for path in (root / "changes").glob("*.md") if path.name != "README.md")


def _heading(path: pathlib.Path, root: pathlib.Path) -> str:
    name = path.name.partition(".")[0]
    return "Documentation" if name == DOCUMENTATION else load_all(root)[name].distribution


def _item(text: str) -> str:
    """Return a fragment as an item of a list: further lines are indented."""
    lines = text.strip().splitlines()
    return "\n".join(["- " + lines[0], *[f"  {line}".rstrip() for line in lines[1:]]])


def _read(section: str) -> Entries:
    """Return the entries of a section that this file has written."""
    _, *parts = _PACKAGE.split(section)
    return {
        heading: re.split(r"\n(?=- )", body.strip())
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    }


def _written(new: str, date: str, entries: Entries) -> str:
    lines = [f"## {new} ({date})"]
    ordered = sorted(entries, key=lambda heading: (heading == "Documentation", heading))
    for heading in ordered:
        lines += ["", f"### {heading}", *entries[heading]]
    return "\n".join(lines) + "\n"


def merged(old: str, new: str, date: str, added: Entries) -> str:
    """Return the text of CHANGELOG.md with further entries in the section of a version.

    Args:
        old: the text before, or an empty one.
        new: the version, whose section is the first one or is not there yet.
        date: the section's date, as 2026-01-31.
        added: heading to items.
    """
    _, *sections = _SECTION.split(old)
    entries: Entries = {}
    if sections and sections[0].startswith(f"{new} "):
        entries = _read(sections.pop(0))
    for heading, items in added.items():
        known = entries.setdefault(heading, [])
        known += [item for item in items if item not in known]
    rest = "".join(f"\n## {section.rstrip()}\n" for section in sections)
    return f"{TITLE}\n{_written(new, date, entries)}{rest}"


def _is_released(root: pathlib.Path, new: str) -> bool:
    if not (root / ".git").exists():
        return False
    command = ["git", "tag", "--list", f"v{new}"]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return bool(found.stdout.strip())


def gather(root: pathlib.Path = ROOT, *, keep: bool = False, date: str | None = None) -> str:
    """Write CHANGELOG.md and remove the fragments; return what is to be said about it.

    Args:
        root: the repository.
        keep: change nothing; the new text of CHANGELOG.md is returned.
        date: that of the section; today by default.

    Raises:
        ValueError: the version is released, and there are fragments.
    """
    new = version(root=root)
    files = fragments(root)
    if not files:
        return "changelog: changes/ has no fragments; CHANGELOG.md stays as it is"
    if _is_released(root, new):
        raise ValueError(
            f"changelog: {new} is released (git has the tag v{new}), and {len(files)} fragments "
            "are for a later version; raise it first: python tools/versions.py VERSION"
        )
    added: Entries = {}
    for path in files:
        item = _item(path.read_text(encoding="utf-8"))
        added.setdefault(_heading(path, root), []).append(item)
    target = root / "CHANGELOG.md"
    old = target.read_text(encoding="utf-8") if target.exists() else ""
    text = merged(old, new, date or datetime.date.today().isoformat(), added)
    if keep:
        return text
    target.write_text(text, encoding="utf-8")
    for path in files:
        path.unlink()
    return f"changelog: {len(files)} fragments are in CHANGELOG.md, under {new}"


def main(arguments: Sequence[str]) -> int:
    """Gather from the command line; return 1 where the version is released already."""
    parser = argparse.ArgumentParser("tools/changelog.py")
    parser.add_argument("--keep", action="store_true", help="print, and change nothing")
    parser.add_argument("--date", help="of the section, as 2026-01-31; default: today")
    chosen = parser.parse_args(arguments)
    try:
        print(gather(keep=chosen.keep, date=chosen.date))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
