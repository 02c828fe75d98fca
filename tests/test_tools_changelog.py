"""Fragments are gathered by package, once, below a version until it is released."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))

import changelog  # noqa: E402

FIRST = """# Changelog
What users notice, by version and package. New versions are above.

## 0.2.0 (2026-01-31)

### plait
- Added the umbrella.

### plait-data
- Added a loader, which reads with threads.
- Fixed a hang.

### Documentation
- Added a guide.
"""


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """A repository of two packages with four fragments."""
    for name in ("plait", "data"):
        folder = tmp_path / "packages" / name
        folder.mkdir(parents=True)
        distribution = "plait" if name == "plait" else f"plait-{name}"
        text = f'[project]\nname = "{distribution}"\nversion = "0.2.0"\n'
        (folder / "pyproject.toml").write_text(text)
    (tmp_path / "changes").mkdir()
    for name, text in {
        "README.md": "How to write them.",
        "plait.umbrella.md": "Added the umbrella.\n",
        "data.loader.md": "Added a loader, which reads\nwith threads.\n",
        "data.hang.md": "Fixed a hang.",
        "docs.guide.md": "Added a guide.\n",
    }.items():
        (tmp_path / "changes" / name).write_text(text)
    # the order of packages does not depend on that of files
    (tmp_path / "changes" / "data.hang.md").rename(tmp_path / "changes" / "data.zhang.md")
    return tmp_path


def test_fragments_become_a_section(tree: pathlib.Path) -> None:
    text = changelog.gather(tree, date="2026-01-31")
    assert text == "changelog: 4 fragments are in CHANGELOG.md, under 0.2.0"
    assert (tree / "CHANGELOG.md").read_text() == FIRST
    assert [path.name for path in (tree / "changes").iterdir()] == ["README.md"]


def test_without_fragments_nothing_changes(tree: pathlib.Path) -> None:
    changelog.gather(tree, date="2026-01-31")
    assert "has no fragments" in changelog.gather(tree, date="2026-02-01")
    assert (tree / "CHANGELOG.md").read_text() == FIRST


def test_long_fragments_are_wrapped(tree: pathlib.Path) -> None:
    (tree / "changes" / "data.long.md").write_text("word " * 60)
    changelog.gather(tree, date="2026-01-31")
    text = (tree / "CHANGELOG.md").read_text()
    assert max(map(len, text.splitlines())) <= changelog.WIDTH
    assert text.count("word") == 60


def test_the_summary_and_general_headings_stay(tree: pathlib.Path) -> None:
    summary = "The summary,\nof two lines.\n\n### Changed\n- A name.\n\n### plait\n"
    first = FIRST.replace("### plait\n", summary, 1)
    (tree / "CHANGELOG.md").write_text(first)
    changelog.gather(tree, date="2026-01-31")
    assert (tree / "CHANGELOG.md").read_text() == first
    assert list(changelog.violations(first)) == []


def test_a_section_that_is_too_long_is_not_written(tree: pathlib.Path) -> None:
    for number in range(changelog.LINES):
        (tree / "changes" / f"data.row{number}.md").write_text(f"Row {number}.")
    with pytest.raises(ValueError, match=r"0\.2\.0: at most 150 lines are allowed; it has 161"):
        changelog.gather(tree)
    assert not (tree / "CHANGELOG.md").exists()
    assert (tree / "changes" / "data.row0.md").exists()


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ("", "a summary of 1 to 10 lines below the title is required; it has 0"),
        ("line\n" * 11, "is required; it has 11"),
        ("x" * 101, "a line has more than 100 characters"),
        ("line\n\n### plait\n" + "- item\n" * 150, "at most 150 lines are allowed; it has 155"),
    ],
)
def test_limits_of_a_section(summary: str, said: str) -> None:
    (violation,) = changelog.violations(f"# Changelog\n\n## 0.2.0 (2026-01-31)\n\n{summary}")
    assert said in violation


def test_a_preview_changes_nothing(tree: pathlib.Path) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    assert changelog.gather(tree, keep=True, date="2026-01-31") == FIRST
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before


def test_later_fragments_join_the_section(tree: pathlib.Path) -> None:
    changelog.gather(tree, date="2026-01-31")
    (tree / "changes" / "data.sampler.md").write_text("Added a sampler.")
    (tree / "changes" / "data.again.md").write_text("Fixed a hang.")  # as it stands there
    changelog.gather(tree, date="2026-02-01")
    expected = FIRST.replace("-01-31", "-02-01").replace(
        "- Fixed a hang.\n", "- Fixed a hang.\n- Added a sampler.\n"
    )
    assert (tree / "CHANGELOG.md").read_text() == expected


def test_a_later_version_stands_above(tree: pathlib.Path) -> None:
    changelog.gather(tree, date="2026-01-31")
    file = tree / "packages/plait/pyproject.toml"
    file.write_text(file.read_text().replace("0.2.0", "0.3.0"))
    (tree / "changes" / "data.sampler.md").write_text("Added a sampler.")
    changelog.gather(tree, date="2026-02-01")
    section = "## 0.3.0 (2026-02-01)\n\n### plait-data\n- Added a sampler.\n\n## 0.2.0"
    assert (tree / "CHANGELOG.md").read_text() == FIRST.replace("## 0.2.0", section)


def test_a_released_version_takes_no_more(tree: pathlib.Path) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    commands = [["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--no-verify", "-m", "x"]]
    for command in [*commands, ["tag", "v0.2.0"]]:
        subprocess.run(["git", *identity, *command], cwd=tree, check=True)
    with pytest.raises(ValueError, match=r"0\.2\.0 is released .* tools/versions\.py VERSION"):
        changelog.gather(tree)
    assert not (tree / "CHANGELOG.md").exists()


def test_the_page_of_the_site_has_the_fragments_above(tree: pathlib.Path) -> None:
    changelog.gather(tree, date="2026-01-31")
    assert changelog.page(tree) == FIRST
    (tree / "changes" / "data.later.md").write_text("Added a sampler.\n")
    later = "## Next version\n\n### plait-data\n- Added a sampler.\n\n"
    assert changelog.page(tree) == FIRST.replace("## 0.2.0", later + "## 0.2.0")
    assert (tree / "CHANGELOG.md").read_text() == FIRST
