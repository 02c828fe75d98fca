"""words.md: the reference of the language that functions of specs are written in."""

from __future__ import annotations

import inspect
import sys

from plait_ops import fft_words, linear_words
from plait_ops.lower.cpp import SPELLINGS
from plait_ops.lower.expressions import BUILTINS, FIELDS
from plait_ops.value_types import Kind
from plait_ops.words import WORDS, Word

__all__ = ["emit"]

MODULES = (fft_words, linear_words)  # imported for the words that they declare
HEAD = """# Words of the spec language

Shape functions, derivatives, decompositions and costs of operators are Python functions that are
translated to C++. They have arithmetic, comparisons, conditions and loops. They may call operators
(except in shape functions and costs), the functions of Python below, and *words*: functions that
exist under one name in Python and in C++. Tests compare the two on generated arguments.

A word marked *on the call* fails, makes results or calls operators for the current call of the
operator. In C++ its first argument is the `Scope`. Costs cannot call such words. A parameter with
`?` may be None.
"""


def _default(word: Word, name: str) -> str:
    default = inspect.signature(word.function).parameters[name].default
    return "" if default is inspect.Parameter.empty else f" = {default!r}"


def _entry(word: Word) -> str:
    parameters = ", ".join(
        f"{each.name}: {each.type}{_default(word, each.name)}" for each in word.parameters
    )
    signature = f"{word.name}({parameters}) -> {word.result}"
    mark = " *On the call.*" if word.on_call else ""
    doc = inspect.cleandoc(word.function.__doc__ or "")
    return f"### {word.name}\n\n```text\n{signature}\n```\n\n{doc}{mark}\n"


def _types() -> str:
    """Return the table of types."""
    cpp = {kind: f"`{text}`" for kind, text in SPELLINGS.items()}
    rows = "".join(f"| `{kind.text}` | {kind.meaning} | {cpp.get(kind, '')} |\n" for kind in Kind)
    return f"## Types\n\n| Type | Values | In C++ |\n| --- | --- | --- |\n{rows}"


def _python() -> str:
    """Return the section on Python's own functions."""
    lines = [f"- {inspect.cleandoc(function.__doc__ or '')}" for function in BUILTINS.values()]
    fields = ", ".join(f"`.{name}`" for name in FIELDS)
    return (
        "## From Python\n\n"
        + "\n".join(lines)
        + "\n- ``range``, ``reversed``, ``enumerate`` and ``zip`` in loops.\n"
        f"- ``append``, ``insert`` and ``pop`` of lists.\n- Of tensors: {fields}.\n"
    )


def emit() -> dict[str, str]:
    """Return the page by name."""
    sections: dict[str, list[str]] = {}
    for word in WORDS.values():
        doc = sys.modules[word.function.__module__].__doc__ or ""
        sentence = " ".join(doc.split()).partition(". ")[0].rstrip(".")
        title = sentence.partition(":")[0].partition(";")[0]
        sections.setdefault(title, []).append(_entry(word))
    text = "\n".join(f"## {title}\n\n" + "\n".join(each) for title, each in sections.items())
    return {"words.md": f"{HEAD}\n{_types()}\n{_python()}\n{text}"}
