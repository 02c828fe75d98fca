"""Find the Pythons of this machine for which wheels can be built.

They are looked for on PATH by their names, as ``python3.12``, and in PLAIT_PYTHONS, a list of
interpreters that PATH does not have, separated as PATH is.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Iterator

__all__ = ["OLDEST", "Interpreter", "ask", "candidates", "find"]

OLDEST = 10  # the first minor version of Python 3 that the packages take
NEWEST = 19  # names of later ones are not tried
_QUESTION = """
import ensurepip, os, platform, sys, sysconfig, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
version = "%d.%d%s" % (*sys.version_info[:2], sys.abiflags)
print(version, os.path.exists(header), platform.python_implementation())
"""


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """One Python: its version, as ``3.12`` (``3.14t`` if it is free-threaded), and its path."""

    version: str
    path: str


def candidates() -> Iterator[str]:
    """Yield the paths to ask, those of PLAIT_PYTHONS first."""
    for word in os.environ.get("PLAIT_PYTHONS", "").split(os.pathsep):
        if not word:
            continue
        result = shutil.which(word)
        if result is None:
            raise ValueError(f"PLAIT_PYTHONS: {word} is no program")
        yield result
    for minor in range(OLDEST, NEWEST + 1):
        for suffix in ("", "t"):
            result = shutil.which(f"python3.{minor}{suffix}")
            if result:
                yield result
    result = shutil.which("python3")
    if result:
        yield result


def ask(path: str) -> tuple[Interpreter | None, str]:
    """Return the Python at ``path``, or None and why wheels cannot be built with it."""
    # the one that tools run with may be that of an environment, which PYTHONHOME and others change
    command = [path, "-I", "-c", _QUESTION]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        return None, f"{path}: {last[0]}"
    version, has_header, implementation = done.stdout.split()
    if implementation != "CPython":
        return None, f"{path}: CPython is required, this is {implementation}"
    if int(version.rstrip("td").split(".")[1]) < OLDEST:
        return None, f"{path}: Python 3.{OLDEST} or newer is required, this is {version}"
    if has_header != "True":
        return None, f"{path}: Python.h of {version} is missing"
    return Interpreter(version, path), ""


def find() -> tuple[dict[str, Interpreter], list[str]]:
    """Return the usable Pythons by version, and why others are not usable."""
    results: dict[str, Interpreter] = {}
    unusable = []
    for path in candidates():
        interpreter, reason = ask(path)
        if interpreter is None:
            unusable.append(reason)
        else:
            results.setdefault(interpreter.version, interpreter)

    def by_number(version: str) -> tuple[int, str]:
        return int(version.rstrip("td").split(".")[1]), version

    return {version: results[version] for version in sorted(results, key=by_number)}, unusable
