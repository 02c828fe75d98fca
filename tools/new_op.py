"""Write the skeleton of an operator: a spec, and a kernel unless it is made of other operators.

    nox -s new-op -- NAME                     pointwise: one scalar function serves all
    nox -s new-op -- NAME --kind composite    calls of other operators: no kernel
    nox -s new-op -- NAME --kind structured   a kernel of its own

The family that it makes has the operator's name. Its files lie in the folder `pointwise`, of the
specs and of the kernels, unless `--folder` names another. The skeleton builds and passes its tests
as it is, with a formula to replace (marked EDIT). No build file changes, and the tests come from
the spec.
"""

from __future__ import annotations

import argparse
import keyword
import pathlib
import re
import sys
from collections.abc import Sequence

from strands import ROOT

__all__ = ["main", "write"]

SPECS = "packages/ops/src/plait_ops/specs"
KERNELS = "packages/core/cpp"
HEAD = '''"""NAME: EDIT say in one line what the family is."""

import numpy as np

'''
DOC = '''    doc="""
    EDIT what it computes: ``self * self``, elementwise.

    >>> import plait_core as pc
    >>> pc.NAME(pc.tensor([1.0, -2.0])).tolist()
    [1.0, 4.0]
    """,
'''
VJP = """

@NAME.vjp("self")
def _(g, self):
    return 2.0 * self * g  # EDIT: the gradient `g` of the result, times the derivative
"""
POINTWISE = (
    HEAD
    + """from plait_ops.spec import Pointwise

NAME = Pointwise(
    "NAME(Tensor self) -> Tensor",
"""
    + DOC
    + """    dtypes="floating",
    reference=lambda x: np.square(x),  # EDIT: NumPy's word for it; kernels are tested against it
)
"""
    + VJP
)
COMPOSITE = (
    HEAD
    + """from plait_ops.calls import mul
from plait_ops.spec import Composite

NAME = Composite(
    "NAME(Tensor self) -> Tensor",
"""
    + DOC
    + """)


@NAME.decompose
def _(self):
    return mul(self, self)  # EDIT: calls of other operators, which bring derivatives and errors


@NAME.reference
def _(self):
    return np.multiply(self, self)  # EDIT


@NAME.samples
def _(s):
    yield s(s.array(2, 3))
    yield s(s.array(0))
    yield s(s.strided(3, 4))
"""
)
STRUCTURED = (
    HEAD
    + """from plait_ops.spec import Operator
from plait_ops.words import require, result

NAME = Operator(
    "NAME(Tensor self) -> Tensor",
"""
    + DOC
    + """    dtypes="floating",
)


@NAME.shape
def _(self):
    require("self", self.dtype, "floating")
    return result(self.shape, self.dtype)  # EDIT: validate everything here; kernels do not
"""
    + VJP
    + """

@NAME.reference
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
)
SCALAR = """// EDIT: the formula
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T NAME(T x) {
  return x * x;  // EDIT
}

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
KINDS = {
    "pointwise": {
        f"{SPECS}/FOLDER/NAME.py": POINTWISE,
        f"{KERNELS}/FOLDER/NAME.h": SCALAR,
    },
    "composite": {f"{SPECS}/FOLDER/NAME.py": COMPOSITE},
    "structured": {
        f"{SPECS}/FOLDER/NAME.py": STRUCTURED,
        f"{KERNELS}/FOLDER/NAME.cpp": KERNEL,
    },
}


def write(
    name: str, kind: str, root: pathlib.Path = ROOT, folder: str = "pointwise"
) -> list[pathlib.Path]:
    """Write the files of operator ``name`` and return them; ValueError if it can't be."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name) or name[-1] == "_":
        raise ValueError(
            f"`name` must be like log_softmax (forms in place come by themselves), got {name!r}"
        )
    for spec in sorted((root / SPECS).rglob("*.py")):
        if re.search(rf'"{name}(\.\w+)?\(', spec.read_text(encoding="utf-8")):
            raise ValueError(f"there is an operator {name!r} in {spec.relative_to(root)}")
    files = {
        root / path.replace("FOLDER", folder).replace("NAME", name): text
        for path, text in KINDS[kind].items()
    }
    taken = [str(path.relative_to(root)) for path in files if path.exists()]
    if taken:
        raise ValueError(f"{', '.join(taken)} would be overwritten")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("NAME", name), encoding="utf-8")
    return list(files)


def main(arguments: Sequence[str]) -> int:
    """Write what the command line asks for and say what to do next."""
    parser = argparse.ArgumentParser("new-op")
    parser.add_argument("name", help="such as log_softmax")
    parser.add_argument("--kind", choices=sorted(KINDS), default="pointwise")
    folders = sorted(path.parent.name for path in (ROOT / SPECS).glob("*/__init__.py"))
    parser.add_argument("--folder", choices=folders, default="pointwise")
    chosen = parser.parse_args(arguments)
    try:
        files = write(chosen.name, chosen.kind, folder=chosen.folder)
    except ValueError as error:
        parser.error(str(error))
    for path in files:
        print(path.relative_to(ROOT))
    print(
        "Edit the lines marked EDIT, then: nox -s dev && .venv/bin/pytest packages/ops/tests "
        f"packages/core/tests -k {chosen.name}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
