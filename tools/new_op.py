"""Write the skeleton of an operator: definition, test data, a kernel unless it is composite, and
the fragment of the changelog.

    nox -s new-op -- NAME                     pointwise: one scalar function serves all
    nox -s new-op -- NAME --kind composite    calls of other operators: no kernel
    nox -s new-op -- NAME --kind structured   a kernel of its own

Files are those of the operator's family, ``--family pointwise/activations`` for example; without it
a family of the operator's name is made in the folder ``pointwise``. Where the family has a file
already, the operator is added at its end. The skeleton builds and passes its tests as it is, with a
formula to replace (marked EDIT). No build file changes.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import keyword
import pathlib
import re
import sys
from collections.abc import Sequence

from package_graph import ROOT

__all__ = ["describe", "main", "write"]

SPECS = "packages/ops/src/plait_ops/specs"
SAMPLES = "packages/ops/src/plait_ops/samples"
KERNELS = "packages/core/cpp"

DOC = '''    doc="""
    EDIT what it computes: ``self * self``, elementwise.

    >>> import plait_core as pc
    >>> pc.NAME(pc.tensor([1.0, -2.0])).tolist()
    [1.0, 4.0]
    """,
    variants="function method",  # EDIT: as plait.NAME(x) and as x.NAME()
'''
VJP = """

@NAME.vjp("self")
def _(g, self):
    return 2.0 * self * g  # EDIT: the gradient `g` of the result, times the derivative
"""
POINTWISE = f"""NAME = Pointwise(
    "NAME(Tensor self) -> Tensor",
{DOC}    dtypes="floating",
    zero_preserving=True,  # EDIT: leave it out unless the value at 0 is 0
)
{VJP}"""
POINTWISE_DATA = """# EDIT: the reference in NumPy; samples and errors are generated.
NAME.reference(lambda x: np.square(x))
"""
COMPOSITE = f"""NAME = Composite(
    "NAME(Tensor self) -> Tensor",
{DOC}    zero_preserving=True,  # EDIT: leave it out unless the value at 0 is 0
)
# EDIT: what it computes on parts of tensors that several ranks hold; without it that is an error
NAME.shard("elements")


@NAME.decompose
def _(self):
    return op.mul(self, self)  # EDIT: calls of other operators, with their derivatives and errors
"""
COMPOSITE_DATA = """@NAME.reference
def _(self):
    return np.multiply(self, self)  # EDIT


@NAME.samples
def _(s):
    yield s(s.array(2, 3))
    yield s(s.array(0))
    yield s(s.strided(3, 4))


NAME.error("TypeError", lambda s: s("x"), contains=["NAME", "self"])
"""
STRUCTURED = f"""NAME = Operator(
    "NAME(Tensor self) -> Tensor",
{DOC}    dtypes="floating",
    kernel="`self` may be strided; the result is contiguous.",  # EDIT: what kernels may rely on
)
# EDIT: how one call computes all samples of `vmap`; without it each sample is a call
NAME.batch("leading")
# EDIT: what it computes on parts of tensors that several ranks hold; without it that is an error
NAME.shard("elements")


@NAME.shape
def _(self):
    require("self", self.dtype, "floating")
    return result(self.shape, self.dtype)  # EDIT: validate everything here; kernels do not


@NAME.cost
def _(self):
    return numel(self)  # EDIT: floating-point operations, which profiles show
{VJP}"""
STRUCTURED_DATA = """@NAME.reference
def _(self):
    return np.square(self)  # EDIT


@NAME.samples
def _(s):
    for dtype in ("float32", "float64"):
        yield s(s.array(2, 3, dtype=dtype))
    yield s(s.array())
    yield s(s.array(0, 4))
    yield s(s.strided(3, 4))


NAME.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="int64")),
    contains=["NAME", "`self`", "int64"],
)
"""
SCALAR = """// EDIT: the formula
template <class T>
PLAIT_HD T NAME(T x) {
  return x * x;  // EDIT
}
"""
HEADER = """// EDIT: what the functions of the family are
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

}  // namespace plait::scalar
"""
KERNEL = """// NAME: EDIT how it goes about it, and what of that is not plain.
#include "kernel/copy.h"

namespace plait::core {
namespace {

plait_status NAME(plait_call *c) {
  DLTensor *out = result(c);
  PLAIT_TRY(copy(c, out, tensor(c, 0)));  // `self` may be strided; the result is not
  PLAIT_FLOATING(kind(out->dtype), {
    T *p = data<T>(out);
    for (int64_t i = 0, n = numel(out); i < n; i++) p[i] *= p[i];  // EDIT
  })
  return PLAIT_OK;
}
PLAIT_KERNEL("NAME", NAME);

}  // namespace
}  // namespace plait::core
"""


@dataclasses.dataclass(frozen=True)
class Kind:
    """The texts of an operator's skeleton: its definition with imports, and its test data."""

    imports: tuple[tuple[str, str], ...]
    definition: str
    data: str


KINDS = {
    "pointwise": Kind((("plait_ops.spec", "Pointwise"),), POINTWISE, POINTWISE_DATA),
    "composite": Kind(
        (("plait_ops", "calls as op"), ("plait_ops.spec", "Composite")), COMPOSITE, COMPOSITE_DATA
    ),
    "structured": Kind(
        (
            ("plait_ops.spec", "Operator"),
            ("plait_ops.words", "numel"),
            ("plait_ops.words", "require"),
            ("plait_ops.words", "result"),
        ),
        STRUCTURED,
        STRUCTURED_DATA,
    ),
}


