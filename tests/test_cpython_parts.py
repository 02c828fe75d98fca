"""Private parts of CPython are used in few places: folders `cpython` and files `_cpython.py`."""

from __future__ import annotations

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
PRIVATE = re.compile(
    r"\b_Py(Type|Dict|Frame|Interpreter|ThreadState|Object|Unicode|Long|Code)\w*\(|\bcframe\b"
    r"|\bco_code\w*|^import (dis|opcode)\b|\bget_referrers\b",
    re.MULTILINE,
)


def test_private_parts_of_cpython_stand_together() -> None:
    sources = [
        path
        for folder in ("src", "cpp")
        for suffix in ("*.py", "*.cpp", "*.hpp", "*.h")
        for path in ROOT.glob(f"packages/*/{folder}/**/{suffix}")
        if "sources" not in path.parts  # copies for the wheel
    ]
    fenced = [p for p in sources if p.parent.name == "cpython" or p.name == "_cpython.py"]
    assert len(fenced) == 4 and all(PRIVATE.search(p.read_text("utf-8")) for p in fenced)
    others = {p: PRIVATE.search(p.read_text("utf-8")) for p in sources if p not in fenced}
    assert not {str(p.relative_to(ROOT)): m.group() for p, m in others.items() if m}
