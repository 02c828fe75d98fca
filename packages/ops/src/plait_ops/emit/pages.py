"""Reference pages of operators: one for each purpose with a table, and one for each family.

A page begins with a table of its operators. What only implementers need, the schema, the cost and
the family's files in the repository, is folded at the end of an entry. Parts of other operators,
which programs do not call, are on a page of their own.
"""

from __future__ import annotations

import inspect
import pathlib
import re
import textwrap
from collections.abc import Sequence

from plait_ops import glossary
from plait_ops.emit.stubs import python_signature
from plait_ops.spec import NAMESPACES, Operator

__all__ = ["emit", "public_name"]

# the titles of the pages of the folders of specs, in the order of the index
PURPOSES = {
    "creation": "Creating tensors",
    "views": "Shapes and views",
    "joining": "Joining and repeating",
    "indexing": "Indexing",
    "pointwise": "Pointwise mathematics",
    "reduction": "Reductions",
    "sorting": "Sorting and searching",
    "linalg": "Linear algebra",
    "fft": "Fourier transforms",
    "random": "Random numbers",
    "convolution": "Convolution",
    "pooling": "Pooling",
    "normalization": "Normalization and softmax",
    "attention": "Attention",
    "recurrent": "Recurrent layers",
    "loss": "Losses",
    "vision": "Vision",
    "aliases": "Other names",
}

COSTS = """The *cost* of a call is what a profile shows of it: floating-point operations, bytes
read and bytes written. If an operator has a function for its cost, the page shows the body of this
function; it returns the operations, or all three numbers. `nbytes` and other functions that it
calls are those of `plait_ops.costs`. Without such a function a pointwise operator counts one
operation for each element that it writes, and other operators count none. If no bytes are
returned, the tensors among the arguments count as read and the results as written."""


def _folded(title: str, text: str) -> str:
    """Return text that a reader opens with a click."""
    return f"<details><summary>{title}</summary>\n\n{text.strip()}\n\n</details>\n"


def _markdown(doc: str) -> str:
    """Return a docstring with its examples fenced: Markdown reads ``>>>`` as a quotation. Arguments
    are a list.
    """
    blocks = doc.strip().split("\n\n")
    results = []
    for text in blocks:
        if text.startswith(">>>"):
            text = f"```pycon\n{text}\n```"
        elif text.startswith(("Args:\n", "Returns:\n")):
            head, _, rest = text.partition(":\n")
            entries = re.sub(r"^    (\w+): ", r"- `\1`: ", rest, flags=re.MULTILINE)
            title = {"Args": "**Arguments**", "Returns": "**Returns**"}[head]
            text = f"{title}\n\n{textwrap.dedent(entries)}"
        results.append(text)
    return re.sub(r"(?<!\n)\n(Shapes?|Dtypes|Raises): ", r"\n\n\1: ", "\n\n".join(results))


