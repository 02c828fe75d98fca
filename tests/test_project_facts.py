"""What package indexes show: classifiers, keywords and addresses of all packages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DECLARATIONS = sorted((ROOT / "packages").glob("*/pyproject.toml"))


def test_the_facts_are_those_of_the_tool() -> None:
    words = [sys.executable, "tools/project_facts.py", "--check"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, f"run tools/project_facts.py\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("path", DECLARATIONS, ids=lambda path: path.parent.name)
def test_a_package_has_facts(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("[project.urls]") == text.count("keywords = [") == 1
    assert text.count("classifiers = [") == 1 and "License ::" not in text


def test_the_umbrella_has_an_extra_for_each_optional_package() -> None:
    text = (ROOT / "packages/plait/pyproject.toml").read_text(encoding="utf-8")
    extras = set(re.findall(r"(?m)^([a-z]+) = \[", text.partition("optional-dependencies]")[2]))
    base = set(re.findall(r'"plait-([a-z]+)', text.partition("[project.optional")[0]))
    every = {path.parent.name for path in DECLARATIONS} - {"plait"}
    assert every - base <= extras and "all" in extras


def test_the_address_of_the_repository_stands_in_one_place() -> None:
    found = subprocess.run(
        ["git", "grep", "-l", "plait[.]example/"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    others = [name for name in found if not re.fullmatch(r"packages/\w+/pyproject.toml", name)]
    assert others in ([], ["tools/project_facts.py"])


def test_templates_ask_for_the_environment() -> None:
    templates = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.md"))
    assert len(templates) >= 3
    for template in templates:
        text = template.read_text(encoding="utf-8")
        assert text.startswith("---\nname: ") and "`python -m plait`" in text, template
