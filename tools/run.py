"""Run a development session with nothing installed but Python 3.10, pip and a C++ compiler.

    python3 tools/run.py quickstart
    python3 tools/run.py tests
    python3 tools/run.py tests -- packages/core/tests -k cat

Makes a private environment (.nox-env), installs nox there, and runs ``nox -s SESSION``. This file
keeps to the standard library and to the syntax of Python 3.7, so that an old one gives a message.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENT = os.path.join(ROOT, ".nox-env")
REQUIREMENTS = ["nox>=2024.4.15"]
WITHOUT_COMPILER = {"lint", "new-op", "--list", "-l", "--help", "-h"}
MINIMUM = (3, 10)


def missing(compiling: bool) -> list[str]:
    """Return a line for each thing to install before a session can run."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if sys.version_info[:2] < MINIMUM:
        return [
            f"Python {MINIMUM[0]}.{MINIMUM[1]} or newer is required; this is {version}. Install "
            "one and start this file with it, for example: python3.12 tools/run.py"
        ]
    lines = []
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        lines.append(
            "Python's venv and ensurepip modules are required (Debian, Ubuntu: apt install "
            f"python{version}-venv)"
        )
    if not compiling:
        return lines
    header = os.path.join(sysconfig.get_path("include"), "Python.h")
    if not os.path.exists(header):
        lines.append(
            f"the C headers of Python {version} are required, {header} is missing (Debian, "
            f"Ubuntu: apt install python{version}-dev; Fedora: dnf install python3-devel)"
        )
    compiler = shlex.split(os.environ.get("CXX", "")) or ["c++", "g++", "clang++"]
    results = [name for name in compiler if shutil.which(name)]
    if not results:
        lines.append(
            f"a C++17 compiler is required, there is no {' or '.join(compiler)} (Debian, "
            "Ubuntu: apt install g++; Fedora: dnf install gcc-c++)"
        )
    return lines


def environment() -> str:
    """Return the Python of the private environment, making it if it does not exist or is out of
    date.
    """
    python = os.path.join(ENVIRONMENT, "bin", "python")
    mark = os.path.join(ENVIRONMENT, "made-for")
    required = hashlib.sha256(
        repr((REQUIREMENTS, sys.version, os.path.realpath(sys.executable))).encode()
    ).hexdigest()
    if os.path.exists(mark) and os.path.exists(python):
        with open(mark) as file:
            if file.read() == required:
                return python
    print(f"tools/run.py: making {os.path.relpath(ENVIRONMENT)}", flush=True)
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    subprocess.check_call([sys.executable, "-m", "venv", ENVIRONMENT])
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.check_call([*pip, *REQUIREMENTS])
    with open(mark, "w") as file:
        file.write(required)
    return python


def main(arguments: list[str]) -> int:
    """Run nox with the sessions on the command line and return its exit code."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    sessions, rest = arguments[:split], arguments[split:]
    if not sessions:
        print(__doc__)
        return 2
    compiling = not all(name in WITHOUT_COMPILER for name in sessions)
    lines = missing(compiling)
    if lines:
        for line in lines:
            print("tools/run.py: " + line, file=sys.stderr)
        return 1
    # A caller's PYTHONPATH would put foreign packages into the clean environments.
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    flags = [name for name in sessions if name.startswith("-")]
    named = [name for name in sessions if not name.startswith("-")]
    command = [environment(), "-m", "nox", "-f", os.path.join(ROOT, "noxfile.py"), *flags]
    command += ["-s", *named, *rest] if named else rest
    return subprocess.call(command, cwd=ROOT, env=outside)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except subprocess.CalledProcessError as error:
        sys.exit(f"tools/run.py: {error.cmd[-1]} failed with exit code {error.returncode}")
