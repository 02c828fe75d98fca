"""Which nvcc compiles kernels of GPUs, and for which of them."""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import shutil
import subprocess
from collections.abc import Sequence

from plait_abi.build._errors import BuildError

ALL = ("75", "80", "86", "90", "100", "120")
"""The compute capabilities that ``PLAIT_CUDA_ARCHITECTURES=all`` stands for, times ten.

They are the first of each generation, and 8.6, as most cards of that one are unlike 8.0. A GPU runs
the code of the nearest one of its generation that is not newer: 8.7 and 8.9 that of 8.6, 10.3 that
of 10.0, 12.1 that of 12.0.
"""


def architectures() -> tuple[str, ...]:
    """Read ``PLAIT_CUDA_ARCHITECTURES``: ``none`` (as without it), ``all``, or a list, ``90,120``.

    ``all`` is in the order of `ALL`.
    """
    text = os.environ.get("PLAIT_CUDA_ARCHITECTURES", "").strip() or "none"
    if text == "none":
        return ()
    if text == "all":
        return ALL
    words = text.replace(",", " ").split()
    if not all(word.isdecimal() for word in words):
        raise BuildError(
            "PLAIT_CUDA_ARCHITECTURES: none, all or numbers such as 90,120 are required; "
            f"got {text!r}"
        )
    return tuple(sorted(set(words), key=int))


def code_flags(numbers: Sequence[str]) -> list[str]:
    """Return the flags for machine code of each architecture.

    With several, PTX of the newest is added, which the driver compiles for GPUs to come.
    """
    flags = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in numbers]
    if len(numbers) > 1:
        flags.append(f"-gencode=arch=compute_{numbers[-1]},code=compute_{numbers[-1]}")
    return flags


def find_nvcc() -> pathlib.Path:
    """Return ``PLAIT_NVCC``, else that of the package nvidia-cuda-nvcc, else that on ``PATH``."""
    choice = os.environ.get("PLAIT_NVCC", "")
    if choice:
        path = shutil.which(choice)
        if path is None:
            raise BuildError(f"PLAIT_NVCC: a program is required; got {choice!r}")
        return pathlib.Path(path)
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = shutil.which(str(pathlib.Path(folder, "cu13", "bin", "nvcc")))
        if path is not None:
            return pathlib.Path(path)
    path = shutil.which("nvcc")
    if path is None:
        raise BuildError(
            "plait_abi.build: nvcc is required to compile kernels of GPUs, and was not found. "
            "pip install 'nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-cccl==13.0.*', or set PLAIT_NVCC."
        )
    return pathlib.Path(path)


@functools.cache
def identity(nvcc: pathlib.Path) -> str:
    """Return what identifies a compiler: its version."""
    result = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False)
    return " ".join(result.stdout.splitlines()[-2:])
