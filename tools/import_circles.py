"""Check imports within packages: no circle, and no import upward.

Modules of one folder, and the folders beside them, import one another without a circle; a module
imports no name from the ``__init__`` of a package that it lies in. Every import counts: in
functions, below ``TYPE_CHECKING``, and in the stubs of compiled modules. Two files that need each
other are one topic: join them, or move their common part to a third one.
"""

from __future__ import annotations

import ast
import graphlib
import itertools
import pathlib
from collections.abc import Iterator

__all__ = ["check"]

# for each (importing module, imported module) the file and line
Imports = dict[tuple[str, str], str]


def check(source: pathlib.Path) -> Iterator[str]:
    """Yield a line for each import upward below ``source``, and for a circle if there is one."""
    edges: Imports = {}
    modules = _modules(source)
    for name, path in modules.items():
        for line, imported in _imported(name, path, modules):
            edges.setdefault((name, imported), f"{path}:{line}")
    graph: dict[str, set[str]] = {}
    origins: dict[tuple[str, str], str] = {}
    for (importing, imported), origin in edges.items():
        package = imported.removesuffix("__init__")
        if imported.endswith(".__init__") and importing.startswith(package):
            yield f"{origin}: imports a name from {package[:-1]}, in which it lies"
            continue
        one, other = _siblings(importing, imported)
        graph.setdefault(one, set()).add(other)
        origins.setdefault((one, other), origin)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        circle = error.args[1][::-1]  # the error lists imported modules first
        for one, other in itertools.pairwise(circle):
            yield f"{origins[one, other]}: {one} imports {other}, which imports it in a circle"


def _modules(source: pathlib.Path) -> dict[str, pathlib.Path]:
    """Return the files of modules by dotted name; that of a package ends in ``.__init__``."""
    results: dict[str, pathlib.Path] = {}
    for suffix in (".py", ".pyi"):
        for path in sorted(source.rglob(f"*{suffix}")):
            name = ".".join(path.relative_to(source).with_suffix("").parts)
            results.setdefault(name, path)
    return results


def _imported(
    name: str, path: pathlib.Path, modules: dict[str, pathlib.Path]
) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each of ``modules`` that a module imports."""
    for line, module, label in _imported_names(name.split(".")[:-1], path):
        for result in (f"{module}.{label}", f"{module}.{label}.__init__", module):
            if result in modules and result != name:
                yield line, result
                break
        else:
            init = f"{module}.__init__"
            if init not in modules or init == name:
                continue
            # a compiled module that is not built has no file, and is not a name of its package
            if not name.startswith(f"{module}.") or _defines(modules[init], module, label):
                yield line, init


def _imported_names(package: list[str], path: pathlib.Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, module and name for all that a module of ``package`` imports; no name: ""."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield from ((node.lineno, module, alias.name) for alias in node.names)


def _defines(path: pathlib.Path, package: str, name: str) -> bool:
    """Return whether a package's ``__init__`` defines a name that is not one of its modules."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.level or node.module != package):
            bound = {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound = {node.name}
        else:
            bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if name in bound or not name:
            return True
    return False


def _siblings(one: str, other: str) -> tuple[str, str]:
    """Return the folders or files with a common parent that contain two modules."""
    a, b = one.split("."), other.split(".")
    depth = next(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y) + 1
    return ".".join(a[:depth]), ".".join(b[:depth])
