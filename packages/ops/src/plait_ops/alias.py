"""Aliases: operators that call another one, under the name of NumPy or of a namespace."""

from __future__ import annotations

import linecache
from typing import Any

from plait_ops.spec import Composite, Operator

__all__ = ["alias", "under_another_name"]


def under_another_name(text: str, name: str, of: Operator) -> str:
    """Return the documentation of an alias: `text`, and the examples of `of` with the new name."""
    examples = [part for part in of.summary.split("\n\n") if part.lstrip().startswith(">>>")]
    return "\n\n".join([text, *examples]).replace(f".{of.schema.base}(", f".{name}(")


def _function(name: str, of: Operator) -> Any:
    """Return the Python function that calls `of`; `inspect` finds its source."""
    names = [argument.name for argument in of.schema.arguments]
    keywords = [
        f"{argument.name}={argument.name}" if argument.keyword_only else argument.name
        for argument in of.schema.arguments
    ]
    source = f"def _({', '.join(names)}):\n    return target({', '.join(keywords)})\n"
    file = f"<{name}, another name of {of.name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope: dict[str, Any] = {"target": of}
    exec(compile(source, file, "exec"), scope)
    return scope["_"]


def alias(name: str, of: Operator, method: bool = True) -> Composite:
    """Define `name` as an alias of the operator `of`: same arguments, forms and results."""
    base = of.schema.base
    public = name.partition(".")[0]
    if public.startswith("special_"):
        public = f"special.{public.removeprefix('special_')}"
    doc = of.summary.replace(f"pc.{base}(", f"pc.{public}(")
    made = Composite(
        of.schema.text.replace(of.schema.name, name, 1),
        doc=f"Another name of `{of.schema.base}`:\n\n{doc}",
        inplace=of.inplace and method,
        out=of.out,
        dtypes=of.dtypes,
        method=method and of.method,
    )
    made.decompose(_function(name, of))
    return made
