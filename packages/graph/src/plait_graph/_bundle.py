"""Bundles: one library with plait/run.h, and of plait only what one graph calls."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

import plait_abi
from plait_graph import _webassembly
from plait_graph._bundle_needs import ALL, Needs, joined, needs_of
from plait_graph._bundle_sources import Level, Selection, select
from plait_graph._export import load
from plait_graph._objects import Compiler, link

_HEADER = "plait/run.h"
_WRAPPER = "plait_run.js"
_LEVELS: dict[str, tuple[Level, ...]] = {
    "x86_64": ("avx2", "base"),
    _webassembly.MACHINE: ("simd128", "base"),
}


def bundle(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None,
    output: str | os.PathLike[str],
    *,
    target: str | None = None,
    level: Level | None = None,
    compiler: str | None = None,
) -> None:
    """Compile a library that runs an exported graph, for a machine without plait.

    The library has the functions of ``plait/run.h``, and of plait's runtime, operators and kernels
    what the graph calls, for the dtypes that it has. It runs that file, and others with the same
    operators and dtypes; an operator that it has not is an error when a file is opened, and free
    sizes are one if no file had them. It needs the C++ runtime library of the compiler, and nothing
    of plait. The weights stay in the file.
    A process has a bundle, or the libraries of plait, not both.

    The sources are those that the installed packages have. Compiling takes minutes.

    Args:
        path: a file that `export` wrote, or several; None: the library has all operators and
            dtypes, and runs every file.
        output: the library, such as ``"libmodel.so"``. The header is copied beside it, to
            ``plait/run.h``. For WebAssembly it is a module, such as ``"model.wasm"``, and beside
            it is ``plait_run.js``, which loads it in a browser or in Node.
        target: the machine, as compilers name it, such as ``"aarch64-linux-gnu"``, or
            ``"wasm32"`` for WebAssembly; that of the compiler by default.
        level: instructions. Of x86-64, ``"avx2"``, the default, needs AVX2, FMA and F16C; of
            WebAssembly ``"simd128"``, the default, needs its vectors. ``"base"`` runs everywhere;
            other machines have it alone.
        compiler: the command of a C++17 compiler, GCC or Clang; by default ``em++`` of Emscripten
            for WebAssembly, ``<target>-g++`` with another target, else that of ``CXX``, ``c++``
            or ``g++``.

    Raises:
        RuntimeError: if there is no compiler, or it fails; the text is the compiler's.
        ValueError: if the file is damaged, the compiler is that of another machine, or the machine
            has no such level.
        NotImplementedError: if an operator has no kernel for the CPU.

    Example:
        >>> import os, tempfile
        >>> import plait_core as pc
        >>> from plait_graph import bundle, export
        >>> path = os.path.join(tempfile.mkdtemp(), "double.safetensors")
        >>> export(lambda x: x * 2, (pc.ones(3),), path)
        >>> bundle(path, "libdouble.so", compiler="no-compiler")
        Traceback (most recent call last):
            ...
        RuntimeError: bundle: a C++ compiler is required; there is no 'no-compiler'
    """
    command = _command(target, compiler)
    machine = _machine(command, target)
    level = _level(machine, level)
    selection = select(_needs(path), level, machine)
    library = pathlib.Path(output)
    wasm = machine == _webassembly.MACHINE
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        build = Compiler(command, folder)
        if wasm:
            build = Compiler(command, folder, _webassembly.flags(level), _webassembly.NM)
        objects = _compile(build, selection)
        library.parent.mkdir(parents=True, exist_ok=True)
        header = pathlib.Path(plait_abi.paths("plait_graph")["include"], _HEADER)
        if wasm:
            _webassembly.link_module(build, objects, library, header.read_text(encoding="utf-8"))
            shutil.copyfile(pathlib.Path(__file__).with_name(_WRAPPER), library.parent / _WRAPPER)
            return
        link(build, objects, library, selection.exports)
    copy = library.parent / _HEADER
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(header, copy)


def _needs(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None) -> Needs:
    if path is None:
        return ALL
    paths = [path] if isinstance(path, (str, os.PathLike)) else path
    if not paths:
        raise ValueError("bundle: `path` is an empty list; a file is required, or None")
    return joined([needs_of(load(each).graph) for each in paths])


def _command(target: str | None, compiler: str | None) -> list[str]:
    if compiler is not None:
        command = shlex.split(compiler)
    elif target is not None and target.partition("-")[0] == _webassembly.MACHINE:
        command = ["em++"]
    elif target is not None:
        command = [f"{target}-g++"]
    else:
        default = "c++" if shutil.which("c++") else "g++"
        command = shlex.split(os.environ.get("CXX", "")) or [default]
    if not command or shutil.which(command[0]) is None:
        name = command[0] if command else compiler
        raise RuntimeError(f"bundle: a C++ compiler is required; there is no {name!r}")
    return command


def _machine(command: list[str], target: str | None) -> str:
    """Return the machine that the compiler compiles for, such as ``x86_64``."""
    result = subprocess.run([*command, "-dumpmachine"], capture_output=True, text=True, check=False)
    name = result.stdout.strip()
    if result.returncode or not name:
        raise RuntimeError(f"bundle: {shlex.join(command)} does not say for which machine it is")
    machine = name.partition("-")[0]
    if target is not None and target.partition("-")[0] != machine:
        raise ValueError(
            f"bundle: `target` is {target}, and {shlex.join(command)} compiles for {name}"
        )
    return machine


def _level(machine: str, level: Level | None) -> Level:
    levels = _LEVELS.get(machine, ("base",))
    if level is not None and level not in levels:
        raise ValueError(
            f"bundle: `level` of {machine} is {' or '.join(map(repr, levels))}; got {level!r}"
        )
    return level or levels[0]


def _compile(compiler: Compiler, selection: Selection) -> list[pathlib.Path]:
    for name, text in selection.generated.items():
        file = compiler.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    objects = compiler.compile(selection.sources)
    rest = dict(selection.on_demand)
    while missing := compiler.undefined(objects):
        # a definition has the name, so these files define it, if one does
        names = {part for name in missing for part in re.findall(r"\w+", name)}
        files = [f for f, words in rest.items() if not words.isdisjoint(names)]
        if not files:
            break  # functions of the system; the linker says what else is missing
        for file in files:
            del rest[file]
        objects += compiler.compile([selection.job(file) for file in files])
    return objects
