"""Hand a `Project` to setuptools, so that pip builds wheels and editable installs with it."""

from __future__ import annotations

import pathlib
import shutil
from typing import Any

import setuptools
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

from plait_abi.build._errors import BuildError
from plait_abi.build._project import Project


def run(project: Project, keywords: dict[str, Any]) -> None:
    """Call ``setuptools.setup`` with commands that build ``project``."""

    class BuildCompiled(build_ext):
        def run(self) -> None:
            in_place = self.inplace or self.editable_mode
            out = project.root / "src" if in_place else pathlib.Path(self.build_lib)
            try:
                project.build(out.resolve())
            except BuildError as error:
                raise CompileError(str(error)) from error

        def get_outputs(self) -> list[str]:
            return [str(pathlib.Path(self.build_lib, name)) for name in project.outputs()]

        def get_output_mapping(self) -> dict[str, str]:
            source = project.root / "src"
            return {
                str(pathlib.Path(self.build_lib, name)): str(source / name)
                for name in project.outputs()
            }

        def get_source_files(self) -> list[str]:
            return []

    class BuildFresh(build):
        def run(self) -> None:
            # setuptools never removes files from build/lib that have left src/.
            shutil.rmtree(self.build_lib, ignore_errors=True)
            super().run()

    class Wheel(bdist_wheel):
        def get_tag(self) -> tuple[str, str, str]:
            python, abi, platform = super().get_tag()
            # Libraries without Python serve every CPython of the machine.
            return (python, abi, platform) if project.extensions else ("py3", "none", platform)

    class CompiledDistribution(setuptools.Distribution):
        def has_ext_modules(self) -> bool:
            return True

    commands = {"build_ext": BuildCompiled, "build": BuildFresh, "bdist_wheel": Wheel}
    commands.update(keywords.pop("cmdclass", {}))
    setuptools.setup(cmdclass=commands, distclass=CompiledDistribution, **keywords)
