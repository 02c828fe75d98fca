"""setuptools as the build backend, which asks for nvcc when kernels are to be built."""

from __future__ import annotations

import os
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "compiler",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

# The parts of the toolkit that nvcc needs, of one release.
COMPILER = ("nvcc", "crt", "runtime", "cccl")


def compiler() -> list[str]:
    """Return the packages of nvcc, unless no architecture is asked for or PLAIT_NVCC names one."""
    choice = os.environ.get("PLAIT_CUDA_ARCHITECTURES", "").strip() or "none"
    if choice == "none" or os.environ.get("PLAIT_NVCC"):
        return []
    return [*(f"nvidia-cuda-{part}==13.0.*" for part in COMPILER), "nvidia-nvvm==13.0.*"]


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what a wheel is built with, beside what pyproject.toml names."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *compiler()]


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return the same for an installation in place."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *compiler()]
