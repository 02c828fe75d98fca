"""Compile sources to objects with the user's compiler, and link them to one small library."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shlex
import subprocess
import threading
from collections.abc import Iterable, Sequence

__all__ = ["WHOLE_PROGRAM", "Compiler", "Job", "link"]

_COMMON = ("-std=c++17", "-g0", "-DNDEBUG", "-w")
_HIDDEN = ("-fvisibility=hidden", "-fvisibility-inlines-hidden")
_SECTIONS = ("-ffunction-sections", "-fdata-sections")
_ELF = ("-fPIC", "-pthread", "-fno-semantic-interposition")
# Optimization by the linker, of sources whose jobs ask for it.
WHOLE_PROGRAM = "-flto=auto"
# Relocations of a few bytes each; libraries of GNU's C library say that they need its version 2.36.
_PACKED_RELOCATIONS = "-Wl,-z,pack-relative-relocs"


@dataclasses.dataclass(frozen=True)
class Job:
    """A source and the flags of its own. Relative paths are below the compiler's folder."""

    source: pathlib.Path
    flags: tuple[str, ...]


class Compiler:
    """A command that compiles C++, and the folder that gets its objects.

    Args:
        command: of the compiler.
        folder: absolute.
        flags: of every source, for the kind of objects.
        nm: the program that lists the names of objects; by default the compiler says which.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: pathlib.Path,
        flags: Sequence[str] = _ELF,
        nm: str | None = None,
    ) -> None:
        self.command = list(command)
        self.folder = folder
        self._flags = (*_COMMON, *_HIDDEN, *_SECTIONS, *flags)
        self._nm = nm
        self._n = 0
        self._links: dict[str, bool] = {}
        self._lock = threading.Lock()

    def compile(self, jobs: Iterable[Job]) -> list[pathlib.Path]:
        """Return the objects of the sources, compiled by all processors."""
        numbered = []
        for job in jobs:
            numbered.append((job, pathlib.Path(f"{self._n}.{job.source.stem}.o")))
            self._n += 1
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            tasks = [pool.submit(self._object, job, target) for job, target in numbered]
            try:
                return [task.result() for task in tasks]
            finally:
                pool.shutdown(cancel_futures=True)

    def _object(self, job: Job, target: pathlib.Path) -> pathlib.Path:
        own = [f for f in job.flags if f != WHOLE_PROGRAM or self.links_with(f)]
        self.run([*self._flags, *own, "-c", job.source, "-o", target])
        return target

    def links_with(self, flag: str) -> bool:
        """Return whether the compiler compiles and links a shared library with a flag."""
        with self._lock:
            if flag not in self._links:
                source = self.folder / "empty.cpp"
                source.write_text('extern "C" int plait_empty() { return 0; }\n')
                try:
                    self.run([flag, "-Werror", "-fPIC", "-shared", source.name, "-o", "empty.so"])
                except RuntimeError:
                    self._links[flag] = False
                else:
                    self._links[flag] = True
            return self._links[flag]

    def run(self, arguments: Sequence[str | pathlib.Path]) -> None:
        """Run the compiler in its folder."""
        _output([*self.command, *map(str, arguments)], self.folder)

    def undefined(self, objects: Sequence[pathlib.Path]) -> set[str]:
        """Return the names of functions and variables of plait that no object of these defines."""
        tool = self._nm or _output([*self.command, "-print-prog-name=nm"], self.folder).strip()
        text = _output([tool, "-C", "-g", *map(str, objects)], self.folder)
        missing: set[str] = set()
        known: set[str] = set()
        for line in text.splitlines():
            found = re.match(r"[-0-9a-f ]+ ([A-Za-z]) (.*)", line)
            if found and "plait::" in found[2]:
                (missing if found[1] == "U" else known).add(found[2])
        return {_own_name(name) for name in missing - known}


def _own_name(symbol: str) -> str:
    """Return the last identifier of a function's or variable's name.

    >>> _own_name("int const& plait::core::gemm<plait::A<float> >(plait_call const*)")
    'gemm'
    """
    before = ""
    while before != symbol:
        before, symbol = symbol, re.sub(r"<[^<>]*>", "", symbol)
    words = re.findall(r"\w+", symbol.replace("(anonymous namespace)", "").partition("(")[0])
    return words[-1] if words else symbol


def _output(command: Sequence[str], folder: pathlib.Path) -> str:
    result = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
    )
    if result.returncode:
        raise RuntimeError(
            f"bundle: {shlex.join(command)} failed:\n{(result.stderr or result.stdout).strip()}"
        )
    return result.stdout


def link(
    compiler: Compiler, objects: Sequence[pathlib.Path], library: pathlib.Path, exports: str
) -> None:
    """Write a shared library with the exported symbols and what they reach, stripped.

    Args:
        compiler: links.
        objects: below its folder.
        library: the file. It is replaced when it is complete.
        exports: a pattern of symbols.
    """
    script = compiler.folder / "exports"
    script.write_text(f"{{ global: {exports}; local: *; }};\n")
    # With -z now the table of functions is read-only, and lies before the end of a page of 64 KiB
    # to which aarch64 aligns what is read-only after the start.
    options = ["--as-needed", "--gc-sections", "-O1", "-s", "--build-id=none", "-z,defs", "-z,now"]
    options += ["-z,noseparate-code", f"-soname,{library.name}", f"--version-script={script}"]
    optional = [f for f in (WHOLE_PROGRAM, _PACKED_RELOCATIONS) if compiler.links_with(f)]
    unfinished = library.with_name(f".{library.name}.{os.getpid()}")
    try:
        compiler.run(
            [
                "-shared",
                "-pthread",
                "-fPIC",
                "-w",
                *optional,
                *(f"-Wl,{option}" for option in options),
                *objects,
                "-ldl",
                "-lm",
                "-o",
                unfinished.absolute(),
            ]
        )
        unfinished.replace(library)
    finally:
        unfinished.unlink(missing_ok=True)
