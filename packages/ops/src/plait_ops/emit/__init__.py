"""The emitters: from the specs to C++, JSON, stubs and pages. There is a module for each, run by
`python -m plait_ops.emit`.
"""

from __future__ import annotations

from plait_ops.emit import (
    derivatives,
    facts,
    functions,
    header,
    kernels,
    ops_json,
    pages,
    primitives,
    register,
    stubs,
    words_page,
)

__all__ = [
    "derivatives",
    "facts",
    "functions",
    "header",
    "kernels",
    "ops_json",
    "pages",
    "primitives",
    "register",
    "stubs",
    "words_page",
]
