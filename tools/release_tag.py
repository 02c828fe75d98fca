"""The commit and the annotated tag of a release."""

from __future__ import annotations

import pathlib
import subprocess

__all__ = ["check_taggable", "tag"]


def _git(root: pathlib.Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *words], text=True, capture_output=True, check=False
    )
    if done.returncode != 0:
        raise ValueError(f"release: git {' '.join(words[:2])} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def check_taggable(root: pathlib.Path, version: str) -> None:
    """Check that a release can be committed and tagged as it was built.

    Raises:
        ValueError: git has the tag already, or the tree has changes that are not committed.
    """
    name = f"v{version}"
    if _git(root, "tag", "--list", name):
        raise ValueError(f"release: git has the tag {name}; raise the version first")
    changes = _git(root, "status", "--porcelain").splitlines()
    if changes:
        raise ValueError(
            f"release: --tag needs a tree without changes, and {len(changes)} files have some, "
            f"such as {changes[0].split(maxsplit=1)[-1]}"
        )


def tag(root: pathlib.Path, version: str, text: str) -> str:
    """Commit what the changelog's step wrote, and make an annotated tag of it.

    Args:
        root: the repository.
        version: the tag is this after a ``v``.
        text: the message of the tag.

    Returns:
        What is to be said about it.

    Raises:
        ValueError: git refuses.
    """
    name = f"v{version}"
    if _git(root, "status", "--porcelain"):
        _git(root, "add", "--all", "CHANGELOG.md", "changes")
        _git(root, "commit", "--quiet", "--message", f"Release {version}")
    _git(root, "tag", "--annotate", name, "--cleanup=verbatim", "--message", text)
    commit = _git(root, "rev-parse", "--short", "HEAD")
    return f"release: commit {commit} has the annotated tag {name}; push it: git push origin {name}"
