"""Build each package's wheel once per content, for all sessions.

    python tools/wheels.py [--flavour asan] [package ...]

``.wheels/<flavour>/<package>/<key>/`` holds a wheel; the key depends on the package's files, the
parts of other packages that its build uses (abi's headers and build helper, all of ops), the
compiler, the flags and the Python. Packages build from copies of the tracked files in
``.wheels/<flavour>/stage``, so untracked files do not get into a wheel, and objects are kept in
``.wheels/<flavour>/objects``; the newest wheels are also in ``.wheels`` itself. A plait package
never comes from an index: builds run with ``--no-index`` and see each other through
``.wheels/<flavour>/site``.

``--python`` may be the Python of another machine that runs under emulation (tools/other_systems.py
makes one), with a cross compiler in ``CC`` and ``CXX``: then wheels are for that machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import functools
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from package_graph import ROOT, Package, build_order, closure, load_all

__all__ = ["BUILD_TOOLS", "FLAVOURS", "Builder", "build_wheels", "copy_sources", "source_files"]

FLAVOURS = {
    "": "",
    # Only the kernels that this machine runs. Objects and folders are those of "": a later build of
    # all kernels goes on from them.
    "native": "",
    # An uninitialised bool (`empty`) may be any byte, as in NumPy: computing with it must not
    # crash, which the address sanitizer detects, but its value is unspecified.
    "asan": "-UNDEBUG -fsanitize=address,undefined -fno-sanitize=bool"
    " -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1",
    # At -O1 the report names the line, and a build of the kernels takes minutes, not an hour.
    "tsan": "-UNDEBUG -fsanitize=thread -O1 -fno-omit-frame-pointer -g1",
    # Without inlining and merging, as branches would have no lines; counts of several threads are
    # added. The counters contain the paths of sources, which other builds hide.
    "coverage": "--coverage -O0 -g1 -fprofile-update=atomic -fprofile-prefix-map=/=/",
}
NATIVE = ("native", "tsan")  # these flavours build the kernels of this processor alone
BUILD_TOOLS = ("setuptools>=77", "pybind11>=2.13", "numpy")
# The parts of abi that other packages' builds use; changes of its runtime do not rebuild them.
ABI_SHARED = ("src/plait_abi/include/", "src/plait_abi/build/")
MADE = ("build/", "dist/")
LEFT_OUT = ("tests/", *MADE)


@dataclasses.dataclass
class Builder:
    """Builds wheels with one Python and one flavour of flags."""

    python: str
    flavour: str = ""
    root: pathlib.Path = ROOT
    architectures: str = dataclasses.field(
        default_factory=lambda: os.environ.get("PLAIT_CUDA_ARCHITECTURES", "")
    )
    """The GPUs that plait-cuda's kernels are compiled for."""

    def __post_init__(self) -> None:
        self.packages = load_all(self.root)
        # cp314, or cp314t of the build without a global lock
        text = self._ask(
            "import platform as p, sys; "
            "print('cp%d%d%s' % (*sys.version_info[:2], sys.abiflags), p.machine())"
        )
        self.tag, self.machine = text.split()
        machine = self.machine if self.machine != platform.machine() else ""
        self.levels = "native" if self.flavour in NATIVE else ""
        separate = "" if self.flavour == "native" else self.flavour
        name = "-".join(filter(None, [self.tag, machine, separate]))
        self.folder = self.root / ".wheels" / name
        self.flags = " ".join(
            filter(None, [os.environ.get("PLAIT_BUILD_FLAGS", ""), FLAVOURS[self.flavour]])
        )

    def build(self, names: Sequence[str]) -> dict[str, pathlib.Path]:
        """Return the wheels of ``names`` and of their dependencies, building missing ones."""
        required = set(closure(list(names), self.packages))
        for name in list(required):
            required.update(closure(list(self.packages[name].build_needs), self.packages))
        wheels = {}
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._alone():
            for name in build_order(self.packages):
                if name in required:
                    wheels[name] = self._wheel(self.packages[name])
        return wheels

    def site(self, name: str) -> pathlib.Path:
        """Return the folder of a package's unpacked wheel."""
        return self.folder / "site" / name

    def key(self, name: str, only: Sequence[str] = ()) -> str:
        """Return the hash of everything that a package's wheel depends on."""
        package = self.packages[name]
        key = hashlib.sha256(f"{self.tag} {self.machine}".encode())
        if package.compiled:
            werror = os.environ.get("PLAIT_BUILD_WERROR", "")
            level = _processor() if self.levels else ""
            settings = [self.flags, self.levels, level, werror, *_compilers()]
            if name == "cuda":
                settings.append(self.architectures)
            key.update(repr(settings).encode())
        for file in source_files(package.folder):
            relative = file.relative_to(package.folder).as_posix()
            if not only or relative.startswith(tuple(only)):
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
                key.update(f"{relative} {digest}\n".encode())
        for needed in package.build_needs:
            key.update(self.key(needed, ABI_SHARED if needed == "abi" else ()).encode())
        return key.hexdigest()[:16]

    def _wheel(self, package: Package) -> pathlib.Path:
        folder = self.folder / package.name / self.key(package.name)
        results = sorted(folder.glob("*.whl"))
        if not results:
            start = time.monotonic()
            self._build(package, folder)
            results = sorted(folder.glob("*.whl"))
            print(f"wheels: {results[0].name} ({time.monotonic() - start:.0f} s)", flush=True)
        os.utime(folder)
        self._forget_old(folder)
        self._unpack(package, results[0])
        if not self.flavour:
            self._show(results[0])
        return results[0]

    def _show(self, wheel: pathlib.Path) -> None:
        """Put the wheel into ``.wheels`` itself, where ``pip --find-links .wheels`` sees it."""
        link = self.root / ".wheels" / wheel.name
        if link.exists() and link.samefile(wheel):
            return
        unfinished = link.with_name(f".{wheel.name}.{os.getpid()}")
        os.link(wheel, unfinished)
        unfinished.replace(link)

    def _build(self, package: Package, folder: pathlib.Path) -> None:
        stage = self.folder / "stage" / package.name
        copy_sources(package.folder, source_files(package.folder), stage)
        for built in (stage / "build").glob("lib*"):  # it may have modules that were removed
            shutil.rmtree(built)
        unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
        seen = [str(self.site(name)) for name in self.packages]
        environment = dict(
            os.environ,
            PYTHONPATH=os.pathsep.join(seen),
            PLAIT_BUILD_DIR=str(self.folder / "objects"),
            PLAIT_BUILD_FLAGS=self.flags,
            PLAIT_LEVELS=self.levels,
            PLAIT_CUDA_ARCHITECTURES=self.architectures,
            PYTHONUNBUFFERED="1",  # the log shows how far a build is
        )
        if package.name == "cuda":
            self._install_compiler(stage, environment)
        command = [str(self.tools()), "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
        command += ["--no-index", "--no-cache-dir", "-w", str(unfinished), str(stage)]
        log = self.folder / f"{package.name}.log"
        if _run_shown([*command, "-v"], environment, log, package.name) != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            sys.stderr.write(log.read_text(errors="replace"))
            raise SystemExit(f"wheels: building {package.distribution} failed; see {log}")
        unfinished.replace(folder)

    def _install_compiler(self, stage: pathlib.Path, environment: dict[str, str]) -> None:
        """Install what plait-cuda's build backend asks for: nvcc, where kernels are compiled."""
        code = (
            "import sys; sys.path.insert(0, 'backend'); import plait_cuda_backend as b; "
            "print(*b.compiler(), sep='\\n')"
        )
        command = [str(self.tools()), "-c", code]
        done = subprocess.run(
            command, cwd=stage, env=environment, capture_output=True, text=True, check=True
        )
        pip = [str(self.tools()), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        if names := done.stdout.split():
            subprocess.run([*pip, *names], check=True)

    def tools(self) -> pathlib.Path:
        """Return a Python that has the build tools, made on first use."""
        folder = self.folder / "builder"
        python = folder / "bin" / "python"
        done = folder / "tools.txt"
        if done.exists() and done.read_text() == "\n".join(BUILD_TOOLS):
            return python
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([self.python, "-m", "venv", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, *BUILD_TOOLS], check=True)
        done.write_text("\n".join(BUILD_TOOLS))
        return python

    def _unpack(self, package: Package, wheel: pathlib.Path) -> None:
        """Keep ``site/<package>`` equal to the wheel, leaving equal files untouched."""
        site = self.site(package.name)
        mark = site / ".wheel"
        if mark.exists() and mark.read_text() == str(wheel):
            return
        fresh = site.with_name(f"{site.name}.{os.getpid()}")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(fresh)
        copy_sources(fresh, [path for path in fresh.rglob("*") if path.is_file()], site)
        shutil.rmtree(fresh)
        mark.write_text(str(wheel))

    def _forget_old(self, folder: pathlib.Path, keep: int = 4) -> None:
        """Remove old wheels, keeping the last used ones."""
        folders = sorted(folder.parent.iterdir(), key=lambda path: path.stat().st_mtime)
        for old in folders[:-keep]:
            shutil.rmtree(old)

    def _ask(self, code: str) -> str:
        result = subprocess.run(
            [self.python, "-c", code], capture_output=True, text=True, check=True
        )
        return result.stdout.strip()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def source_files(folder: pathlib.Path, *, tests: bool = False) -> list[pathlib.Path]:
    """Return the files of a package that a wheel is made from: nothing ignored, and no tests unless
    asked for.
    """
    listed = (
        subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "."],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if shutil.which("git")
        else None
    )
    if listed and listed.returncode == 0 and listed.stdout:
        files = [folder / name for name in listed.stdout.split("\0") if name]
    else:
        # an unpacked archive has no build results, except those of builds in place
        files = [path for path in folder.rglob("*") if not _is_ours(path)]
    left_out = MADE if tests else LEFT_OUT
    return sorted(
        path
        for path in set(files)
        if path.is_file() and not path.relative_to(folder).as_posix().startswith(left_out)
    )


def _is_ours(path: pathlib.Path) -> bool:
    result = path.suffix in {".so", ".pyc"}
    return result or any(part.endswith((".egg-info", "__pycache__")) for part in path.parts)


def copy_sources(source: pathlib.Path, files: Sequence[pathlib.Path], target: pathlib.Path) -> None:
    """Make ``target`` hold exactly ``files``; equal ones keep their time, so builds stay small."""
    required = {file.relative_to(source) for file in files}
    for path in sorted(target.rglob("*"), reverse=True):
        relative = path.relative_to(target)
        if path.is_file() and relative not in required and relative.parts[0] != "build":
            path.unlink()
    for relative in required:
        path = target / relative
        if path.is_file() and path.read_bytes() == (source / relative).read_bytes():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / relative, path)


