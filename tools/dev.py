"""Build the compiled packages in place, in dependency order, and only what changed.

    python tools/dev.py              all packages
    python tools/dev.py core nn      these, and what they need
    python tools/dev.py -k core      go on after an error, to see all of them
    python tools/dev.py --levels all core    kernels for all processors, not for this one alone

A package that this Python cannot import yet is first installed editable; after that no pip runs.
Objects lie where builds of wheels keep theirs (tools/wheels.py), so each uses what the other has
compiled.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import subprocess
import sys

from package_graph import Package, build_order, closure, load_all

from wheels import Builder

__all__ = ["main"]


def _installed(package: Package) -> bool:
    try:
        importlib.metadata.distribution(package.distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _environment(packages: dict[str, Package], levels: str) -> dict[str, str]:
    """Return an environment in which this tree's sources come before installed packages."""
    objects = str(Builder(sys.executable).folder / "objects")
    path = [str(package.folder / "src") for package in packages.values()]
    path += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    selection = {"PYTHONPATH": os.pathsep.join(path), "PLAIT_LEVELS": levels}
    return {"PLAIT_BUILD_DIR": objects, **os.environ, **selection}


def _install(package: Package, environment: dict[str, str]) -> int:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation"]
    command += ["--no-deps", "--editable", str(package.folder)]
    print(f"{package.name}: installing editable", flush=True)
    return subprocess.run(command, env=environment, check=False).returncode


def _compile(package: Package, environment: dict[str, str], options: list[str]) -> int:
    command = [sys.executable, "setup.py", "build_inplace", *options]
    return subprocess.run(command, cwd=package.folder, env=environment, check=False).returncode


def main(arguments: list[str]) -> int:
    """Build the packages of the command line and return the exit code."""
    parser = argparse.ArgumentParser("tools/dev.py", description=__doc__)
    parser.add_argument("package", nargs="*", help="short names, such as core; default: all")
    parser.add_argument("-j", "--jobs", type=int, help="compilers at once")
    parser.add_argument("-k", "--keep-going", action="store_true", help="go on after an error")
    levels = os.environ.get("PLAIT_LEVELS") or "native"
    parser.add_argument("--levels", choices=["native", "all"], default=levels, help="of kernels")
    parser.add_argument("--no-install", action="store_true", help="never call pip")
    flags = parser.parse_args(arguments)
    packages = load_all()
    unknown = [name for name in flags.package if name not in packages]
    if unknown:
        parser.error(f"no package {unknown[0]!r}; there are {', '.join(packages)}")
    required = closure(flags.package or list(packages), packages)
    options = [f"--jobs={flags.jobs}"] if flags.jobs else []
    options += ["--keep-going"] if flags.keep_going else []
    environment = _environment(packages, flags.levels)
    failed = []
    for name in [name for name in build_order(packages) if name in required]:
        package = packages[name]
        code = 0
        if package.compiled:
            code = _compile(package, environment, options)
        if not code and not flags.no_install and not _installed(package):
            code = _install(package, environment)
        if code:
            failed.append(name)
            if not flags.keep_going:
                break
    if failed:
        print(f"tools/dev.py: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
