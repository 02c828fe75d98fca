"""Which names of PyTorch a library uses that plait does not have: `python -m plait_torch.names`.

    python -m plait_torch.names LIBRARY... [--path FOLDER] [--pytorch] [--top N] [--markdown]

The Python files of each library, which is given by its import name or its folder, are read and not
imported. A use is an import, or a chain such as ``torch.nn.init.normal_`` or ``F.relu`` whose first
name an import or an assignment binds to a module or name of torch. Names are looked up as programs
under ``python -m plait.torch`` do.

Uses that need not be there are counted apart: those of ``if TYPE_CHECKING`` and of annotations that
are not evaluated, those in a ``try`` that catches ImportError or AttributeError, and those behind
an ``if`` that asks ``hasattr``, a version, or whether something is available. Tests are not read.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.machinery
import importlib.metadata
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from plait_torch._finder import installed

__all__ = ["Library", "MissingUse", "Use", "first_missing", "library", "missing", "uses"]

_CAUGHT = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"}
_QUESTIONS = ("hasattr", "getattr", "version", "available", "TORCH_GE", "TORCH_2", "_greater")
# names below these are made at their first access
_OPEN = ("torch.ops", "torch.classes")


class Use(NamedTuple):
    """One use of a name of torch.

    Attributes:
        name: the dotted name, ``"torch.nn.Linear"``.
        line: the number of its line.
        guard: "" for a use that must be there, else "types", "try" or "asked".
        on_import: whether it is evaluated when the file is imported.
    """

    name: str
    line: int
    guard: str
    on_import: bool


class _Reader(ast.NodeVisitor):
    """Collects the uses of one file, in which a name means the same everywhere."""

    def __init__(self, tree: ast.Module) -> None:
        self.found: list[Use] = []
        self._names: dict[str, str] = {}
        self._guards: list[str] = []
        self._functions = 0
        self._text_annotations = False
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._bind_import(node)
            elif isinstance(node, ast.ImportFrom):
                self._bind_from(node)
        for statement in tree.body:  # F = torch.nn.functional
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target, name = statement.targets[0], self._dotted(statement.value)
                if isinstance(target, ast.Name) and name:
                    self._names.setdefault(target.id, name)
        self.visit(tree)

    def _bind_import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] == "torch":
                self._names[alias.asname or "torch"] = alias.name if alias.asname else "torch"

    def _bind_from(self, node: ast.ImportFrom) -> None:
        if node.module == "__future__":
            self._text_annotations |= any(alias.name == "annotations" for alias in node.names)
        if _is_torch(node):
            for alias in node.names:
                self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def _dotted(self, node: ast.AST) -> str:
        """Return the name of torch that an expression is; "" for others."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._names:
            return ""
        return ".".join([self._names[node.id], *reversed(parts)])

    def _add(self, name: str, node: ast.stmt | ast.expr) -> None:
        guard = self._guards[-1] if self._guards else ""
        self.found.append(Use(name, node.lineno, guard, not self._functions))

    @contextmanager
    def _guarded(self, guard: str) -> Iterator[None]:
        """Mark uses; the outermost guard counts."""
        self._guards.append((self._guards[-1] if self._guards else "") or guard)
        yield
        self._guards.pop()

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] == "torch":
                self._add(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if _is_torch(node):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                self._add(str(node.module) if alias.name == "*" else name, node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self._dotted(node)
        if not name:
            self.generic_visit(node)
        elif isinstance(node.ctx, ast.Load):
            self._add(name, node)

    def visit_Try(self, node: ast.Try) -> None:
        caught = {
            part.id if isinstance(part, ast.Name) else ""
            for handler in node.handlers
            for part in ast.walk(handler.type or ast.Name("Exception"))
        }
        with self._guarded("try" if caught & _CAUGHT else ""):
            self._visit_all(node.body)
        self._visit_all([*node.handlers, *node.orelse, *node.finalbody])

    def visit_If(self, node: ast.If) -> None:
        self._visit_condition(node.test, node.body, node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._visit_condition(node.test, [node.body], [node.orelse])

    def _visit_condition(
        self, test: ast.expr, body: Iterable[ast.AST], orelse: Iterable[ast.AST]
    ) -> None:
        text = ast.unparse(test)
        types = text.endswith("TYPE_CHECKING") and not text.startswith("not ")
        request = any(word in text for word in _QUESTIONS)
        with self._guarded("asked" if request else ""):
            self.visit(test)
        with self._guarded("types" if types else "asked" if request else ""):
            self._visit_all(body)
        with self._guarded("asked" if request else ""):
            self._visit_all(orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        request = any(word in ast.unparse(node) for word in _QUESTIONS[:2])
        with self._guarded("asked" if request else ""):
            self._visit_all(node.values)

    def _annotation(self, node: ast.AST | None) -> None:
        if node is not None:
            with self._guarded("types" if self._text_annotations else ""):
                self.visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        self._annotation(node.annotation)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_all([*node.decorator_list, node.args])
        self._annotation(node.returns)
        self._functions += 1
        self._visit_all(node.body)
        self._functions -= 1

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._functions += 1
        self.visit(node.body)
        self._functions -= 1


def _is_torch(node: ast.ImportFrom) -> bool:
    return not node.level and (node.module or "").partition(".")[0] == "torch"


def uses(source: str | bytes) -> list[Use]:
    """Return the uses of names of torch in the text of a Python file.

    Raises:
        SyntaxError: if it is no Python.

    Example:
        >>> from plait_torch.names import uses
        >>> [use.name for use in uses("import torch.nn.functional as F; F.relu")]
        ['torch.nn.functional', 'torch.nn.functional.relu']
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes in others' strings
        tree = ast.parse(source)
    return _Reader(tree).found


def first_missing(name: str) -> str:
    """Return the part of a dotted name up to the first name that is not available; "" if all are.

    The name is looked up in the `torch` that an import finds. Attributes of values that are neither
    modules nor classes are taken to be there.

    Example:
        >>> import plait_torch
        >>> from plait_torch.names import first_missing
        >>> with plait_torch.installed():
        ...     first_missing("torch.nn.Linear"), first_missing("torch.no_such.name")
        ('', 'torch.no_such')
    """
    if name.startswith(tuple(f"{each}." for each in _OPEN)):
        return ""
    path, *parts = name.split(".")
    result: object = importlib.import_module(path)
    for part in parts:
        if not isinstance(result, (ModuleType, type)):
            module = _module_of(path)  # a package has a function of the name of its module
            if module is None:
                return ""
            result = module
        path = f"{path}.{part}"
        try:
            result = getattr(result, part)
        except (AttributeError, ImportError):
            try:
                result = importlib.import_module(path)
            except Exception:  # a module of PyTorch may need what is not installed
                return path
        if isinstance(result, ModuleType):  # an import may find a module with more names
            with suppress(Exception):
                result = importlib.import_module(path)
    return ""


def _module_of(path: str) -> ModuleType | None:
    """Return the module of a dotted name; None if there is none, or it cannot be imported."""
    try:
        return importlib.import_module(path)
    except Exception:
        return None


class Library(NamedTuple):
    """The files of a library, and its version, which is "" if it is not known."""

    name: str
    version: str
    files: list[Path]


def library(name: str, path: str | None = None) -> Library:
    """Return the Python files of a library without its tests.

    Args:
        name: its import name, or the path of its folder or file, with a slash or a dot in it.
        path: a folder in which it is searched; None is `sys.path`.

    Raises:
        ModuleNotFoundError: if it is not available.
    """
    if os.sep in name or name.startswith(".") or name.endswith(".py"):
        root, version = Path(name).resolve(), ""
    else:
        spec = importlib.machinery.PathFinder.find_spec(name, [path] if path else None)
        places = list(spec.submodule_search_locations or ()) if spec else []
        if spec and not places and spec.origin:
            places = [spec.origin]
        if not places:
            hint = f"; the folder is ./{name}" if Path(name).exists() else ""
            raise ModuleNotFoundError(f"names: there is no library {name}{hint}", name=name)
        root, version = Path(places[0]), _version(name, path)
    if not root.exists():
        raise ModuleNotFoundError(f"names: there is no library {name}", name=name)
    files = [root] if root.is_file() else sorted(root.rglob("*.py"))
    skipped = {"tests", "test"}
    files = [file for file in files if not skipped & set(file.relative_to(root).parts)]
    return Library(root.stem if version == "" else name, version, files)


def _version(name: str, path: str | None) -> str:
    for each in importlib.metadata.distributions(path=[path] if path else sys.path):
        if any(file.parts[0] in (name, f"{name}.py") for file in each.files or ()):
            return str(each.version)
    return ""


@dataclass
class MissingUse:
    """The uses of a name that is not available.

    Attributes:
        name: the dotted name.
        libraries: those that use it without a guard.
        files: the number of files that do.
        uses: the number of such uses.
        on_import: the number of those that an import of the file evaluates.
        guarded: the number of the other uses, by their guard.
    """

    name: str
    libraries: set[str] = field(default_factory=set)
    files: int = 0
    uses: int = 0
    on_import: int = 0
    guarded: dict[str, int] = field(default_factory=dict)


def missing(libraries: Iterable[Library], pytorch: bool = False) -> list[MissingUse]:
    """Return the names that libraries use and plait lacks, those of most libraries first.

    Args:
        libraries: their files.
        pytorch: leave out the names that the installed PyTorch lacks as well.
    """
    read = [(each.name, _uses_of(file)) for each in libraries for file in each.files]
    names = sorted({use.name for _, value in read for use in value})
    with warnings.catch_warnings(), installed():
        warnings.simplefilter("ignore")
        lacking = {name: first for name in names if (first := first_missing(name))}
    if pytorch:
        there = set(_in_pytorch(sorted(set(lacking.values()))))
        lacking = {name: first for name, first in lacking.items() if first in there}
    result: dict[str, MissingUse] = {}
    for caller, value in read:
        in_file = set()
        for use in value:
            if use.name not in lacking:
                continue
            entry = result.setdefault(lacking[use.name], MissingUse(lacking[use.name]))
            if use.guard:
                entry.guarded[use.guard] = entry.guarded.get(use.guard, 0) + 1
                continue
            entry.libraries.add(caller)
            entry.uses += 1
            entry.on_import += use.on_import
            in_file.add(entry.name)
        for name in in_file:
            result[name].files += 1
    return sorted(result.values(), key=lambda e: (-len(e.libraries), -e.files, -e.uses, e.name))


def _uses_of(file: Path) -> list[Use]:
    data = file.read_bytes()
    try:
        return uses(data) if b"torch" in data else []
    except (SyntaxError, ValueError, RecursionError):  # templates, and files of older Pythons
        return []


_ASK = "import json, sys; from plait_torch.names import first_missing as f; \
print('\\n' + json.dumps([n for n in json.load(sys.stdin) if not f(n)]))"


def _in_pytorch(names: list[str]) -> list[str]:
    """Return those names that PyTorch has, read in a separate process."""
    request = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _ASK],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        check=False,
    )
    if request.returncode:
        raise RuntimeError(f"names: PyTorch cannot be asked:\n{request.stderr}")
    result: list[str] = json.loads(request.stdout.rpartition("\n[")[2].join(["[", ""]))
    return result


def _guards(entry: MissingUse) -> str:
    return ", ".join(f"{count} {guard}" for guard, count in sorted(entry.guarded.items()))


def _show(entries: list[MissingUse], markdown: bool) -> None:
    if markdown:
        print(
            "| name | libraries | files | uses | on import | guarded |\n|---|---|---|---|---|---|"
        )
    else:
        print(f"{'libraries':>9} {'files':>5} {'uses':>5} {'on import':>9}  name")
    for e in entries:
        caller = ", ".join(sorted(e.libraries))
        if markdown:
            print(
                f"| `{e.name}` | {caller} | {e.files} | {e.uses} | {e.on_import} | {_guards(e)} |"
            )
        else:
            rest = f"  (guarded: {_guards(e)})" if e.guarded else ""
            counts = f"{len(e.libraries):9} {e.files:5} {e.uses:5} {e.on_import:9}"
            print(f"{counts}  {e.name}{rest}")


def _main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m plait_torch.names", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "library", nargs="+", help="import names, or folders with a slash or a dot: ./project"
    )
    parser.add_argument("--path", help="a folder that holds the libraries; without it sys.path")
    parser.add_argument("--pytorch", action="store_true", help="only names that PyTorch has")
    parser.add_argument("--top", type=int, help="only so many names")
    parser.add_argument("--markdown", action="store_true", help="print a table in Markdown")
    options = parser.parse_args(arguments)
    try:
        libraries = [library(name, options.path) for name in options.library]
    except ModuleNotFoundError as error:
        parser.error(str(error))
    entries = missing(libraries, options.pytorch)
    versions = ", ".join(f"{each.name} {each.version}".strip() for each in libraries)
    print(f"{versions}\n\nMissing names: {len(entries)}.\n")
    _show(entries[: options.top], options.markdown)


if __name__ == "__main__":
    _main()
