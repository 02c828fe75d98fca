"""A Sphinx extension: the reference names everything as programs that import `plait` do.

Docstrings belong to packages that install alone: their examples import `plait_core as pc`, and they
name `plait_nn.functional.conv2d`. The site shows `plait` and `plait.nn.functional.conv2d`.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["PREFIXES", "public", "rewritten", "setup"]

# how programs call what a package defines
PREFIXES = {
    "plait_core": "",
    "plait_autograd": "autograd.",
    "plait_data": "utils.data.",
    "plait_distributed": "distributed.",
    "plait_func": "func.",
    "plait_graph": "graph.",
    "plait_multiprocessing": "multiprocessing.",
    "plait_nn": "nn.",
    "plait_onnx": "onnx.",
    "plait_optim": "optim.",
    "plait_profiler": "profiler.",
    "plait_ray": "ray.",
}
# modules that the umbrella package has not
OWN = ("plait_core.overrides",)
_NAME = re.compile(r"\b(" + "|".join(PREFIXES) + r")\b((?:\.[A-Za-z_]\w*)*)")
_IMPORT = re.compile(r"^(?P<prompt>\s*(?:>>>|\.\.\.) )import (?P<names>.*\bplait_.*)$")


def public(name: str) -> str:
    """Return the name in `plait`: ``plait.nn.Linear`` of ``plait_nn.Linear``."""
    package, _, rest = name.partition(".")
    if package not in PREFIXES or name.startswith(OWN) or re.search(r"\._", name):
        return name
    return f"plait.{PREFIXES[package]}{rest}".rstrip(".")


def _import(match: re.Match[str]) -> list[str]:
    """Return the lines for ``import plait_core as pc, plait_nn as nn``."""
    plain, others = [], []
    for item in match["names"].split(","):
        name, _, short = item.strip().partition(" as ")
        full = public(name)
        if full in ("plait", name) and (short == "pc" or not short):
            plain.append(full)
        elif short == full.rpartition(".")[2]:
            others.append(f"from {full.rpartition('.')[0]} import {short}")
        else:
            plain.append(full + (f" as {short}" if short else ""))
    lines = [f"import {', '.join(plain)}"] if plain else []
    return [match["prompt"] + line for line in (*lines, *others)]


def rewritten(lines: list[str]) -> list[str]:
    """Return the lines of a text with the names of `plait`."""
    results = []
    for line in lines:
        match = _IMPORT.match(line)
        if match:
            results += _import(match)
            continue
        line = (
            re.sub(r"\bpc\.(?=[A-Za-z_])", "plait.", line)
            if ">>>" in line or "..." in line
            else line
        )
        results.append(_NAME.sub(lambda name: public(name[0]), line))
    return results


def _of_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = rewritten(lines)


def _of_page(app: Any, docname: str, content: list[str]) -> None:
    if docname.startswith("reference/operators/"):
        content[0] = "\n".join(rewritten(content[0].split("\n")))


def setup(app: Any) -> dict[str, Any]:
    """Rewrite docstrings, before their sections are read, and the pages of operators."""
    app.connect("autodoc-process-docstring", _of_docstring, priority=100)
    app.connect("source-read", _of_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
