"""The function a package's ``setup.py`` calls."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from plait_abi.build._errors import BuildError
from plait_abi.build._project import Project
from plait_abi.build._targets import DeviceImages, Extension, Generate, Library


def setup(
    *,
    generate: Sequence[Generate] = (),
    libraries: Sequence[Library] = (),
    extensions: Sequence[Extension] = (),
    images: Sequence[DeviceImages] = (),
    package: str | None = None,
    **keywords: Any,
) -> None:
    """Describe the compiled parts of the package in the current folder and run the command.

    ``python setup.py build_inplace`` compiles into ``src/``, and ``build_libraries FOLDER``
    compiles the libraries alone, for this machine or for that of ``CXX``; both need no setuptools.
    Every other command goes to ``setuptools.setup``, to which ``keywords`` are passed.

    Args:
        generate: steps that write files before anything is compiled.
        libraries: shared libraries without Python.
        extensions: CPython extension modules.
        images: kernels of GPUs.
        package: the import package that gets ``lib/``; the only folder in ``src/`` by default.

    Raises:
        BuildError: when nothing says which package is meant.

    Environment:
        CC, CXX: the compilers. PLAIT_BUILD_JOBS: how many run at once (default: one a core).
        PLAIT_BUILD_FLAGS: flags added to compiling and linking, such as ``-fsanitize=address``.
        PLAIT_BUILD_WERROR: ``1`` makes warnings errors. PLAIT_BUILD_DIR: where objects go.
        PLAIT_CUDA_ARCHITECTURES: of which GPUs kernels are built: ``none``, ``all`` or ``90,120``.
        PLAIT_NVCC: their compiler.

    Example:
        >>> import pathlib, subprocess, sys, tempfile
        >>> place = tempfile.TemporaryDirectory()
        >>> folder = pathlib.Path(place.name)
        >>> (folder / "src" / "plait_mine").mkdir(parents=True)
        >>> _ = (folder / "src" / "plait_mine" / "__init__.py").write_text("")
        >>> _ = (folder / "mine.c").write_text("int answer(void) { return 42; }")
        >>> _ = (folder / "setup.py").write_text(
        ...     "from plait_abi.build import Library, setup\\n"
        ...     "setup(libraries=[Library('mine', ['mine.c'])])"
        ... )
        >>> command = [sys.executable, "setup.py", "build_inplace"]
        >>> _ = subprocess.run(command, cwd=folder, check=True, capture_output=True)
        >>> [path.name for path in folder.glob("src/plait_mine/lib/*")]
        ['libmine.so']
        >>> place.cleanup()

        A plug-in with one library and one extension module::

            from plait_abi.build import Extension, Library, setup

            setup(
                libraries=[Library("plait_mine", ["cpp/*.cpp"], flags={"fast_*.cpp": ["-mavx2"]})],
                extensions=[Extension("plait_mine._mine", ["cpp/python/*.cpp"])],
            )
    """
    root = pathlib.Path.cwd()
    project = Project(
        root=root,
        package=package or _only_package(root),
        generate=generate,
        libraries=libraries,
        extensions=extensions,
        images=images,
    )
    if sys.argv[1:2] in (["build_inplace"], ["build_libraries"]):
        sys.exit(_build(project, sys.argv[1], sys.argv[2:]))
    try:
        from plait_abi.build import _setuptools
    except ModuleNotFoundError as error:  # setuptools.command.bdist_wheel is one of the newer parts
        if not (error.name or "").startswith("setuptools"):
            raise
        raise BuildError(
            "setup: setuptools 70.1 or newer is required to build packages, "
            f"{_found_setuptools()}; pip install 'setuptools>=77' (a build without isolation uses "
            "that of the environment)"
        ) from None
    _setuptools.run(project, keywords)


def _found_setuptools() -> str:
    try:
        return f"got {importlib.metadata.version('setuptools')}"
    except importlib.metadata.PackageNotFoundError:
        return "and there is none"


def _only_package(root: pathlib.Path) -> str:
    result = sorted(path.parent.name for path in (root / "src").glob("*/__init__.py"))
    if len(result) != 1:
        raise BuildError(
            f"setup: `package` is required unless src/ holds exactly one package; {root / 'src'} "
            f"holds {result}"
        )
    return result[0]


def _build(project: Project, command: str, arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(f"setup.py {command}", description="Compile.")
    if command == "build_libraries":
        parser.add_argument("folder", type=pathlib.Path, help="gets PACKAGE/lib/libNAME.so")
    parser.add_argument("-j", "--jobs", type=int, help="compilers at once")
    parser.add_argument("-k", "--keep-going", action="store_true", help="go on after an error")
    flags = parser.parse_args(arguments)
    if flags.jobs:
        os.environ["PLAIT_BUILD_JOBS"] = str(flags.jobs)
    out = project.root / "src"
    if command == "build_libraries":
        project, out = dataclasses.replace(project, extensions=()), flags.folder.resolve()
    try:
        project.build(out, keep_going=flags.keep_going)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
