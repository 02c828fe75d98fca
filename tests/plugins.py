"""Plug-ins that tests compile from files of C and C++, each once in a process."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import plait_abi

__all__ = ["EXAMPLES", "compiled"]

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "plugins"
_STRICT = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")


_OWNER = os.getpid()
_FOLDER = tempfile.mkdtemp(prefix="plait-plugins-")  # at once: tests have other temporary folders


@atexit.register
def _remove() -> None:
    if os.getpid() == _OWNER:  # a forked child leaves it
        shutil.rmtree(_FOLDER, ignore_errors=True)


@functools.cache
def compiled(source: Path, *options: str) -> Path:
    """Return the library of a source file; ``options`` of the compiler come after ours."""
    variable, compiler, standard = (
        ("CC", "cc", "-std=c11") if source.suffix == ".c" else ("CXX", "c++", "-std=c++17")
    )
    library = Path(tempfile.mkdtemp(dir=_FOLDER)) / f"{source.stem}.so"
    packages = [name for name in ("plait_abi", "plait_graph") if importlib.util.find_spec(name)]
    headers = [f"-I{plait_abi.paths(name)['include']}" for name in packages]
    command = [*os.environ.get(variable, compiler).split(), standard, *_STRICT, *headers, *options]
    subprocess.run([*command, str(source), "-o", str(library), "-ldl", "-lpthread"], check=True)
    return library