def _with_import(text: str, module: str, name: str) -> str:
    """Return a module's text with ``from module import name``, merged with an existing one."""
    lines = text.splitlines(keepends=True)
    body = ast.parse(text).body
    imports = [node for node in body if isinstance(node, ast.ImportFrom)]
    for node in imports:
        names = [ast.unparse(alias) for alias in node.names]
        if node.module == module:
            if name in names:
                return text
            names = sorted([*names, name], key=lambda each: (not each[0].isupper(), each))
            line = f"from {module} import {', '.join(names)}\n"
            if len(line) > 101:
                line = f"from {module} import (\n" + "".join(f"    {n},\n" for n in names) + ")\n"
            lines[node.lineno - 1 : node.end_lineno] = [line]
            return "".join(lines)
    before = [node for node in imports if (node.module or "") < module]
    at = before[-1].end_lineno if before else (imports[0].lineno - 1 if imports else None)
    if at is None:  # after the docstring, or after `import numpy`
        at = max(node.end_lineno or 0 for node in body[:2] if not isinstance(node, ast.Assign))
        lines.insert(at, "\n")
        at += 1
    lines.insert(at or 0, f"from {module} import {name}\n")
    return "".join(lines)


def _module(path: pathlib.Path, head: str, imports: Sequence[tuple[str, str]], body: str) -> str:
    """Return the text of the Python file at `path` with `body` at its end."""
    text = path.read_text(encoding="utf-8") if path.exists() else head
    for module, name in imports:
        text = _with_import(text, module, name)
    between = "\n\n\n" if path.exists() or body.startswith("@") else "\n\n"
    return f"{text.rstrip()}{between}{body}"


def _header(path: pathlib.Path, function: str) -> str:
    """Return the text of a family's header of scalar functions with one more."""
    text = path.read_text(encoding="utf-8") if path.exists() else HEADER
    before, end, after = text.rpartition("}  // namespace plait::scalar")
    if not end:
        raise ValueError(f"{path} has no namespace plait::scalar")
    return f"{before}{function}\n{end}{after}"


def _files(name: str, kind: str, family: str, root: pathlib.Path) -> dict[pathlib.Path, str]:
    """Return the files and their texts."""
    choice = KINDS[kind]
    definition, data = (root / folder / f"{family}.py" for folder in (SPECS, SAMPLES))
    module = f"plait_ops.specs.{family.replace('/', '.')}"
    files = {
        definition: _module(
            definition,
            f'"""{family}: EDIT say in one line what the family is."""\n',
            choice.imports,
            choice.definition,
        ),
        data: _module(
            data,
            f'"""Test data of {family}: references in NumPy, sample calls, errors."""\n\n'
            "import numpy as np\n",
            [(module, name)],
            choice.data,
        ),
    }
    if kind == "pointwise":
        header = root / KERNELS / f"{family}.h"
        files[header] = _header(header, SCALAR)
    if kind == "structured":
        kernel = root / KERNELS / family.partition("/")[0] / f"{name}.cpp"
        if kernel.exists():
            raise ValueError(f"{kernel.relative_to(root)} would be overwritten")
        files[kernel] = KERNEL
    return files


def write(
    name: str, kind: str, root: pathlib.Path = ROOT, family: str | None = None
) -> list[pathlib.Path]:
    """Write operator ``name`` to the files of its family, by default ``pointwise/<name>``.

    Returns:
        The files: definition, test data, kernel.

    Raises:
        ValueError: the name or the family is invalid, or the operator exists already.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name) or name[-1] == "_":
        raise ValueError(
            f"`name` must be like log_softmax (forms in place come by themselves), got {name!r}"
        )
    family = family or f"pointwise/{name}"
    folders = sorted(path.parent.name for path in (ROOT / SPECS).glob("*/__init__.py"))
    folder, _, stem = family.partition("/")
    if folder not in folders or not re.fullmatch(r"[a-z][a-z0-9_]*", stem):
        raise ValueError(
            f"`family` must be like pointwise/activations, in one of the folders {folders}; "
            f"got {family!r}"
        )
    for spec in sorted((root / SPECS).rglob("*.py")):
        if re.search(rf'"{name}(\.\w+)?\(', spec.read_text(encoding="utf-8")):
            raise ValueError(f"there is an operator {name!r} in {spec.relative_to(root)}")
    files = _files(name, kind, family, root)
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("NAME", name), encoding="utf-8")
    return list(files)


def describe(name: str, root: pathlib.Path = ROOT) -> pathlib.Path:
    """Write the operator's fragment of the changelog, and return its file."""
    path = root / "changes" / f"ops.{name.replace('_', '-')}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"`{name}` was added: EDIT what it computes.\n", encoding="utf-8")
    return path


def main(arguments: Sequence[str]) -> int:
    """Write the skeleton for the command line and print the next steps."""
    parser = argparse.ArgumentParser("new-op")
    parser.add_argument("name", help="such as log_softmax")
    parser.add_argument("--kind", choices=sorted(KINDS), default="pointwise")
    parser.add_argument("--family", help="such as pointwise/activations; default: pointwise/NAME")
    flags = parser.parse_args(arguments)
    try:
        files = [*write(flags.name, flags.kind, family=flags.family), describe(flags.name)]
    except ValueError as error:
        parser.error(str(error))
    for path in files:
        print(path.relative_to(ROOT))
    print(
        "Edit the lines marked EDIT, then: nox -s dev && .venv/bin/pytest packages/ops/tests "
        f"packages/core/tests -k {flags.name}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
