"""Compile and link the sources of a bundle to a module of WebAssembly, by Emscripten."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Sequence

from plait_graph._objects import Compiler

__all__ = ["MACHINE", "NM", "WITHOUT", "flags", "link_module"]

MACHINE = "wasm32"
NM = "emnm"
# Exceptions of WebAssembly: those of JavaScript would need a generated function for each signature.
_EXCEPTIONS = "-fwasm-exceptions"
# The offsets that headers assert are those of pointers with 64 bits.
_LAYOUTS = "-DPLAIT_ASSERT(condition, text)="
_INCLUDED = ("-include", "stddef.h")  # Emscripten's sys/random.h lacks it
WITHOUT = frozenset({"-fno-thread-jumps", "-O3"})  # the one is GCC's, the other makes code large
# A module has no files.
_OF_FILES = {"plait_run_open", "plait_run_save"}
_MEMORY = (
    "ALLOW_MEMORY_GROWTH=1",
    "INITIAL_MEMORY=1MB",
    "MAXIMUM_MEMORY=4GB",
    "TOTAL_STACK=256KB",
)


def flags(level: str) -> tuple[str, ...]:
    """Return the flags of every source for a level of instructions."""
    return (_EXCEPTIONS, _LAYOUTS, *_INCLUDED, *(["-msimd128"] if level == "simd128" else []))


def exported(header: str) -> list[str]:
    """Return the functions of plait/run.h that a module exports.

    >>> exported("PLAIT_RUN_API int plait_run_open(x);\\nPLAIT_RUN_API int plait_run_execute(x);")
    ['plait_run_execute']
    """
    functions = re.findall(r"^PLAIT_RUN_API .*?(plait_run_\w+)\(", header, re.MULTILINE)
    return sorted(set(functions) - _OF_FILES)


def link_module(
    compiler: Compiler, objects: Sequence[pathlib.Path], module: pathlib.Path, header: str
) -> None:
    """Write a module that exports the functions of the header, `malloc` and `free`.

    Args:
        compiler: links.
        objects: below its folder.
        module: the file. It is replaced when it is complete.
        header: the text of plait/run.h.
    """
    names = ",".join(f"_{name}" for name in (*exported(header), "malloc", "free"))
    settings = [f"-s{each}" for each in (*_MEMORY, "WASM_BIGINT=1", f"EXPORTED_FUNCTIONS={names}")]
    unfinished = module.with_name(f".{os.getpid()}.{module.stem}.wasm")
    try:
        compiler.run(
            [_EXCEPTIONS, "-Oz", "--no-entry", *settings, *objects, "-o", unfinished.absolute()]
        )
        unfinished.replace(module)
    finally:
        unfinished.unlink(missing_ok=True)
