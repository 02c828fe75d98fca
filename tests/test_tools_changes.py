"""The check of the form of changes finds every kind of error."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))

import check_changes  # noqa: E402


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """A repository with one package, one fragment and one note."""
    for folder in ("packages/data", "changes", "docs/design"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "packages/data/pyproject.toml").write_text("[project]\nname = 'plait-data'\n")
    (tmp_path / "changes/README.md").write_text("How to write them.\n")
    (tmp_path / "changes/data.loader.md").write_text("Added a loader.\n")
    (tmp_path / "docs/design/0001-loader.md").write_text("**Rejected.** Threads.\n")
    return tmp_path


def test_a_tree_in_form_passes(tree: pathlib.Path) -> None:
    assert check_changes.check(tree) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("changes/loader.md", "Added.", "a name <package>.<what>.md is required"),
        ("changes/dat.loader.md", "Added.", "a name <package>.<what>.md is required"),
        ("changes/data.empty.md", "\n", "one or two sentences are required"),
        ("CHANGELOG.md", "## 0.2.0 (2026-01-31)\n\n### plait\n- A.", "0.2.0: a summary of 1 to 10"),
        ("docs/design/loader.md", "Rejected", "of four digits>-<what>.md is required"),
        ("docs/design/0002-queue.md", "**Decision.**", "what was rejected, and why"),
        ("docs/design/0002-queue.md", "Rejected " * 901, "at most 900 words are allowed"),
    ],
)
def test_a_file_without_its_form_is_found(
    tree: pathlib.Path, name: str, text: str, said: str
) -> None:
    (tree / name).write_text(text)
    (result,) = check_changes.check(tree)
    assert result.startswith(f"{name}: ")
    assert said in result


def _commit(tree: pathlib.Path, subject: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", *identity, "commit", "--quiet", "--no-verify", "--allow-empty"]
    subprocess.run([*command, "-m", subject, "-m", "x" * 200], cwd=tree, check=True)


def test_a_long_subject_is_found(tree: pathlib.Path) -> None:
    try:
        subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)
    except FileNotFoundError:
        pytest.skip("git is required")
    _commit(tree, "s" * 72)
    assert check_changes.check(tree) == []
    _commit(tree, "s" * 73)
    (result,) = check_changes.check(tree)
    assert "a subject of at most 72 characters is required: sss" in result
