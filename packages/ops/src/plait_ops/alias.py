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


def alias(
    name: str, of: Operator, variants: str = "function", inplace: bool | None = None
) -> Composite:
    """Define `name` as another name of the operator `of`: arguments and results are its. It has the
    form in place where `inplace` says so; default: if it is a method and `of` has the form.
    """
    base = of.schema.base
    public = name.partition(".")[0]
    if public.startswith("special_"):
        public = f"special.{public.removeprefix('special_')}"
    doc = of.summary.replace(f"pc.{base}(", f"pc.{public}(")
    operator = Composite(
        of.schema.text.replace(of.schema.name, name, 1),
        doc=f"Another name of `{of.schema.base}`. {doc}",
        inplace=of.inplace and "method" in variants.split() if inplace is None else inplace,
        dtypes=of.dtypes,
        variants=variants,
        zero_preserving=of.zero_preserving,
    )
    operator.meanings = of.meanings
    operator.sharding = of.sharding
    operator.decompose(_function(name, of))
    return operator
