"""What a package can build: `Library`, `Extension`, `DeviceImages` and `Generate`."""

from __future__ import annotations

import dataclasses
import fnmatch
import pathlib
from collections.abc import Callable, Mapping, Sequence

from plait_abi.build._errors import BuildError

Flags = Sequence[str] | Mapping[str, Sequence[str]]
"""Flags for all files, or a mapping from a file pattern to the flags of the files it matches."""


@dataclasses.dataclass(frozen=True)
class Library:
    """A shared library that links nothing of Python: ``src/<package>/lib/lib<name>.so``.

    Args:
        name: file stem without ``lib``; also the soname.
        sources: glob patterns relative to the package's folder; ``!pattern`` takes files out
            again (there ``*`` crosses folders), ``{generated}`` stands for the folder that
            `Generate` fills.
        flags: extra compiler flags, or a mapping ``{pattern: flags}`` for single files. Patterns
            are matched against the path relative to the package, or the file name alone.
        include_dirs: further header folders, relative to the package; ``{generated}`` works.
        requires: importable packages whose ``include`` folder is to be on the header path.
        link_flags: extra flags for the linker.
        machine: build only for this machine, for example ``"x86_64"``: it is that of the C++
            compiler, and this one by default.
        exports: the C symbols that stay visible. All others are local, so that no inline
            function compiled for one instruction set can stand in for another library's.
        output: the file below ``src/<package>``, for a library that is opened by a name of its
            own, such as ``"emulation/libcuda.so.1"``; its name is the soname.

    Example:
        >>> from plait_abi.build import Library
        >>> Library("plait_mine", ["cpp/*.cpp"], flags={"fast_*.cpp": ["-mavx2"]}).name
        'plait_mine'
    """

    name: str
    sources: Sequence[str]
    flags: Flags = ()
    include_dirs: Sequence[str] = ()
    requires: Sequence[str] = ()
    link_flags: Sequence[str] = ()
    machine: str | None = None
    exports: Sequence[str] = ("plait_*",)
    output: str | None = None


@dataclasses.dataclass(frozen=True)
class Extension:
    """A CPython extension module: ``src/<package>/<module>.cpython-*.so``.

    Args:
        name: dotted module name, for example ``"plait_core._core"``.
        libraries: names of `Library` targets of the same package to link to; they are found
            at run time beside the module, in ``lib/``.
        pybind11: put pybind11's headers on the path.

    The other arguments are those of `Library`.

    Example:
        >>> from plait_abi.build import Extension
        >>> Extension("plait_mine._mine", ["cpp/python/*.cpp"], libraries=["plait_mine"]).name
        'plait_mine._mine'
    """

    name: str
    sources: Sequence[str]
    flags: Flags = ()
    include_dirs: Sequence[str] = ()
    requires: Sequence[str] = ()
    link_flags: Sequence[str] = ()
    libraries: Sequence[str] = ()
    machine: str | None = None
    pybind11: bool = True


@dataclasses.dataclass(frozen=True)
class Generate:
    """Files that are written before anything is compiled.

    Args:
        run: a command (``{out}`` stands for the folder to fill, a leading ``python`` for this
            interpreter), or a function that gets that folder.
        inputs: glob patterns; the step runs again only when one of these files changed. With
            no inputs it runs every time.
        requires: importable packages whose Python files are inputs too.
        package_files: what to ship, ``{path below out: path below src}``; a folder is taken
            whole, for example ``{"include": "plait_ops/include"}``.

    The folder is filled anew and compared: files that are as before are not replaced, so what
    depends on them is not compiled again.

    Example:
        >>> from plait_abi.build import Generate
        >>> Generate("python emit.py {out}", inputs=["emit.py", "tables/*.csv"]).inputs
        ['emit.py', 'tables/*.csv']
    """

    run: Sequence[str] | Callable[[pathlib.Path], None]
    inputs: Sequence[str] = ()
    requires: Sequence[str] = ()
    package_files: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class DeviceImages:
    """Images of kernels of NVIDIA GPUs: ``src/<package>/kernels/<name>.fatbin``, one a source.

    The name is the path below the last folder called ``kernels``, with ``_`` for ``/``:
    ``cpp/kernels/linalg/dense.cpp`` gives ``linalg_dense.fatbin``. They are built for the
    architectures that ``PLAIT_CUDA_ARCHITECTURES`` names; without it none are built, and those of
    an earlier build in place are removed.

    Args:
        sources: as those of a `Library`.
        flags: extra flags of nvcc, or a mapping ``{pattern: flags}`` for single files.
        include_dirs: further header folders, as those of a `Library`.

    Example:
        >>> from plait_abi.build import DeviceImages
        >>> DeviceImages(["cpp/kernels/**/*.cpp"], {"exact_*.cpp": ["-fmad=false"]}).sources
        ['cpp/kernels/**/*.cpp']
    """

    sources: Sequence[str]
    flags: Flags = ()
    include_dirs: Sequence[str] = ()


Target = Library | Extension


def expand(
    patterns: Sequence[str], root: pathlib.Path, generated: pathlib.Path
) -> list[pathlib.Path]:
    """Return the sorted files that ``patterns`` name below ``root``."""
    if isinstance(patterns, str):
        raise BuildError(f"sources: a sequence of patterns is required; got {patterns!r}")
    selection: set[pathlib.Path] = set()
    for pattern in patterns:
        drop = pattern.startswith("!")
        text = pattern[1:] if drop else pattern
        base = root
        if text.startswith("{generated}/"):
            base, text = generated, text.removeprefix("{generated}/")
        if drop:
            selection = {path for path in selection if not _matches(path, base, text)}
        else:
            selection |= {path for path in base.glob(text) if path.is_file()}
    return sorted(selection)


def _matches(path: pathlib.Path, base: pathlib.Path, pattern: str) -> bool:
    inside = path.is_relative_to(base)
    return inside and fnmatch.fnmatch(path.relative_to(base).as_posix(), pattern)


def flags_for(flags: Flags, path: pathlib.Path, root: pathlib.Path) -> list[str]:
    """Return the extra flags of one source file."""
    if isinstance(flags, str):
        raise BuildError(f"flags: a sequence of strings is required; got the string {flags!r}")
    if not isinstance(flags, Mapping):
        return list(flags)
    result: list[str] = []
    for pattern, extra in flags.items():
        if _matches(path, root, pattern) or fnmatch.fnmatch(path.name, pattern):
            result.extend(extra)
    return result
