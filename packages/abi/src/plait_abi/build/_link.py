"""Link objects to shared libraries if something changed since the last time."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from collections.abc import Sequence

from plait_abi.build._commands import run
from plait_abi.build._errors import BuildError


def write_exports(folder: pathlib.Path, name: str, symbols: Sequence[str]) -> pathlib.Path:
    """Write the linker's version script that hides every symbol but ``symbols``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.exports"
    names = " ".join(f"{symbol};" for symbol in symbols)
    text = f"{{ global: {names} local: *; }};\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


def link(
    command: Sequence[str],
    objects: Sequence[pathlib.Path],
    inputs: Sequence[pathlib.Path],
    output: pathlib.Path,
    record: pathlib.Path,
) -> bool:
    """Run ``command -o output`` unless ``output`` is current; return whether it ran.

    The output is replaced in one step, so a process that has the old file mapped keeps it.
    """
    key = hashlib.sha256(repr(list(command)).encode())
    for path in [*objects, *inputs]:
        status = path.stat()
        key.update(f"{path} {status.st_size} {status.st_mtime_ns}".encode())
    now = key.hexdigest()
    if output.exists() and _read_record(record) == [now, *_stamp(output)]:
        return False
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_name(f".{output.name}.{os.getpid()}")
    code, text = run([*command, "-o", str(unfinished)])
    if code != 0:
        unfinished.unlink(missing_ok=True)
        raise BuildError(f"linking {output.name} failed:\n{text.rstrip()}")
    unfinished.replace(output)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps([now, *_stamp(output)]))
    return True


def _stamp(path: pathlib.Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _read_record(record: pathlib.Path) -> list[object] | None:
    try:
        entries: list[object] = json.loads(record.read_text())
    except (OSError, ValueError):
        return None
    return entries
