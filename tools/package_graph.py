"""The packages of this repository, their dependencies, and the order of builds."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

__all__ = ["ROOT", "Package", "build_order", "closure", "load", "load_all"]

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclasses.dataclass(frozen=True)
class Package:
    """One folder of ``packages/`` with the declarations of its ``pyproject.toml``.

    ``needs``, ``test_needs`` and ``build_needs`` hold the short names of our own packages
    (``"core"`` for plait-core); ``third_party`` and ``test_third_party`` hold the others'.
    """

    name: str
    folder: pathlib.Path
    distribution: str
    needs: tuple[str, ...]
    test_needs: tuple[str, ...]
    build_needs: tuple[str, ...]
    third_party: tuple[str, ...]
    test_third_party: tuple[str, ...]

    @property
    def module(self) -> str:
        """The import name."""
        return self.distribution.replace("-", "_")

    @property
    def compiled(self) -> bool:
        """Whether the package has compiled parts."""
        return (self.folder / "setup.py").exists()


def short_name(requirement: str) -> str | None:
    """Return ``"core"`` for a requirement on plait-core, None for other packages."""
    match = NAME.match(requirement.strip())
    name = match.group(0).lower().replace("_", "-").replace(".", "-") if match else ""
    if name == "plait":
        return "plait"
    return name.removeprefix("plait-") if name.startswith("plait-") else None


def _split(requirements: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    ours = tuple(name for name in map(short_name, requirements) if name is not None)
    others = tuple(text for text in requirements if short_name(text) is None)
    return ours, others


def load(folder: pathlib.Path) -> Package:
    """Read one package folder."""
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    declared: dict[str, Any] = tomllib.loads(text)
    project = declared["project"]
    needs, third_party = _split(project.get("dependencies", []))
    extras = project.get("optional-dependencies", {})
    test_needs, test_third_party = _split(extras.get("test", []))
    build_needs, _ = _split(declared.get("build-system", {}).get("requires", []))
    return Package(
        name=folder.name,
        folder=folder,
        distribution=project["name"],
        needs=needs,
        test_needs=test_needs,
        build_needs=build_needs,
        third_party=third_party,
        test_third_party=test_third_party,
    )


def load_all(root: pathlib.Path = ROOT) -> dict[str, Package]:
    """Read every package, by short name."""
    folders = sorted(path.parent for path in (root / "packages").glob("*/pyproject.toml"))
    return {folder.name: load(folder) for folder in folders}


def closure(names: list[str], packages: dict[str, Package], *, tests: bool = False) -> list[str]:
    """Return ``names`` and our packages that they need at run time, dependencies first.

    With ``tests`` the ``[test]`` extras of ``names`` count too.
    """
    order: list[str] = []
    path: list[str] = []

    def visit(name: str) -> None:
        if name in path:
            raise ValueError(f"packages need one another in a circle: {' -> '.join([*path, name])}")
        if name not in packages:
            caller = f"package {path[-1]!r} needs" if path else "there is no"
            raise ValueError(f"{caller} {name!r}: packages/ holds {', '.join(packages)}")
        if name in order:
            return
        path.append(name)
        for needed in packages[name].needs:
            visit(needed)
        path.pop()
        order.append(name)

    for name in names:
        visit(name)
    for name in names if tests else ():
        for needed in packages[name].test_needs:
            visit(needed)
    return order


def build_order(packages: dict[str, Package]) -> list[str]:
    """Return all packages in an order of builds, dependencies first."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        for needed in (*packages[name].build_needs, *packages[name].needs):
            visit(needed)
        order.append(name)

    for name in sorted(packages):
        visit(name)
    return order
