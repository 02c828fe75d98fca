"""tools/check_docs.py: code that is too long, and pictures of one scheme of colours."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from check_docs import LONGEST, check

LONG = "x" * (LONGEST + 1)


def errors(folder: Path, name: str, text: str) -> list[str]:
    path = folder / "docs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return list(check(folder))


def test_a_long_line_of_code_is_named(tmp_path: Path) -> None:
    [error] = errors(tmp_path, "page.md", f"{LONG}\n\n```python\nx\n{LONG}\n```\n\n{LONG}\n")
    assert "docs/page.md:5:" in error and f"this one has {LONGEST + 1}" in error


def test_a_fence_ends_at_its_own_mark_only(tmp_path: Path) -> None:
    text = f"````text\n```python\n```\n{LONG}\n````\n```{{index}} ! word\n{LONG}\n```\n"
    [error] = errors(tmp_path, "page.md", text)
    assert "docs/page.md:4:" in error


def test_pages_that_a_build_writes_are_left_out(tmp_path: Path) -> None:
    assert not errors(tmp_path, "_build/page.md", f"```text\n{LONG}\n```\n")


def test_a_picture_has_the_colours_of_its_page(tmp_path: Path) -> None:
    assert not errors(tmp_path, "a.svg", '<svg><path style="stroke: currentColor"/></svg>')
    [error] = errors(tmp_path, "a.svg", '<svg><path style="fill: #ffffff"/></svg>')
    assert "docs/a.svg" in error and "#ffffff" in error
