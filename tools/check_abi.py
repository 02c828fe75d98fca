"""Fail where the header of the C ABI breaks what was compiled against an older one.

    python tools/check_abi.py
    python tools/check_abi.py --store

Each folder of ``packages/abi/tests/headers`` holds the header of one version. Every struct of it
must begin with the same fields at the same offsets in today's header, every enumerator must have
its value, and the frozen structs must not grow. `docs/design/0019` has the rules. ``--store``
stores today's header as that of its version, if it breaks none that is stored; once that version
is released, it stays as it is. A header stands for the older ones that it does not break: once a
later version is released, its folder can go.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

from package_graph import ROOT

__all__ = [
    "FROZEN",
    "Layout",
    "breaks",
    "check",
    "compare",
    "layout",
    "main",
    "store",
    "structs",
    "version",
]

INCLUDE = ROOT / "packages" / "abi" / "src" / "plait_abi" / "include"
STORED = ROOT / "packages" / "abi" / "tests" / "headers"
FROZEN = ("plait_header", "plait_object", "plait_value", "plait_site")
"""What is passed by value, or lies in arrays without a stride: it never grows."""
NAMED: dict[tuple[str, str], str] = {}
"""Reserved fields of stored headers, always 0 before, with the names that they have got."""

_STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)\n?\} \1;", re.DOTALL)
_VERSION = re.compile(r"#define PLAIT_ABI_M(?:AJOR|INOR) (\d+)")
_ENUMERATOR = re.compile(r"\b(PLAIT_[A-Z0-9_]+)\b(?=\s*(?:=|,|\}))")


@dataclasses.dataclass(frozen=True)
class Layout:
    """What a compiler says of a header: offset and size of each field, size of each struct, value
    of each enumerator.
    """

    fields: dict[tuple[str, str], tuple[int, int]]
    sizes: dict[str, int]
    values: dict[str, int]


def _declarations(header: pathlib.Path) -> str:
    """Return the text of a header without comments and directives."""
    text = re.sub(r"/\*.*?\*/", " ", header.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"^[ \t]*#.*$", "", text, flags=re.MULTILINE)


def _field_names(body: str) -> Iterator[str]:
    """Yield the names that the declarations of a struct declare; a union is one field."""
    body = re.sub(r"union \{.*?\}", "union", body, flags=re.DOTALL)
    for declaration in body.split(";"):
        if not declaration.strip():
            continue
        function = re.search(r"\(\*(\w+)\)\s*\(", declaration)
        if function:
            yield function[1]
            continue
        for declarator in declaration.split(","):
            yield re.findall(r"\w+", re.sub(r"\[.*?\]", "", declarator))[-1]


def structs(header: pathlib.Path) -> dict[str, list[str]]:
    """Return the structs of a header and the names of their fields, in order."""
    text = _declarations(header)
    return {name: list(_field_names(body)) for name, body in _STRUCT.findall(text)}


def version(include: pathlib.Path = INCLUDE) -> str:
    """Return the version of ``include``/plait/abi.h, as ``0.4``."""
    header = include / "plait" / "abi.h"
    return ".".join(_VERSION.findall(header.read_text(encoding="utf-8")))


def store(stored: pathlib.Path = STORED, include: pathlib.Path = INCLUDE) -> pathlib.Path:
    """Store today's header and the one that it includes; return their folder."""
    folder = stored / version(include)
    (folder / "plait").mkdir(parents=True, exist_ok=True)
    for name in ("abi.h", "dlpack.h"):
        shutil.copyfile(include / "plait" / name, folder / "plait" / name)
    return folder


def _enumerators(header: pathlib.Path) -> list[str]:
    bodies = re.findall(r"enum(?:\s+\w+)?\s*\{(.*?\})", _declarations(header), re.DOTALL)
    return sorted({name for body in bodies for name in _ENUMERATOR.findall(body)})


def layout(include: pathlib.Path) -> Layout:
    """Compile a program that says where the fields of ``include``/plait/abi.h lie, and run it.

    Implicit padding is an error: compilers differ in it.
    """
    header = include / "plait" / "abi.h"
    result = structs(header)
    lines = [
        f'printf("field {struct} {field} %zu %zu\\n", offsetof({struct}, {field}), '
        f"sizeof((({struct} *)0)->{field}));"
        for struct, fields in result.items()
        for field in fields
    ]
    lines += [f'printf("size {struct} %zu\\n", sizeof({struct}));' for struct in result]
    lines += [
        f'printf("value {name} %lld\\n", (long long){name});' for name in _enumerators(header)
    ]
    source = "\n".join(
        ["#include <plait/abi.h>", "#include <stdio.h>", "int main(void) {", *lines, "}"]
    )
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "layout"
        file = program.with_suffix(".c")
        file.write_text(source, encoding="utf-8")
        compiler = os.environ.get("CC", "cc").split()
        flags = ["-std=c11", "-Wall", "-Wextra", "-Wpadded", "-Werror", f"-I{include}"]
        command = [*compiler, *flags, str(file), "-o", str(program)]
        subprocess.run(command, check=True)
        text = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    fields, sizes, values = {}, {}, {}
    for line in text.splitlines():
        kind, *words = line.split()
        if kind == "field":
            fields[words[0], words[1]] = (int(words[2]), int(words[3]))
        elif kind == "size":
            sizes[words[0]] = int(words[1])
        else:
            values[words[0]] = int(words[1])
    return Layout(fields, sizes, values)


def compare(old: Layout, new: Layout) -> Iterator[str]:
    """Yield a line for each thing in ``new`` that would break what was compiled against ``old``."""
    old_fields = {(s, NAMED.get((s, f), f)): where for (s, f), where in old.fields.items()}
    for (struct, field), where in old_fields.items():
        result = new.fields.get((struct, field))
        if result is None:
            yield f"{struct}.{field} is missing"
        elif result != where:
            yield (
                f"{struct}.{field} was at {where[0]} with {where[1]} bytes, and is at {result[0]} "
                f"with {result[1]}"
            )
    for (struct, field), (offset, _) in new.fields.items():
        if (struct, field) in old_fields or struct not in old.sizes:
            continue
        if offset < old.sizes[struct]:
            yield f"{struct}.{field} is new and stands before the old end of the struct"
        elif struct in FROZEN:
            yield f"{struct}.{field} is new, and the struct is frozen"
    for name, value in old.values.items():
        if new.values.get(name) != value:
            yield f"{name} was {value} and is {new.values.get(name, 'gone')}"


def breaks(stored: pathlib.Path = STORED, include: pathlib.Path = INCLUDE) -> list[str]:
    """Return one line for every break with a stored header, with the version of that header."""
    today = layout(include)
    versions = sorted(folder for folder in stored.iterdir() if folder.is_dir())
    return [
        f"{folder.name}: {line}" for folder in versions for line in compare(layout(folder), today)
    ]


def check(stored: pathlib.Path = STORED, include: pathlib.Path = INCLUDE) -> list[str]:
    """Return the breaks with stored headers, and a line if today's version is not stored."""
    now = version(include)
    absent = [] if (stored / now).is_dir() else [f"{now}: no header of this version is stored; "]
    return [*breaks(stored, include), *(line + "tools/check_abi.py --store" for line in absent)]


def main(arguments: Sequence[str], stored: pathlib.Path = STORED) -> int:
    """Print what breaks; the exit status is 1 if anything does."""
    parser = argparse.ArgumentParser("tools/check_abi.py")
    parser.add_argument("--store", action="store_true", help="store today's header")
    if parser.parse_args(arguments).store and not breaks(stored):
        print(store(stored))
    broken = check(stored)
    print("\n".join(broken))
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
