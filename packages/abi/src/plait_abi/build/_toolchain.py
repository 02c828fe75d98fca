"""The compilers, their flags, and what to install when one is missing."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.util
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence

from plait_abi.build._errors import BuildError

WARNINGS = ("-Wall", "-Wextra")
COMMON = (
    "-O3",
    "-g0",
    # The headers of Python and pybind11 assert at each reference that is taken or dropped, which
    # costs up to a tenth of a small operator. -UNDEBUG among the user's flags brings that back.
    "-DNDEBUG",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-semantic-interposition",
    "-pthread",
)
SYSTEM_INCLUDE = ("/usr/include", "/usr/local/include")
CXX_PROBE = """#include <optional>
#include <string_view>
int main() { return std::optional<int>(0).value() + static_cast<int>(std::string_view("").size()); }
"""
C_PROBE = """#include <stdint.h>
#include <stdio.h>
int main(void) { return (int)(uint8_t)0; }
"""


@dataclasses.dataclass(frozen=True)
class Toolchain:
    """A C and a C++ compiler (either may be absent until it is needed) and the user's flags."""

    cc: tuple[str, ...]
    cxx: tuple[str, ...]
    extra: tuple[str, ...]

    def compiler(self, path: pathlib.Path) -> tuple[str, ...]:
        """Return the checked compiler for one source file."""
        return self._checked(is_c(path))

    def linker(self, sources: Sequence[pathlib.Path]) -> tuple[str, ...]:
        """Return the driver to link with: C++ as soon as one source is C++."""
        return self._checked(all(is_c(path) for path in sources))

    def standard(self, path: pathlib.Path) -> list[str]:
        """Return the flags every file gets, before the target's own."""
        if is_c(path):
            return ["-std=c11", *WARNINGS, *COMMON]
        return ["-std=c++17", *WARNINGS, *COMMON, "-fvisibility-inlines-hidden"]

    def _checked(self, c: bool) -> tuple[str, ...]:
        command = self.cc if c else self.cxx
        _probe(command, c)
        return command


def is_c(path: pathlib.Path) -> bool:
    """Tell C sources from C++ ones."""
    return path.suffix == ".c"


def find_toolchain() -> Toolchain:
    """Read ``CC``, ``CXX``, ``PLAIT_BUILD_FLAGS`` and ``PLAIT_BUILD_WERROR``."""
    if sys.platform != "linux":
        raise BuildError(f"plait_abi.build: Linux is required; this is {sys.platform}")
    extra = shlex.split(os.environ.get("PLAIT_BUILD_FLAGS", ""))
    if os.environ.get("PLAIT_BUILD_WERROR", "") not in ("", "0"):
        extra.append("-Werror")
    return Toolchain(
        cc=_command("CC", ("cc", "gcc", "clang")),
        cxx=_command("CXX", ("c++", "g++", "clang++")),
        extra=tuple(extra),
    )


def _command(variable: str, candidates: Sequence[str]) -> tuple[str, ...]:
    command = shlex.split(os.environ.get(variable, ""))
    if command:
        return tuple(command)
    compiler = next((name for name in candidates if shutil.which(name)), candidates[0])
    return (compiler,)


def target_machine() -> str:
    """Return the machine that is built for, such as ``"aarch64"``: ``CXX`` may name another one."""
    if not os.environ.get("CXX"):
        return platform.machine()
    return _dumped_machine(_command("CXX", ())).partition("-")[0] or platform.machine()


@functools.cache
def _dumped_machine(command: tuple[str, ...]) -> str:
    try:
        result = subprocess.run(
            [*command, "-dumpmachine"], capture_output=True, text=True, check=False
        )
    except OSError:  # whoever compiles says what is missing
        return ""
    return result.stdout.strip()


@functools.cache
def identity(command: tuple[str, ...]) -> str:
    """Return what identifies a compiler: its full version and target machine."""
    result = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return f"{result.stdout.splitlines()[:1]} {_dumped_machine(command)}"


@functools.cache
def _probe(command: tuple[str, ...], c: bool) -> None:
    language, variable, standard = ("C", "CC", "c11") if c else ("C++", "CXX", "c++17")
    debian = "gcc libc6-dev" if c else "g++"
    remedy = (
        f"install one (Debian, Ubuntu: apt install {debian}; Fedora: dnf install gcc-c++) "
        f"or set {variable}"
    )
    if shutil.which(command[0]) is None:
        raise BuildError(
            f"plait_abi.build: a {language} compiler is required; {command[0]!r} was not found. "
            f"{remedy[0].upper()}{remedy[1:]}."
        )
    source = C_PROBE if c else CXX_PROBE
    key = hashlib.sha256(f"{command}{identity(command)}{source}".encode()).hexdigest()[:16]
    cache = pathlib.Path(tempfile.gettempdir()) / f"plait-compiler-{os.getuid()}-{key}"
    if cache.exists():
        return
    result = subprocess.run(
        [*command, "-x", "c" if c else "c++", f"-std={standard}", "-fsyntax-only", "-"],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise BuildError(
            f"plait_abi.build: a compiler for {language}{standard[1:].lstrip('+')} with its "
            f"standard headers is required; {' '.join(command)!r} cannot compile a small file:\n"
            f"{result.stderr.strip()}\n{remedy[0].upper()}{remedy[1:]}."
        )
    cache.touch()


def python_headers() -> pathlib.Path:
    """Return the folder of ``Python.h``."""
    folder = pathlib.Path(sysconfig.get_path("include"))
    if (folder / "Python.h").is_file():
        return folder
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    raise BuildError(
        f"plait_abi.build: the C headers of Python {version} are required; there is no Python.h "
        f"in {folder}. Install them (Debian, Ubuntu: apt install python{version}-dev; Fedora: "
        f"dnf install python3-devel)."
    )


def pybind11_headers() -> pathlib.Path:
    """Return pybind11's header folder, from the Python package or from the system's."""
    spec = importlib.util.find_spec("pybind11")
    folders = [pathlib.Path(where) / "include" for where in _locations(spec)]
    for folder in [*folders, *map(pathlib.Path, SYSTEM_INCLUDE)]:
        if (folder / "pybind11" / "pybind11.h").is_file():
            return folder
    raise BuildError(
        "plait_abi.build: the headers of pybind11 are required; they were not found. Install "
        "them (pip install 'pybind11>=2.13'; Debian, Ubuntu: apt install pybind11-dev)."
    )


def plait_headers() -> pathlib.Path:
    """Return the folder that holds ``plait/abi.h``, beside this very package."""
    return pathlib.Path(__file__).resolve().parents[1] / "include"


def headers_of(package: str) -> pathlib.Path:
    """Return ``<package>/include`` of an importable package, without importing it."""
    return package_folder(package) / "include"


def package_folder(package: str) -> pathlib.Path:
    """Return where an importable package lies, without importing it."""
    locations = _locations(importlib.util.find_spec(package))
    if not locations:
        raise BuildError(
            f"plait_abi.build: the package {package!r} is required to build this one; it cannot "
            f"be found. Install it first (in plait's own tree: python tools/dev.py)."
        )
    return pathlib.Path(locations[0]).resolve()


def _locations(spec: object) -> list[str]:
    return list(getattr(spec, "submodule_search_locations", None) or [])
