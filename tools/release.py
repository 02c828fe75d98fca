"""Build a release in dist/, try it on every Python and system at hand, and write CHANGELOG.md.

    python tools/release.py [--keep | --tag] [--allow-missing] [--step NAME ...]

The steps, all of them by default:

- ``sdists``: an sdist of each package; each is built with what it declares and what stands beside
  it, the wheels hold the same files as those of the tree, and the quick tests pass.
- ``wheels``: wheels for every Python that tools/interpreters.py finds, with the lowest manylinux
  policy that auditwheel gives them. That of plait-cuda has code for all GPUs, of which other steps
  compile none; compiling it takes more than twenty minutes, and its wheel serves every Python, so
  it is built once.
- ``environments``: they are installed in clean environments of the Pythons 3.10, 3.12 and 3.14, and
  the quick tests pass. A Python that is not found is an error, unless ``--allow-missing``.
- ``debian``: the same on another release of Debian, in a folder, without a network.
- ``aarch64``: wheels for aarch64 are compiled here, and the quick tests pass under emulation.
- ``changelog``: tools/changelog.py, if all other steps went well; ``--keep`` prints it only.
  ``--tag`` commits it and makes the annotated tag of the version, such as v0.3.0, which has the
  version's section as its message. It needs all steps and a tree without changes. Nothing is
  pushed.

The quick tests are tests/quick and packages/*/tests/test_bare_*.py. When pip installs packages of
ours, it sees dist/ and a folder with wheels of other projects, but no index. dist/ has what the
last run built.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence

import contents
import interpreters
import other_systems
import versions
from changelog import gather, section
from package_graph import ROOT, build_order, closure, load_all
from release_tag import check_taggable, tag

from wheels import BUILD_TOOLS, Builder, copy_sources, source_files

__all__ = ["STEPS", "Failed", "Missing", "Release", "main", "quick_tests"]

STEPS = ("sdists", "wheels", "environments", "debian", "aarch64", "changelog")
MUST_RUN = ("3.10", "3.12", "3.14")
INSTALLED = ("plait", "torch", "conformance")  # others need a library or a cluster of the machine
TEST_TOOLS = ("pytest>=8", "pytest-timeout>=2.3")
# in the folder of the quick tests, where processes that the tests spawn find their modules
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "quick")
# what plait's libraries find by name at run time is never copied into a wheel
NOT_GRAFTED = "libplait_*.so*"
CROSS = {"CC": other_systems.CROSS[0], "CXX": other_systems.CROSS[1]}


class Failed(Exception):
    """A step failed; the text says where."""


class Missing(Exception):
    """A step cannot run here; the text says what is missing."""


@dataclasses.dataclass(frozen=True)
class Row:
    """What became of one part of a step."""

    step: str
    part: str
    outcome: str
    seconds: float


def run(command: Sequence[object], folder: pathlib.Path = ROOT, **more: str) -> str:
    """Run a command and return what it printed; `Failed` with its end where it fails."""
    words = [str(word) for word in command]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | more
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode != 0:
        raise Failed(f"{' '.join(words[:8])} ... failed:\n{done.stdout[-6000:]}")
    return done.stdout


def pip(python: object, *words: object, **more: str) -> str:
    """Run pip of a Python, with ``more`` in its environment."""
    return run([python, "-m", "pip", "--disable-pip-version-check", *words], ROOT, **more)


def environment(folder: pathlib.Path, python: object) -> pathlib.Path:
    """Make an empty virtual environment and return its Python."""
    shutil.rmtree(folder, ignore_errors=True)
    run([python, "-m", "venv", folder])
    return folder / "bin" / "python"


def quick_tests(folder: pathlib.Path, root: pathlib.Path = ROOT) -> pathlib.Path:
    """Copy the quick tests and the settings of pytest into a folder, away from the tree."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        root / "tests" / "quick", folder / "quick", ignore=shutil.ignore_patterns("__pycache__")
    )
    for package in load_all(root).values():
        for path in sorted((package.folder / "tests").glob("test_bare_*.py")):
            (folder / "quick" / package.name).mkdir(exist_ok=True)
            shutil.copyfile(path, folder / "quick" / package.name / path.name)
    shutil.copyfile(root / "pyproject.toml", folder / "pyproject.toml")
    return folder


