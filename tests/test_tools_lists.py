"""The check of lists of operators' names finds them in Python and C++, and nothing else."""

from __future__ import annotations

import pathlib
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))

import check_lists  # noqa: E402

NAMES = ("add", "sub", "mul", "div", "exp", "log", "sin", "cos_")


def found_in(folder: pathlib.Path, name: str, text: str) -> list[str]:
    file = folder / "packages" / "core" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return check_lists.check(folder)


def test_this_repository_has_no_list() -> None:
    assert check_lists.check() == []


@pytest.mark.parametrize(
    "code",
    [
        f"chosen = {NAMES!r}",
        f"chosen = {list(NAMES)!r}",
        f"chosen = frozenset({set(NAMES)!r})",
        f"chosen = {dict.fromkeys(NAMES, 1)!r}",
        f"chosen = {' '.join(NAMES)!r}.split()",
        f"def later():\n    return x in {NAMES!r}",
    ],
)
def test_a_list_in_python_is_found(tmp_path: pathlib.Path, code: str) -> None:
    (error,) = found_in(tmp_path, "src/plait_core/_some.py", code)
    assert error.startswith("packages/core/src/plait_core/_some.py:")
    assert "8 names of operators" in error


def test_a_list_in_cpp_is_found(tmp_path: pathlib.Path) -> None:
    rows = ",".join(f'{{"{name}", 1}}' for name in NAMES)
    (error,) = found_in(tmp_path, "cpp/some.cpp", f"int x;\nRow rows[] = {{{rows}}};\n")
    assert error.startswith("packages/core/cpp/some.cpp:2: 8 names of operators")


@pytest.mark.parametrize(
    "code",
    [
        f"chosen = {NAMES[:7]!r}",
        f"__all__ = {list(NAMES)!r}",
        f"functions = {{{', '.join(f'{name!r}: {name}' for name in NAMES)}}}",
        f"chosen = {tuple(name + '_x' for name in NAMES)!r}",
    ],
)
def test_what_is_no_list_of_facts_passes(tmp_path: pathlib.Path, code: str) -> None:
    assert found_in(tmp_path, "src/plait_core/_some.py", code) == []