def _run_shown(
    command: Sequence[str], environment: dict[str, str], log: pathlib.Path, name: str
) -> int:
    """Run a build with its output in ``log``; print how many files it has compiled."""
    link = 0  # tenths
    with (
        log.open("w") as output,
        subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            output.write(line)
            count = re.match(r"\s*\[(\d+)/(\d+)\] ", line)
            if count and int(count[2]) >= 20 and 10 * int(count[1]) // int(count[2]) > link:
                link = 10 * int(count[1]) // int(count[2])
                print(f"wheels: {name} [{count[1]}/{count[2]}]", flush=True)
    return process.returncode


@functools.cache
def _processor() -> str:
    """Return the instructions that this machine has: kernels of its level alone depend on them."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _compilers() -> list[str]:
    """Return what identifies the compilers that a build would use."""
    results = []
    for variable, name in (("CC", "cc"), ("CXX", "c++")):
        command = os.environ.get(variable, "").split() or [name]
        version = ""
        if shutil.which(command[0]):
            result = subprocess.run(
                [*command, "--version"], capture_output=True, text=True, check=False
            )
            version = result.stdout.splitlines()[0] if result.stdout else ""
        results.append(f"{' '.join(command)} {version}")
    return results


def build_wheels(
    names: Sequence[str], python: str = sys.executable, flavour: str = ""
) -> dict[str, pathlib.Path]:
    """Return the wheels of ``names`` and of their dependencies; see `Builder`."""
    return Builder(python, flavour).build(names)


def main(arguments: Sequence[str]) -> int:
    """Build from the command line and print the wheels' paths."""
    parser = argparse.ArgumentParser("tools/wheels.py")
    parser.add_argument("package", nargs="*", help="short names; default: all")
    parser.add_argument("--flavour", default="", choices=sorted(FLAVOURS))
    parser.add_argument("--python", default=sys.executable)
    flags = parser.parse_args(arguments)
    names = flags.package or list(load_all())
    for path in build_wheels(names, flags.python, flags.flavour).values():
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
