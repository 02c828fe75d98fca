"""The binary layout of the C ABI: every struct's size and field offsets against the committed file.

`python packages/abi/tests/test_layout.py` rewrites `packages/abi/layout.json`; do that only
together with a new PLAIT_ABI_MINOR.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]
COMMITTED = PACKAGE / "layout.json"


def include_dir() -> Path:
    """The headers of the plait-abi that is installed, or of this source tree."""
    source = PACKAGE / "src" / "plait_abi" / "include"
    if source.is_dir():
        return source
    import plait_abi

    return Path(plait_abi.__file__).parent / "include"


def structs(header: str) -> dict[str, list[str]]:
    """Field names of every `typedef struct NAME { ... } NAME;` in the header's text."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    found = {}
    for name, body in re.findall(r"typedef struct (plait_\w+) \{(.*?)\n?\} \1;", text, flags=re.S):
        body = re.sub(r"union \{.*?\} (\w+);", r"int \1;", body, flags=re.S)
        fields: list[str] = []
        for line in body.split(";"):
            line = " ".join(line.split())
            if not line:
                continue
            if pointer := re.search(r"\(\*(\w+)\)", line):
                fields.append(pointer.group(1))
                continue
            fields += [
                re.sub(r"\[.*?\]", "", part).split()[-1].strip("*") for part in line.split(",")
            ]
        found[name] = fields
    return found


def measure() -> dict[str, dict[str, int]]:
    """Compile a C program that prints sizes and offsets, and run it."""
    header = (include_dir() / "plait" / "abi.h").read_text()
    lines = ["#include <plait/abi.h>", "#include <stdio.h>", "int main(void) {"]
    for name, fields in structs(header).items():
        lines.append(f'printf("{name} sizeof %zu\\n", sizeof({name}));')
        lines += [f'printf("{name} {f} %zu\\n", offsetof({name}, {f}));' for f in fields]
    lines += [
        'printf("version major %d\\n", PLAIT_ABI_MAJOR);',
        'printf("version minor %d\\n", PLAIT_ABI_MINOR);',
        "return 0; }",
    ]
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "layout.c"), Path(folder, "layout")
        source.write_text("\n".join(lines))
        cc = os.environ.get("CC", "cc").split()
        flags = ["-std=c11", "-Wall", "-Wextra", "-Wpadded", "-Werror", f"-I{include_dir()}"]
        subprocess.run([*cc, *flags, str(source), "-o", str(program)], check=True)
        out = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    layout: dict[str, dict[str, int]] = {}
    for line in out.splitlines():
        struct, field, number = line.split()
        layout.setdefault(struct, {})[field] = int(number)
    return layout


@pytest.fixture(scope="module")
def layout() -> dict[str, dict[str, int]]:
    return measure()


def test_layout_is_the_committed_one(layout: dict[str, dict[str, int]]) -> None:
    committed = json.loads(COMMITTED.read_text())
    changed = {k for k in committed.keys() | layout.keys() if committed.get(k) != layout.get(k)}
    assert not changed, (
        f"layout changed without a version bump and a new layout.json: {sorted(changed)}"
    )


def test_every_struct_is_measured(layout: dict[str, dict[str, int]]) -> None:
    assert {
        "plait_tensor",
        "plait_storage",
        "plait_value",
        "plait_runtime",
        "plait_engine",
    } <= layout.keys()
    assert layout["plait_tensor"]["dl"] == 16
    assert layout["plait_value"] == {"sizeof": 16, "tag": 0, "n": 4, "u": 8}
    assert len(layout["plait_runtime"]) > 35


def test_a_moved_field_is_noticed() -> None:
    text = "typedef struct plait_x {\n  int a, b[2];\n  void (*f)(int);\n} plait_x;"
    assert structs(text) == {"plait_x": ["a", "b", "f"]}


if __name__ == "__main__":
    COMMITTED.write_text(json.dumps(measure(), indent=1) + "\n")
    sys.stdout.write(f"wrote {COMMITTED}\n")
