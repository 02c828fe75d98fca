"""Gather the fragments of changes/ into CHANGELOG.md, under the version of the packages.

    python tools/changelog.py            # write CHANGELOG.md, remove the fragments
    python tools/changelog.py --keep     # print what would be written, change nothing

The first section of CHANGELOG.md may have the packages' version already: until it is released, that
is until git has a tag ``v<version>``, further fragments are added to it, and its date is renewed.

A section has at most LINES lines of WIDTH characters. It begins with a summary of at most SUMMARY
lines, which a person writes below the section's title; this tool leaves it as it is. Where the
fragments make a section too long, nothing is written: shorten or join them first, and remove those
about faults that no release had.
"""

from __future__ import annotations

import argparse
import datetime
import pathlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence

from package_graph import ROOT, load_all
from versions import version

__all__ = ["fragments", "gather", "main", "merged", "page", "section", "violations"]

TITLE = "# Changelog\nWhat users notice, by version and package. New versions are above.\n"
DOCUMENTATION = "docs"
LINES = 150  # limit of a version's section
SUMMARY = 10  # limit of the summary's lines
WIDTH = 100  # limit of a line's characters
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
    """Return a fragment as an item of a list, in lines of at most WIDTH characters."""
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _read(section: str) -> tuple[str, Entries]:
    """Return the summary and the entries of a section, without its title."""
    head, *parts = _PACKAGE.split(section)
    entries = {
        heading: re.split(r"\n(?=- )", body.strip())
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    }
    return head.partition("\n")[2].strip(), entries


def _order(heading: str) -> tuple[bool, bool, str]:
    """Return the sort key of a heading: general ones, packages, documentation."""
    return heading == "Documentation", heading.startswith("plait"), heading


def _entries(files: Sequence[pathlib.Path], root: pathlib.Path) -> Entries:
    results: Entries = {}
    for path in files:
        item = _item(path.read_text(encoding="utf-8"))
        results.setdefault(_heading(path, root), []).append(item)
    return results


def page(root: pathlib.Path = ROOT) -> str:
    """Return the text of the site's page: CHANGELOG.md, below what its fragments add to it."""
    entries = _entries(fragments(root), root)
    title, *sections = _SECTION.split((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if entries:
        lines = ["Next version"]
        for heading in sorted(entries, key=_order):
            lines += ["", f"### {heading}", *entries[heading]]
        sections.insert(0, "\n".join(lines) + "\n\n")
    return "## ".join([title, *sections])


def section(root: pathlib.Path, version: str) -> str:
    """Return the section of a version, from its title on.

    Raises:
        ValueError: CHANGELOG.md has none, or it exceeds a limit.
    """
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    for line in violations(text):
        if f" {version}: " in line:
            raise ValueError(line)
    for each in _SECTION.split(text)[1:]:
        if each.startswith(f"{version} "):
            return each.strip()
    raise ValueError(f"CHANGELOG.md: a section of {version} is required")


def _write(new: str, date: str, summary: str, entries: Entries) -> str:
    lines = [f"## {new} ({date})"]
    if summary:
        lines += ["", summary]
    for heading in sorted(entries, key=_order):
        lines += ["", f"### {heading}", *entries[heading]]
    return "\n".join(lines) + "\n"


def violations(text: str) -> Iterator[str]:
    """Yield a line for each limit that a section of CHANGELOG.md exceeds."""
    _, *sections = _SECTION.split(text)
    for section in sections:
        title = section.partition(" ")[0]
        lines = section.strip().splitlines()
        summary, _ = _read(section)
        rows = len(summary.splitlines())
        if not 0 < rows <= SUMMARY:
            yield (
                f"CHANGELOG.md: {title}: a summary of 1 to {SUMMARY} lines below the title is "
                f"required; it has {rows}"
            )
        if len(lines) > LINES:
            yield (
                f"CHANGELOG.md: {title}: at most {LINES} lines are allowed; it has {len(lines)}. "
                "Shorten or join entries, and remove those about faults that no release had"
            )
        for line in lines:
            if len(line) > WIDTH:
                yield f"CHANGELOG.md: {title}: a line has more than {WIDTH} characters: {line}"


def merged(old: str, new: str, date: str, added: Entries) -> str:
    """Return the text of CHANGELOG.md with further entries in the section of a version.

    Args:
        old: the text before, or an empty one.
        new: the version, whose section is the first one or is not there yet.
        date: the section's date, as 2026-01-31.
        added: heading to items.
    """
    _, *sections = _SECTION.split(old)
    summary = ""
    entries: Entries = {}
    if sections and sections[0].startswith(f"{new} "):
        summary, entries = _read(sections.pop(0))
    for heading, items in added.items():
        known = entries.setdefault(heading, [])
        known += [item for item in items if item not in known]
    rest = "".join(f"\n## {section.rstrip()}\n" for section in sections)
    return f"{TITLE}\n{_write(new, date, summary, entries)}{rest}"


def _is_released(root: pathlib.Path, new: str) -> bool:
    if not (root / ".git").exists():
        return False
    command = ["git", "tag", "--list", f"v{new}"]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return bool(result.stdout.strip())


def gather(root: pathlib.Path = ROOT, *, keep: bool = False, date: str | None = None) -> str:
    """Write CHANGELOG.md and remove the fragments; return what is to be said about it.

    Args:
        root: the repository.
        keep: change nothing; the new text of CHANGELOG.md is returned.
        date: that of the section; today by default.

    Raises:
        ValueError: the version is released, and there are fragments; or its section would be too
            long.
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
    added = _entries(files, root)
    target = root / "CHANGELOG.md"
    old = target.read_text(encoding="utf-8") if target.exists() else ""
    text = merged(old, new, date or datetime.date.today().isoformat(), added)
    if keep:
        return text
    length = [line for line in violations(text) if f" {new}: at most" in line]
    if length:
        raise ValueError(length[0])
    target.write_text(text, encoding="utf-8")
    for path in files:
        path.unlink()
    return f"changelog: {len(files)} fragments are in CHANGELOG.md, under {new}"


def main(arguments: Sequence[str]) -> int:
    """Gather from the command line; return 1 where nothing can be written."""
    parser = argparse.ArgumentParser("tools/changelog.py")
    parser.add_argument("--keep", action="store_true", help="print, and change nothing")
    parser.add_argument("--date", help="of the section, as 2026-01-31; default: today")
    flags = parser.parse_args(arguments)
    try:
        print(gather(keep=flags.keep, date=flags.date))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
