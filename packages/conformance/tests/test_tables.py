"""The kit's declarations of the C ABI are those of the header."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import plait_abi
from plait_conformance import _tables

STRUCTS = {
    "plait_runtime": _tables.RuntimeTable,
    "plait_thread": _tables.Thread,
    "plait_error": _tables.Error,
    "plait_alloc_stats": _tables.Statistics,
    "plait_allocator": _tables.AllocatorTable,
    "plait_executor": _tables.ExecutorTable,
    "plait_device": _tables.DeviceTable,
    "plait_shared_memory": _tables.SharedMemory,
}
IN_C = {"refs": "o.refs", "type": "o.type"}  # of a counted object's first member


def test_fields_lie_where_the_header_has_them(tmp_path: Path) -> None:
    fields = [(struct, field[0]) for struct, kind in STRUCTS.items() for field in kind._fields_]
    lines = [
        f'printf("%zu %zu\\n", offsetof({struct}, {IN_C.get(field, field)}), '
        f"sizeof((({struct} *)0)->{IN_C.get(field, field)}));"
        for struct, field in fields
    ]
    source = tmp_path / "offsets.c"
    text = "#include <plait/abi.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n"
    source.write_text(text + "\n".join(lines) + "\n}\n")
    program = tmp_path / "offsets"
    cc = os.environ.get("CC", "cc").split()
    include = plait_abi.paths()["include"]
    subprocess.run([*cc, "-std=c11", f"-I{include}", str(source), "-o", str(program)], check=True)
    output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    for (struct, field), line in zip(fields, output.splitlines(), strict=True):
        declared = getattr(STRUCTS[struct], field)
        assert line == f"{declared.offset} {declared.size}", f"{struct}.{field}"


def test_the_runtime_is_found() -> None:
    runtime = _tables.runtime()
    n = ctypes.c_int32(-1)
    runtime("device_count", 1, ctypes.byref(n))
    assert n.value == 1
    assert runtime.table.path.decode().endswith("libplait_abi.so")
