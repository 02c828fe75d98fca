"""Reference pages: one Markdown page a family, and an index.

A page links the family's files (definition, test data, kernels) if the repository that it is
written in has them; pages go to `docs/reference/operators`.
"""

from __future__ import annotations

import inspect
import pathlib
import re
import textwrap
from collections.abc import Sequence

from plait_ops.emit.register import flags
from plait_ops.spec import NAMESPACES, Operator

__all__ = ["emit", "public_name"]

COSTS = """The *cost* of a call is what a profile shows of it: floating-point operations, bytes
read and bytes written. If an operator has a function for its cost, the page shows the body of this
function; it returns the operations, or all three numbers. `nbytes` and other functions that it
calls are those of `plait_ops.costs`. Without such a function a pointwise operator counts one
operation for each element that it writes, and other operators count none. If no bytes are
returned, the tensors among the arguments count as read and the results as written."""


def _markdown(doc: str) -> str:
    """Return a docstring with its examples fenced: Markdown reads ``>>>`` as a quotation."""
    blocks = doc.strip().split("\n\n")
    fenced = (f"```pycon\n{text}\n```" if text.startswith(">>>") else text for text in blocks)
    return re.sub(r"(?<!\n)\n(Shapes?|Dtypes|Raises): ", r"\n\n\1: ", "\n\n".join(fenced))


def public_name(operator: Operator) -> str:
    """Return the name as users write it: ``linalg.solve``."""
    space, _, rest = operator.name.partition("_")
    return f"{space}.{rest}" if space in NAMESPACES and rest else operator.name


def _calls(operator: Operator) -> str:
    """Return how it is called, in place too: ``plait.exp``, ``Tensor.exp``, ``Tensor.exp_``.

    If the operator has no variant, its example shows whether it is a function of
    `plait.nn.functional`.
    """
    space, _, rest = operator.schema.base.partition("_")
    base = f"{space}.{rest}" if space in NAMESPACES and rest else operator.schema.base
    places = {"function": f"plait.{base}", "method": f"Tensor.{base}"}
    calls = [place for variant, place in places.items() if variant in operator.variants]
    if operator.inplace:
        places = {"function_": f"plait.{base}_", "method": f"Tensor.{base}_"}
        calls += [place for variant, place in places.items() if variant in operator.variants]
    if not calls:
        match = re.search(r"\bF\.(\w+)\(", operator.doc)
        calls = [f"plait.nn.functional.{match[1]}"] if match else []
    return ", ".join(f"`{call}`" for call in calls or [f'plait_abi.operator("{operator.name}")'])


def _entry(operator: Operator) -> str:
    marks = [f"called as {_calls(operator)}", f"dtypes: {operator.dtypes}"]
    if "PLAIT_OP_OUT" in flags(operator):
        marks.append("takes `out=`")
    if operator.differentiable:
        marks.append(
            "differentiable in " + ", ".join(f"`{name}`" for name in operator.differentiable)
        )
    elif operator.composite:
        marks.append("made of other operators")
    if operator.decompose_function is not None and not operator.composite:
        marks.append("other operators compute it on a device that has no kernel for it")
    text = f"## {public_name(operator)}\n\n```text\n{operator.schema.text}\n```\n\n"
    text += f"{_markdown(operator.doc)}\n\n*{'; '.join(marks)}.*\n"
    if operator.kernel:
        text += f"\nFor kernels: {operator.kernel}\n"
    if operator.cost_function is not None:
        body = re.split(r"\)(?: -> \w+)?:\n", inspect.getsource(operator.cost_function), maxsplit=1)
        text += f"\nCost:\n\n```python\n{textwrap.dedent(body[1])}```\n"
    return text


def _files(family: str, root: pathlib.Path) -> str:
    """Return a line with links to the family's files, relative to its page, or ""."""
    ops, core = "packages/ops/src/plait_ops", "packages/core/cpp"
    files = {"definition": f"{ops}/specs/{family}.py", "test data": f"{ops}/samples/{family}.py"}
    kernels = sorted(
        path
        for pattern in (f"{core}/{family}.*", f"{core}/{family}_*")
        for path in root.glob(pattern)
        if path.suffix in (".h", ".cpp")
    )
    files |= {f"kernels: {path.name}": path.relative_to(root).as_posix() for path in kernels}
    up = "../" * len(pathlib.PurePath("docs/reference/operators", family).parent.parts)
    links = [f"[{text}]({up}{path})" for text, path in files.items() if (root / path).exists()]
    return f"Files: {', '.join(links)}.\n\n" if links else ""


def emit(operators: Sequence[Operator], root: pathlib.Path | None = None) -> dict[str, str]:
    """Return the pages by name.

    Args:
        root: the repository whose files are linked; default: the working directory.
    """
    root = root or pathlib.Path.cwd()
    families: dict[str, list[Operator]] = {}
    for operator in operators:
        families.setdefault(operator.family, []).append(operator)
    files = {}
    rows = []
    for family, members in sorted(families.items()):
        title = family.rpartition("/")[2].replace("_", " ").capitalize()
        entries = "\n".join(_entry(operator) for operator in members)
        files[f"{family}.md"] = f"# {title}\n\n{_files(family, root)}{entries}"
        names = ", ".join(
            f"`{public_name(operator)}`" for operator in members if not operator.internal
        )
        rows.append(f"| [{title}]({family}.md) | {names} |")
    toc = "\n".join([*sorted(families), "derivatives", "facts", "primitives", "words"])
    files["index.md"] = (
        "# Operators\n\n"
        "[A table](derivatives.md) shows where the derivatives of each operator come from,\n"
        "[another one](facts.md) which rules, costs and kernels there are, and\n"
        "[a list](primitives.md) which kernels a device needs.\n"
        "[Words](words.md) are the functions with which shape functions and derivatives are\n"
        "written.\n\n"
        f"{COSTS}\n\n"
        "| Family | Operators |\n| --- | --- |\n"
        + "\n".join(rows)
        + f"\n\n```{{toctree}}\n:hidden:\n\n{toc}\n```\n"
    )
    return files
