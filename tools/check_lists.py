"""Fail for a list of operators' names outside of their definitions.

    python tools/check_lists.py

What is true of an operator stands in its definition (docs/design/0048), from which everything else
reads it. So a set, tuple, list or dict with `MOST` or more strings that are names of operators is
an error in the sources of packages, in Python and C++. `mappings.MAPPINGS` has the files that
translate names to another vocabulary, or have code for single operators, each with the reason. This
checks as well that each of them is complete.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys
from collections.abc import Iterator

import mappings
from mappings import MAPPINGS
from package_graph import ROOT

__all__ = ["check", "main", "names_of_operators"]

MOST = 8
"""The number of names from which on a collection is a list of operators."""

_IN_BRACES = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_IN_LINE = re.compile(r"""["'].*["']""")
_IN_QUOTES = re.compile(r'"([\w.]+)"')


def names_of_operators(root: pathlib.Path = ROOT) -> set[str]:
    """Return the names of all operators, and those of their forms in place."""
    names: set[str] = set()
    for each in mappings.operators(root):
        base = each.schema.base
        names |= {each.name, base, f"{base}_" if each.inplace else base}
    return names


def _strings(node: ast.AST) -> Iterator[str]:
    """Yield the strings in a collection; of a dict the keys, without functions of that name."""
    if isinstance(node, ast.Dict):
        parts: list[ast.expr | None] = [
            key
            for key, value in zip(node.keys, node.values, strict=True)
            if getattr(key, "value", None) != getattr(value, "id", "")
        ]
    elif isinstance(node, (ast.List, ast.Set, ast.Tuple)):
        parts = list(node.elts)
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "split":
        text = getattr(node.func, "value", None)
        value = text.value if isinstance(text, ast.Constant) else ""
        yield from value.split() if isinstance(value, str) else ()
        return
    else:
        return
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _in_python(text: str, names: set[str]) -> Iterator[tuple[int, list[str]]]:
    quoted = " ".join(_IN_LINE.findall(text)).replace("'", " ").replace('"', " ")
    if ".split()" not in text and sum(each in names for each in quoted.split()) < MOST:
        return  # most files, without the time to parse them
    tree = ast.parse(text)
    public = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    }
    for node in ast.walk(tree):
        if id(node) in public:
            continue
        results = [each for each in _strings(node) if each in names]
        if len(results) >= MOST:
            yield getattr(node, "lineno", 0), results


def _in_cpp(text: str, names: set[str]) -> Iterator[tuple[int, list[str]]]:
    for match in _IN_BRACES.finditer(text):
        if ";" in match[0]:
            continue  # a block of statements
        results = [each for each in _IN_QUOTES.findall(match[0]) if each in names]
        if len(results) >= MOST:
            yield text.count("\n", 0, match.start()) + 1, results


def check(root: pathlib.Path = ROOT) -> list[str]:
    """Return a line for each list of operators' names, and for each gap of a mapping."""
    names = names_of_operators()
    errors = []
    for package in sorted((root / "packages").iterdir()):
        if package.name == "ops":
            continue
        for path in sorted([*package.glob("src/**/*.py"), *package.glob("cpp/**/*.[ch]pp")]):
            where = path.relative_to(root).as_posix()
            text = path.read_text(encoding="utf-8")
            lists = _in_python if path.suffix == ".py" else _in_cpp
            for line, result in lists(text, names):
                if where not in MAPPINGS:
                    errors.append(
                        f"{where}:{line}: {len(result)} names of operators ({', '.join(result[:4])}"
                        ", ...): say it in their definitions (docs/design/0048)"
                    )
    if root == ROOT:
        errors += mappings.check()
    return errors


def main() -> int:
    """Print lists of operators' names; return 1 if there are any."""
    errors = check()
    for line in errors:
        print(line, file=sys.stderr)
    if not errors:
        print(f"check_lists: operators are listed in {len(MAPPINGS)} complete mappings alone")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
