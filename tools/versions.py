"""Check that all packages state one version, or write another one into all of them.

    python tools/versions.py           # check
    python tools/versions.py 0.3.0     # write

A version stands in ``pyproject.toml`` (with the requirements on our packages, also those of
examples), as ``__version__`` in the package, in the plug-in's description in ``cpp``, in files of
pkg-config and in CITATION.cff. plait-torch has PyTorch's version with a fourth number, which each
new version raises by one.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from collections.abc import Iterator, Sequence

from package_graph import ROOT, load_all

__all__ = ["check", "main", "places", "version", "write"]

UMBRELLA = "plait"
OF_PYTORCH = "torch"
_NUMBERS = r"\d+(?:\.\d+)+"
_DECLARED = re.compile(rf'(?m)^version = "({_NUMBERS})"$')
_REQUIRED = re.compile(rf'"plait(?:-(?!torch)[a-z]+)?(?:\[[a-z]+\])?~=({_NUMBERS})"')
_OF_MODULE = re.compile(rf'(?m)^__version__ = "({_NUMBERS})"$')
_OF_CITATION = re.compile(rf"(?m)^version: ({_NUMBERS})$")
_OF_PKGCONFIG = re.compile(rf"(?m)^Version: ({_NUMBERS})$")
_OF_PLUGIN = re.compile(rf'"({_NUMBERS})"')


def places(root: pathlib.Path = ROOT) -> Iterator[tuple[str, pathlib.Path, re.Pattern[str]]]:
    """Yield package, file and pattern wherever a version stands; group 1 is the version."""
    for name, package in load_all(root).items():
        yield name, package.folder / "pyproject.toml", _DECLARED
        yield UMBRELLA, package.folder / "pyproject.toml", _REQUIRED
        yield name, package.folder / "src" / package.module / "__init__.py", _OF_MODULE
        for file in sorted((package.folder / "cpp").rglob("plugin.cpp")):
            yield name, file, _OF_PLUGIN
        for file in sorted((package.folder / "src").glob("*/pkgconfig/*.pc")):
            yield name, file, _OF_PKGCONFIG
    for file in sorted((root / "examples").glob("*/pyproject.toml")):
        yield UMBRELLA, file, _REQUIRED
    if (root / "CITATION.cff").exists():
        yield UMBRELLA, root / "CITATION.cff", _OF_CITATION


def version(name: str = UMBRELLA, root: pathlib.Path = ROOT) -> str:
    """Return the version that a package declares."""
    file = load_all(root)[name].folder / "pyproject.toml"
    match = _DECLARED.search(file.read_text(encoding="utf-8"))
    if match is None:
        raise ValueError(f'{file}: a line version = "..." is required')
    return match[1]


def _expected_text(name: str, new: str, root: pathlib.Path) -> str:
    """Return what a package's version is to be when the others have ``new``."""
    if name != OF_PYTORCH:
        return new
    old = version(name, root)
    if new == version(UMBRELLA, root):
        return old
    front, _, last = old.rpartition(".")
    return f"{front}.{int(last) + 1}"


def check(root: pathlib.Path = ROOT) -> list[str]:
    """Return a line for every place with another version than the package must have."""
    new = version(root=root)
    wrong = []
    for name, file, pattern in places(root):
        required = _expected_text(name, new, root)
        text = file.read_text(encoding="utf-8")
        for result in pattern.finditer(text):
            if result[1] != required:
                line = text.count("\n", 0, result.start()) + 1
                where = file.relative_to(root)
                wrong.append(f"{where}:{line}: version {required} is required, got {result[1]}")
    return wrong


def write(new: str, root: pathlib.Path = ROOT) -> None:
    """Write ``new`` into all packages."""
    required = {name: _expected_text(name, new, root) for name in load_all(root)}
    for name, file, pattern in list(places(root)):
        text = file.read_text(encoding="utf-8")

        def with_version(result: re.Match[str], name: str = name) -> str:
            return result[0].replace(result[1], required[name])

        file.write_text(pattern.sub(with_version, text), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Check or write; return 1 if places disagree."""
    parser = argparse.ArgumentParser("tools/versions.py")
    parser.add_argument("version", nargs="?", help="write this one: three numbers")
    new = parser.parse_args(arguments).version
    if new is not None:
        if not re.fullmatch(r"\d+\.\d+\.\d+", new):
            parser.error(f"version: three numbers, as in 0.3.0, are required; got {new!r}")
        write(new)
    wrong = check()
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
