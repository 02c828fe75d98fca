"""`torch.utils.collect_env`: a text about the system, for reports of faults.

python -m plait.torch -m torch.utils.collect_env
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NamedTuple

import plait
from plait_torch._version import __version__

__all__ = ["SystemEnv", "get_env_info", "get_pip_packages", "get_pretty_env_info", "main", "run"]

_PACKAGES = ("plait", "numpy", "torch", "onnx", "triton", "optree")


class SystemEnv(NamedTuple):
    """What `get_env_info` finds.

    Attributes:
        torch_version, python_version, python_platform: texts.
        os, libc_version, gcc_version, cpu_info: texts of the system.
        is_cuda_available: whether plait has a CUDA device.
        nvidia_gpu_models: the names of the devices.
        pip_version: the version of pip.
        pip_packages: a line for each package of plait and PyTorch.
    """

    torch_version: str
    python_version: str
    python_platform: str
    os: str
    libc_version: str
    gcc_version: str | None
    cpu_info: str
    is_cuda_available: str
    nvidia_gpu_models: str | None
    pip_version: str | None
    pip_packages: str


def run(command: str | Sequence[str]) -> tuple[int, str, str]:
    """Run a command; return its exit status, its output and its errors, 127 if there is none.

    Example:
        >>> from plait_torch._collect_env import run
        >>> run(["no-such-command"])[0]
        127
    """
    shell = isinstance(command, str)
    try:
        done = subprocess.run(command, shell=shell, capture_output=True, text=True, check=False)
    except OSError as error:
        return 127, "", str(error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def get_pip_packages(run_lambda: Any = run, patterns: Any = None) -> tuple[str, str]:
    """Return the name of pip, and a line with name and version for each package of interest.

    Example:
        >>> from plait_torch._collect_env import get_pip_packages
        >>> "numpy==" in get_pip_packages()[1]
        True
    """
    wanted = tuple(patterns or _PACKAGES)
    lines = {
        f"{each.metadata['Name']}=={each.version}"
        for each in metadata.distributions()
        if str(each.metadata["Name"]).startswith(wanted)
    }
    return "pip3", "\n".join(sorted(lines, key=str.lower))


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def get_env_info() -> SystemEnv:
    """Return what is known of the system.

    Example:
        >>> import plait
        >>> from plait_torch._collect_env import get_env_info
        >>> get_env_info().is_cuda_available == str(plait.cuda.is_available())
        True
    """
    gcc = run(["gcc", "--version"])[1].partition("\n")[0] if shutil.which("gcc") else None
    there = plait.cuda.is_available()
    devices = range(plait.cuda.device_count()) if there else ()
    models = [f"GPU {i}: {plait.cuda.get_device_name(i)}" for i in devices]
    bits = sys.maxsize.bit_length() + 1
    return SystemEnv(
        torch_version=__version__,
        python_version=f"{sys.version.splitlines()[0]} ({bits}-bit runtime)",
        python_platform=platform.platform(),
        os=f"{platform.system()} {platform.release()} ({platform.machine()})",
        libc_version="-".join(platform.libc_ver()),
        gcc_version=gcc,
        cpu_info=f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors",
        is_cuda_available=str(there),
        nvidia_gpu_models="\n".join(models) or None,
        pip_version=_version_of("pip"),
        pip_packages=get_pip_packages()[1],
    )


def get_pretty_env_info() -> str:
    """Return the text that reports of faults contain.

    Example:
        >>> from plait_torch._collect_env import get_pretty_env_info
        >>> get_pretty_env_info().partition(":")[0]
        'PyTorch version'
    """
    info = get_env_info()
    packages = "\n".join(f"[pip3] {line}" for line in info.pip_packages.splitlines())
    return "\n".join(
        [
            f"PyTorch version: {info.torch_version}",
            f"Is CUDA available: {info.is_cuda_available}",
            f"GPU models and configuration: {info.nvidia_gpu_models or 'None'}",
            "",
            f"OS: {info.os}",
            f"GCC version: {info.gcc_version or 'Could not collect'}",
            f"Libc version: {info.libc_version}",
            f"CPU: {info.cpu_info}",
            "",
            f"Python version: {info.python_version}",
            f"Python platform: {info.python_platform}",
            "",
            "Versions of relevant libraries:",
            packages,
        ]
    )


def main() -> None:
    """Print the text."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