def policy(wheel: pathlib.Path) -> str:
    """Return the platform in a wheel's name; of several the first one."""
    return wheel.stem.rpartition("-")[2].partition(".")[0]


class Release:
    """The steps, and the folders that they share.

    Args:
        dist: gets ``sdists`` and ``wheels``.
        scratch: for environments, other systems and wheels of other projects; may be kept.
        suite: the other release of Debian.
        allow_missing: a Python that is not found is no error.
    """

    def __init__(
        self, dist: pathlib.Path, scratch: pathlib.Path, suite: str, *, allow_missing: bool
    ) -> None:
        self.packages = load_all()
        self.sdists, self.wheels = dist / "sdists", dist / "wheels"
        self.scratch, self.suite, self.allow_missing = scratch, suite, allow_missing
        self.found, self.unusable = interpreters.find()
        self.rows: list[Row] = []
        self.built: dict[str, list[pathlib.Path]] = {}
        self.repaired: dict[str, pathlib.Path] = {}

    # ---- steps -----------------------------------------------------------------------------------

    def step_sdists(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """One part for each Python that must run would be as many builds; one is enough."""
        version = next(iter(self.found))
        yield f"built with {version}", lambda: self._sdists(self.found[version])

    def step_wheels(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """A part for each Python."""
        for reason in self.unusable:
            print(f"release: not used: {reason}", flush=True)
        for version in self.found:
            yield version, lambda version=version: self._wheels(version)  # type: ignore[misc]

    def step_environments(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """A part for each Python that must run, and for others that are found."""
        for version in dict.fromkeys([*MUST_RUN, *self.found]):
            yield version, lambda version=version: self._environment(version)  # type: ignore[misc]

    def step_debian(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """One part."""
        yield self.suite, self._debian

    def step_aarch64(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """One part."""
        yield "emulated", self._aarch64

    def run(self, steps: Sequence[str]) -> bool:
        """Run steps, going on after a failure; return whether all that had to run did."""
        well = True
        for step in steps:
            for part, action in getattr(self, f"step_{step}")():
                print(f"release: {step}, {part}", flush=True)
                start = time.monotonic()
                try:
                    outcome = action()
                except Missing as error:
                    outcome = f"missing: {error}"
                    well = well and (self.allow_missing or step != "environments")
                except (Failed, RuntimeError, subprocess.CalledProcessError, SystemExit) as error:
                    print(error, file=sys.stderr, flush=True)
                    outcome, well = f"FAILED: {str(error).splitlines()[0][:70]}", False
                self.rows.append(Row(step, part, outcome, time.monotonic() - start))
        return well

    # ---- sdists ----------------------------------------------------------------------------------

    def _sdists(self, python: interpreters.Interpreter) -> str:
        builder = Builder(python.path, architectures="none")
        names = build_order(self.packages)
        shutil.rmtree(self.sdists, ignore_errors=True)
        self.sdists.mkdir(parents=True)
        built = builder.build(names)  # the build helper is in the wheel of plait-abi
        for name in names:
            self._sdist(builder, name)
        house = self._others(python.path, python.version, BUILD_TOOLS)
        result = self.scratch / "from-sdists"
        shutil.rmtree(result, ignore_errors=True)
        for name in names:
            (sdist,) = self.sdists.glob(f"{self.packages[name].module}-[0-9]*.tar.gz")
            places = ["--no-index", "--find-links", result, "--find-links", house]
            result.mkdir(parents=True, exist_ok=True)
            words = ["wheel", "--no-deps", *places, "-w", result, sdist]
            pip(builder.tools(), *words, PLAIT_CUDA_ARCHITECTURES="none")
            (wheel,) = result.glob(f"{self.packages[name].module}-[0-9]*.whl")
            different = set(_files(wheel)) ^ set(_files(built[name]))
            if different:
                raise Failed(f"{sdist.name} builds other files: {sorted(different)[:5]}")
        text = self._tried(python.path, result, house, self.scratch / "env-sdists")
        return f"{len(names)} build what the tree builds; {text}"

    def _sdist(self, builder: Builder, name: str) -> None:
        """Make one sdist from a copy of the tracked files, as the tree holds more."""
        package = self.packages[name]
        stage = self.scratch / "stage" / name
        shutil.rmtree(stage, ignore_errors=True)
        copy_sources(package.folder, source_files(package.folder, tests=True), stage)
        code = (
            "import os, sys; from setuptools import build_meta as b; os.chdir(sys.argv[1]); "
            "sys.argv, out = sys.argv[:1], sys.argv[2]; b.build_sdist(out)"
        )
        seen = os.pathsep.join(str(builder.site(other)) for other in self.packages)
        run([builder.tools(), "-c", code, stage, self.sdists], PYTHONPATH=seen)

    # ---- wheels ----------------------------------------------------------------------------------

    def _wheels(self, version: str) -> str:
        return self._repaired(version, self.found[version].path)

    def _repaired(self, version: str, python: str) -> str:
        """Build and repair the wheels of one Python; say which policies they got."""
        if version not in self.built:
            if not self.built:
                shutil.rmtree(self.wheels, ignore_errors=True)
                self.wheels.mkdir(parents=True)
            result = Builder(python, architectures="all").build(self._to_build(version))
            self.built[version] = [self._repair(path) for path in result.values()]
        wrong = [line for wheel in self.built[version] for line in contents.check(wheel)]
        if wrong:
            raise Failed("\n".join(wrong))
        policies = sorted({policy(wheel) for wheel in self.built[version]} - {"any"})
        return f"{len(self.built[version])} wheels: {', '.join(policies)}"

    def _to_build(self, version: str) -> list[str]:
        """Return the packages to build for a Python: all, plait-cuda for the first one alone."""
        first = not any(other in self.found for other in self.built)
        return [name for name in self.packages if name != "cuda" or first or version == "aarch64"]

    def _repair(self, wheel: pathlib.Path) -> pathlib.Path:
        """Put a wheel into dist/, for manylinux where it has libraries.

        One that serves every Python is taken from the first.
        """
        if wheel.name in self.repaired:
            return self.repaired[wheel.name]
        if policy(wheel) == "any":
            result = pathlib.Path(shutil.copy2(wheel, self.wheels))
        else:
            result = self._audited(wheel)
        self.repaired[wheel.name] = result
        return result

    def _audited(self, wheel: pathlib.Path) -> pathlib.Path:
        fresh = self.scratch / "repaired"
        shutil.rmtree(fresh, ignore_errors=True)
        words = ["--plat", "auto", "--exclude", NOT_GRAFTED, "-w", fresh, wheel]
        here = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
        run([sys.executable, "-m", "auditwheel", "repair", *words], PATH=here)
        (result,) = fresh.glob("*.whl")
        return pathlib.Path(shutil.move(result, self.wheels / result.name))

    # ---- trying them -----------------------------------------------------------------------------

    def _others(self, python: str, version: str, more: Sequence[str] = ()) -> pathlib.Path:
        """Return a folder with wheels of other projects' packages for a Python."""
        house = self.scratch / f"others-{version}"
        needed = set(more) | set(TEST_TOOLS)
        for name in closure(list(INSTALLED), self.packages):
            needed |= set(self.packages[name].third_party)
        mark, required = house / "needed.txt", "\n".join(sorted(needed))
        if not mark.exists() or not set(required.splitlines()) <= set(
            mark.read_text().splitlines()
        ):
            shutil.rmtree(house, ignore_errors=True)
            # a Python of Debian's has no pip
            tools = Builder(python).tools()
            pip(tools, "download", "--quiet", "--only-binary=:all:", "-d", house, *sorted(needed))
            mark.write_text(required)
        return house

    def _tried(
        self, python: object, result: pathlib.Path, house: pathlib.Path, folder: pathlib.Path
    ) -> str:
        """Install our packages in a clean environment and run the quick tests."""
        inside = environment(folder, python)
        names = [self.packages[name].distribution for name in INSTALLED]
        places = ["--no-index", "--find-links", result, "--find-links", house]
        pip(inside, "install", "--quiet", *places, *names, *TEST_TOOLS)
        tests = quick_tests(folder / "quick-tests")
        return _passed(run([inside, *PYTEST], tests))

    def _environment(self, version: str) -> str:
        if version not in self.found:
            raise Missing(f"no Python {version} on PATH or in PLAIT_PYTHONS")
        python = self.found[version].path
        self._repaired(version, python)
        house = self._others(python, version)
        return self._tried(python, self.wheels, house, self.scratch / f"env-{version}")

    def _debian(self) -> str:
        missing = other_systems.missing_for_chroot()
        if missing:
            raise Missing(missing)
        root = other_systems.installed_debian(self.scratch / f"debian-{self.suite}", self.suite)
        ask = "import sys; print('%d.%d' % sys.version_info[:2])"
        version = self._inside(root, "/usr/bin/python3", "-c", ask).strip()
        if version not in self.found:
            raise Missing(f"{self.suite} has Python {version}, and there is none here")
        self._repaired(version, self.found[version].path)
        house = self._others(self.found[version].path, version)
        trial = root / "trial"
        shutil.rmtree(trial, ignore_errors=True)
        shutil.copytree(self.wheels, trial / "ours")
        shutil.copytree(house, trial / "others")
        quick_tests(trial / "tests")
        names = [self.packages[name].distribution for name in INSTALLED]
        python, places = "/trial/env/bin/python", ["/trial/ours", "--find-links", "/trial/others"]
        self._inside(root, "/usr/bin/python3", "-m", "venv", "/trial/env")
        install = ["-m", "pip", "install", "--quiet", "--no-index", "--find-links", *places]
        self._inside(root, python, *install, *names, *TEST_TOOLS)
        text = self._inside(root, "env", "-C", "/trial/tests", python, *PYTEST)
        return f"Python {version}: {_passed(text)}"

    def _inside(self, root: pathlib.Path, *command: str) -> str:
        done = other_systems.run_inside(root, command)
        if done.returncode != 0:
            text = f"{done.stdout[-6000:]}{done.stderr[-2000:]}"
            raise Failed(f"{' '.join(command[:6])} ... failed on {self.suite}:\n{text}")
        return done.stdout

    def _aarch64(self) -> str:
        missing = other_systems.missing_for_emulation()
        if missing:
            raise Missing(missing)
        suite = other_systems.codename()
        python = other_systems.emulated_python(self.scratch / f"aarch64-{suite}", suite)
        before = {name: os.environ.get(name) for name in CROSS}
        os.environ.update(CROSS)
        try:
            text = self._repaired("aarch64", str(python))
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        house = self._others(str(python), "aarch64")
        tried = self._tried(python, self.wheels, house, self.scratch / "env-aarch64")
        return f"{text}; {tried}"


def _files(wheel: pathlib.Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def _passed(output: str) -> str:
    """Return the last line of pytest without its rulers."""
    return output.strip().splitlines()[-1].strip("= ")


def table(rows: Sequence[Row]) -> str:
    """Return the rows as aligned text."""
    lines = [("step", "part", "seconds", "outcome")]
    lines += [(row.step, row.part, f"{row.seconds:.0f}", row.outcome) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(3)]
    return "\n".join("  ".join([*map(str.ljust, line[:3], widths), line[3]]) for line in lines)


def main(arguments: Sequence[str]) -> int:
    """Make a release from the command line; return 1 if a step failed."""
    parser = argparse.ArgumentParser("tools/release.py")
    parser.add_argument("--keep", action="store_true", help="print the changelog, keep fragments")
    parser.add_argument("--allow-missing", action="store_true", help="Pythons may be missing")
    parser.add_argument("--step", action="append", choices=STEPS, help="this step; default: all")
    parser.add_argument("--tag", action="store_true", help="commit the changelog, and tag it")
    parser.add_argument("--debian", default="trixie", help="the other release of Debian")
    flags = parser.parse_args(arguments)
    if flags.tag and (flags.keep or flags.step):
        parser.error("--tag is for a whole release: without --keep and --step")
    if flags.tag:
        check_taggable(ROOT, versions.version())
    steps = [step for step in STEPS if step in (flags.step or STEPS)]
    release = Release(
        ROOT / "dist",
        ROOT / ".wheels" / "release",
        flags.debian,
        allow_missing=flags.allow_missing,
    )
    well = release.run([step for step in steps if step != "changelog"])
    print(table(release.rows))
    if "changelog" in steps and (well or flags.keep):
        try:
            print(gather(keep=flags.keep))
            if flags.tag:
                new = versions.version()
                print(tag(ROOT, new, section(ROOT, new)))
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
