"""Run a development session with nothing installed but Python 3.10, pip and a C++ compiler.

    python3 tools/run.py quickstart
    python3 tools/run.py tests
    python3 tools/run.py tests -- packages/core/tests -k cat
    python3 tools/run.py --at-once 2 docs isolation

Makes a private environment (.nox-env), installs nox there, and runs ``nox -s SESSION``. With
``--at-once N`` each session is a process of its own, N at a time, in the order of the command line,
and what it printed is shown when it has ended. This file keeps to the standard library and to the
syntax of Python 3.7, so that an old one gives a message.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from typing import IO

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


def position(session: str, named: list[str]) -> int:
    """Return where the command line names a session, or all sessions of its function."""
    return named.index(session if session in named else session.partition("(")[0])


def run_at_once(nox: list[str], named: list[str], rest: list[str], count: int) -> int:
    """Run each session in a nox of its own, `count` at a time; return 1 if one failed."""
    listed = json.loads(subprocess.check_output([*nox, "--list", "--json", "-s", *named]))
    # nox lists them as its file does; a long one that starts last would run alone
    waiting = sorted((one["session"] for one in listed), key=lambda name: position(name, named))
    number, failed, message = len(waiting), [], time.monotonic()
    running: list[tuple[str, subprocess.Popen[bytes], IO[bytes], float]] = []
    while waiting or running:
        while waiting and len(running) < count:
            output = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
            command = [*nox, "-s", waiting[0], *rest]
            process = subprocess.Popen(command, stdout=output, stderr=output)
            running.append((waiting.pop(0), process, output, time.monotonic()))
        ended = [one for one in running if one[1].poll() is not None]
        for one in ended:
            running.remove(one)
            session, process, printed, begin = one
            printed.seek(0)
            print(printed.read().decode(errors="replace"), flush=True)
            printed.close()
            word = "failed" if process.returncode else "passed"
            done = number - len(waiting) - len(running)
            seconds = time.monotonic() - begin
            print(f"== [{done}/{number}] {session}: {word} after {seconds:.0f} s", flush=True)
            if process.returncode:
                failed.append(session)
        if time.monotonic() - message > 60:
            message = time.monotonic()
            print("   running:", ", ".join(one[0] for one in running), flush=True)
        if not ended:
            time.sleep(0.2)
    if failed:
        print(f"tools/run.py: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    """Run nox with the sessions on the command line and return its exit code."""
    count = 1
    if arguments[:1] == ["--at-once"]:
        if len(arguments) < 3 or not arguments[1].isdigit() or arguments[1] == "0":
            print("tools/run.py: --at-once: a number and a session are required", file=sys.stderr)
            return 2
        count, arguments = int(arguments[1]), arguments[2:]
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
    flags = [name for name in sessions if name.startswith("-")]
    named = [name for name in sessions if not name.startswith("-")]
    command = [environment(), "-m", "nox", "-f", os.path.join(ROOT, "noxfile.py"), *flags]
    os.chdir(ROOT)
    # A caller's PYTHONPATH would put foreign packages into the clean environments.
    os.environ.pop("PYTHONPATH", None)
    if count > 1:
        return run_at_once(command, named, rest, count)
    return subprocess.call([*command, *(["-s", *named] if named else []), *rest])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except subprocess.CalledProcessError as error:
        sys.exit(f"tools/run.py: {error.cmd[-1]} failed with exit code {error.returncode}")
