"""A package's build from start to end: generate, compile, link, copy."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import os
import pathlib
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from plait_abi.build import _generate, _link, _nvcc, _objects, _toolchain
from plait_abi.build._errors import BuildError
from plait_abi.build._targets import (
    DeviceImages,
    Extension,
    Generate,
    Library,
    Target,
    expand,
    flags_for,
)

LINK = ("-shared", "-Wl,--as-needed", "-Wl,-O1", "-pthread")


@dataclasses.dataclass(frozen=True)
class Project:
    """The compiled parts of one package folder (the folder with ``setup.py`` and ``src/``)."""

    root: pathlib.Path
    package: str
    generate: Sequence[Generate] = ()
    libraries: Sequence[Library] = ()
    extensions: Sequence[Extension] = ()
    images: Sequence[DeviceImages] = ()
    log: Callable[[str], None] = print

    @property
    def build_dir(self) -> pathlib.Path:
        """The folder of objects and generated files: ``build/plait``, or below PLAIT_BUILD_DIR."""
        choice = os.environ.get("PLAIT_BUILD_DIR", "")
        return (
            pathlib.Path(choice).resolve() / self.package if choice else self.root / "build/plait"
        )

    @property
    def generated(self) -> pathlib.Path:
        """The folder that the generators fill."""
        return self.build_dir / "generated"

    @property
    def targets(self) -> list[Target]:
        """The targets of the compiler's machine, libraries first."""
        machine = _toolchain.target_machine()
        every: list[Target] = [*self.libraries, *self.extensions]
        return [target for target in every if target.machine in (None, machine)]

    def output(self, target: Target) -> pathlib.Path:
        """Return the path of a target's file below ``src``."""
        if isinstance(target, Library):
            return pathlib.Path(self.package, target.output or f"lib/lib{target.name}.so")
        suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
        return pathlib.Path(*target.name.split(".")).with_suffix(suffix)

    def outputs(self) -> list[pathlib.Path]:
        """Return every file a build makes, below ``src``; complete once generators have run."""
        result = [self.output(target) for target in self.targets]
        if _nvcc.architectures():
            result += [self._image(path) for each in self.images for path in self._sources(each)]
        if not self.generated.exists():
            return result
        return result + [name for _, name in _generate.package_files(self.generate, self.generated)]

    def build(self, out: pathlib.Path, *, keep_going: bool = False) -> None:
        """Build everything into ``out`` (the package's ``src``, or a wheel's folder)."""
        start = time.monotonic()
        self.build_dir.mkdir(parents=True, exist_ok=True)
        with self._alone():
            toolchain = _toolchain.find_toolchain()
            for number, step in enumerate(self.generate):
                if _generate.generate(step, number, self.root, self.generated):
                    self.log(f"{self.package}: generated files written")
            for source, name in _generate.package_files(self.generate, self.generated):
                _generate.copy_if_changed(source, out / name)
            plans = self._plans(toolchain, keep_going)
            images = self._plan_images()
            every = [*(job for _, plan in plans for job in plan), *images]
            jobs = list({job.object: job for job in every}.values())
            failed = _objects.compile_all(jobs, self.root, self.log, keep_going=keep_going)
            linked = [
                target
                for target, plan in plans
                if not set(plan) & set(failed) and (keep_going or not failed)
                if self._link(target, plan, toolchain, out)
            ]
            if not set(images) & set(failed):
                self._copy_images(images, out)
        if failed:
            names = ", ".join(job.label for job in failed)
            raise BuildError(f"{self.package}: compiling failed: {names}")
        names = ", ".join(self.output(target).name for target in linked) or "nothing to do"
        self.log(f"{self.package}: {names} ({time.monotonic() - start:.1f} s)")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold a lock: two builds of one package at a time would overwrite each other's files."""
        with (self.build_dir / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _plans(
        self, toolchain: _toolchain.Toolchain, keep_going: bool
    ) -> list[tuple[Target, list[_objects.Compile]]]:
        """Return each target with its jobs; if asked to go on, leave out targets that cannot be
        planned.
        """
        plans = []
        for target in self.targets:
            try:
                plans.append((target, self._plan(target, toolchain)))
            except BuildError as error:
                if not keep_going:
                    raise
                self.log(f"left out: {error}")
        return plans

    def _plan(self, target: Target, toolchain: _toolchain.Toolchain) -> list[_objects.Compile]:
        """Return the compile jobs of one target."""
        sources = expand(target.sources, self.root, self.generated)
        if not sources:
            raise BuildError(
                f"{self.package}: {target.name}: `sources` must name at least one file; "
                f"{list(target.sources)} names none below {self.root}"
            )
        headers = self._headers(target)
        folders = _objects.Folders([self.root, *headers])
        jobs = []
        for source in sources:
            before = (*toolchain.compiler(source), *toolchain.standard(source))
            after = (*flags_for(target.flags, source, self.root), *toolchain.extra)
            # Texts of assertions contain the paths of headers, which must not be this machine's.
            paths = [f"-ffile-prefix-map={self.root}/={self.package}/"]
            paths += [f"-ffile-prefix-map={self.generated}/={self.package}/"]
            for folder, (option, name) in headers.items():
                paths += [f"{option}{folder}", f"-ffile-prefix-map={folder}={name}"]
            identity = _toolchain.identity(toolchain.compiler(source))
            place = folders.shorten(str(source))
            known = f"{before}{after}{list(headers.values())}{identity}{place}"
            key = hashlib.sha256(known.encode()).hexdigest()[:12]
            inside = source.is_relative_to(self.root)
            label = source.relative_to(self.root).as_posix() if inside else source.name
            name = f"{source.parent.name}.{source.stem}-{key}.o"
            path = self.build_dir / "objects" / target.name / name
            command = (*before, *paths, *after)
            label = f"{target.name}: {label}"
            jobs.append(_objects.Compile(source, command, path, label, folders))
        return jobs

    def _sources(self, images: DeviceImages) -> list[pathlib.Path]:
        return expand(images.sources, self.root, self.generated)

    def _image(self, source: pathlib.Path) -> pathlib.Path:
        """Return the path of the image of a source below ``src``."""
        inside = source.with_suffix("").as_posix().rpartition("/kernels/")[2]
        return pathlib.Path(self.package, "kernels", inside.replace("/", "_") + ".fatbin")

    def _plan_images(self) -> list[_objects.Compile]:
        """Return the compile jobs of kernels of GPUs; none without an architecture."""
        numbers = _nvcc.architectures()
        if not numbers or not self.images:
            return []
        nvcc = _nvcc.find_nvcc()
        jobs = []
        for images in self.images:
            names = [self.root / name for name in images.include_dirs]
            headers = [self.root / _toolchain.plait_headers(), *names]
            folders = _objects.Folders([self.root, *headers])
            for source in self._sources(images):
                options = ["-std=c++17", "-x=cu", "--compress-mode=size"]
                options += _nvcc.code_flags(numbers)
                if os.environ.get("PLAIT_BUILD_WERROR", "") not in ("", "0"):
                    options.append("-Werror=all-warnings")
                options += flags_for(images.flags, source, self.root)
                place = folders.shorten(str(source))
                known = f"{options}{images.include_dirs}{_nvcc.identity(nvcc)}{place}"
                key = hashlib.sha256(known.encode()).hexdigest()[:12]
                name = self._image(source).stem
                command = (str(nvcc), *options, *(f"-I{folder}" for folder in headers))
                path = self.build_dir / "objects" / "kernels" / f"{name}-{key}.o"
                label = f"kernels: {name}"
                jobs.append(_objects.Compile(source, command, path, label, folders, "-fatbin"))
        return jobs

    def _copy_images(self, jobs: Sequence[_objects.Compile], out: pathlib.Path) -> None:
        """Put the images into the package, and remove those of an earlier build."""
        if not self.images:
            return
        names = {out / self._image(job.source): job.object for job in jobs}
        for path in (out / self.package / "kernels").glob("*.fatbin"):
            if path not in names:
                path.unlink()
        for path, image in names.items():
            _generate.copy_if_changed(image, path)

    def _headers(self, target: Target) -> dict[pathlib.Path, tuple[str, str]]:
        """Return the folders of headers, each with its option and its name in the objects."""
        folders = [_toolchain.plait_headers()]
        for name in target.include_dirs:
            folders.append(pathlib.Path(name.replace("{generated}", str(self.generated))))
        folders += [_toolchain.headers_of(package) for package in target.requires]
        headers = {}
        for folder in (self.root / folder for folder in folders):
            headers[folder] = ("-I", f"{folder.parent.name}/{folder.name}")
        if isinstance(target, Extension):
            # -isystem hides warnings of other projects' headers. Records of objects do not have
            # these headers, so their names, which are in the key, state the version.
            python = str(sysconfig.get_config_var("SOABI"))
            headers[_toolchain.python_headers()] = ("-isystem", python)
            if target.pybind11:
                folder = _toolchain.pybind11_headers()
                digest = _objects.content_hash(folder / "pybind11" / "detail" / "common.h")
                headers[folder] = ("-isystem", f"pybind11-{digest[:12]}")
        return headers

    def _link(
        self,
        target: Target,
        plan: Sequence[_objects.Compile],
        toolchain: _toolchain.Toolchain,
        out: pathlib.Path,
    ) -> bool:
        """Link one target; return whether that was needed."""
        folder = self.build_dir / "link"
        output = out / self.output(target)
        inputs: list[pathlib.Path] = []
        flags: list[str] = []
        if isinstance(target, Library):
            symbols = list(target.exports)
            flags.append(f"-Wl,-soname,{output.name}")
            if "-fsanitize" not in " ".join(toolchain.extra):
                flags.append("-Wl,-z,defs")
        else:
            symbols = ["PyInit_*"]
            for name in target.libraries:
                inputs.append(out / self.package / "lib" / f"lib{name}.so")
            above = "/..".join(["$ORIGIN", *[""] * (len(target.name.split(".")) - 2)])
            flags += [f"-Wl,-rpath,{above}/lib"] if inputs else []
        exports = _link.write_exports(folder, target.name, symbols)
        command = [
            *toolchain.linker([job.source for job in plan]),
            *LINK,
            *flags,
            f"-Wl,--version-script,{exports}",
            *[str(job.object) for job in plan],
            *[str(path) for path in inputs],
            *target.link_flags,
            *("-ldl", "-lpthread", "-lm"),
            *toolchain.extra,
        ]
        key = hashlib.sha256(str(output).encode()).hexdigest()[:12]
        record = folder / f"{target.name}-{key}.json"
        objects = [job.object for job in plan]
        return _link.link(command, objects, [exports, *inputs], output, record)