def _summary(operator: Operator) -> str:
    """Return the first sentence of the documentation, for a row of a table."""
    paragraph = " ".join(operator.doc.partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[.:]) (?=[A-Z`])", paragraph, maxsplit=1)[0]
    return sentence.rstrip(".:").replace("|", "\\|") + "."


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


def _signatures(operator: Operator) -> str:
    """Return a line of Python for the operator and each of its overloads."""
    call = re.findall(r"`([^`]+)`", _calls(operator))[0]
    each_on_its_own = (operator, *operator.overloads)
    return "\n".join(python_signature(each, call) for each in each_on_its_own)


def _facts(operator: Operator) -> str:
    marks = [f"called as {_calls(operator)}"]
    if operator.differentiable:
        marks.append(
            "differentiable in "
            + ", ".join(
                f"`{glossary.shown_name(operator.schema.argument(name))}`"
                for name in operator.differentiable
            )
        )
    return f"*{'; '.join(marks)}.*"


def _implementation(operator: Operator) -> str:
    """Return what implementers of kernels and tools need of an operator."""
    parts = [f"Schema:\n\n```text\n{operator.schema.text}\n```\n\nDtypes: {operator.dtypes}."]
    if operator.composite:
        parts.append("It is made of other operators.")
    elif operator.decompose_function is not None:
        parts.append("Other operators compute it on a device that has no kernel for it.")
    if operator.kernel:
        parts.append(f"For kernels: {operator.kernel}")
    if operator.cost_function is not None:
        body = re.split(r"\)(?: -> \w+)?:\n", inspect.getsource(operator.cost_function), maxsplit=1)
        parts.append(f"Cost:\n\n```python\n{textwrap.dedent(body[1])}```")
    return "\n\n".join(parts)


def _entry(operator: Operator) -> str:
    name = public_name(operator)
    text = f"(operator-{name})=\n## {name}\n\n"
    if operator.internal:
        return text + f"{_markdown(operator.doc)}\n\n{_implementation(operator)}\n"
    text += f"```python\n{_signatures(operator)}\n```\n\n{_facts(operator)}\n\n"
    text += f"{_markdown(operator.doc)}\n\n"
    for overload in operator.overloads:
        _, _, rest = overload.text.partition("\n\n")
        if rest:
            text += f"{glossary.call_text(overload.schema)}:\n\n{_markdown(rest)}\n\n"
    details = "\n\n".join(_implementation(each) for each in (operator, *operator.overloads))
    return text + _folded("For implementers", details)


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
    return _folded("Files", f"{', '.join(links)}.") if links else ""


def _table(operators: Sequence[Operator]) -> str:
    """Return a table of operators with links to their entries."""
    rows = [
        f"| [`{public_name(each)}`](#operator-{public_name(each)}) | {_summary(each)} |"
        for each in operators
    ]
    return "\n".join(["| Name | What it does |", "| --- | --- |", *rows])


def _tree(pages: Sequence[str]) -> str:
    lines = "\n".join(pages)
    return f"```{{toctree}}\n:hidden:\n\n{lines}\n```\n"


def _title(family: str) -> str:
    return family.rpartition("/")[2].replace("_", " ").capitalize()


def _index(purposes: dict[str, list[str]], shown: dict[str, list[Operator]]) -> str:
    rows = []
    for purpose, families in purposes.items():
        members = [each for family in families for each in shown[family]]
        names = ", ".join(f"`{public_name(each)}`" for each in members)
        rows.append(f"| [{PURPOSES.get(purpose, _title(purpose))}]({purpose}.md) | {names} |")
    tables = (
        "[A table](derivatives.md) shows where the derivatives of each operator come from,\n"
        "[another one](facts.md) which rules, costs and kernels there are, and\n"
        "[a list](primitives.md) which kernels a device needs.\n"
        "[Words](words.md) are the functions with which shape functions and derivatives are\n"
        "written, and [parts](parts.md) the operators that only other operators call.\n\n"
    )
    return (
        "# Operators\n\n"
        "An operator is a function of `plait`, a method of `Tensor`, or both. Functions with "
        "several tensors accept numbers for one of them where the signature says so.\n\n"
        "| Purpose | Operators |\n| --- | --- |\n"
        + "\n".join(rows)
        + "\n\n"
        + _folded("For implementers", tables + COSTS)
        + "\n"
        + _tree([*purposes, "derivatives", "facts", "primitives", "words", "parts"])
    )


def emit(operators: Sequence[Operator], root: pathlib.Path | None = None) -> dict[str, str]:
    """Return the pages by name.

    Args:
        root: the repository whose files are linked; default: the working directory.
    """
    root = root or pathlib.Path.cwd()
    shown: dict[str, list[Operator]] = {}
    parts = []
    for operator in operators:
        members = shown.setdefault(operator.family, [])
        if operator.internal:
            parts.append(operator)
        elif not operator.schema.overload or operator not in _base(operator, operators):
            members.append(operator)
    files = {}
    purposes: dict[str, list[str]] = {}
    for family, members in sorted(shown.items()):
        purposes.setdefault(family.partition("/")[0], []).append(family)
        entries = "\n".join(_entry(operator) for operator in members)
        page = f"{_table(members)}\n\n{entries}\n" if members else "Parts of other operators.\n\n"
        files[f"{family}.md"] = f"# {_title(family)}\n\n{page}{_files(family, root)}"
    order = [*PURPOSES, *purposes]
    purposes = {name: purposes[name] for name in sorted(purposes, key=order.index)}
    for purpose, families in purposes.items():
        if families == [purpose]:  # a family without a folder
            continue
        sections = [
            f"## [{_title(family)}]({family}.md)\n\n{_table(shown[family])}"
            for family in families
            if shown[family]
        ]
        title = PURPOSES.get(purpose, _title(purpose))
        text = "\n\n".join([f"# {title}", *sections, _tree(families)])
        files[f"{purpose}.md"] = text
    files["index.md"] = _index(purposes, shown)
    text = "These operators are called by others, in derivatives and decompositions.\n\n"
    entries = "\n".join(_entry(operator) for operator in parts)
    files["parts.md"] = f"# Parts of operators\n\n{text}{entries}"
    return files


def _base(overload: Operator, operators: Sequence[Operator]) -> list[Operator]:
    """Return the overloads of the operator that this one is an overload of; none if it has none."""
    base = next((each for each in operators if each.name == overload.schema.base), None)
    return base.overloads if base else []
