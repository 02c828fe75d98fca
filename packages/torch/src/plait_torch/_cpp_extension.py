"""`torch.utils.cpp_extension`: extensions in C++ for PyTorch need its headers and its binary."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from plait_torch._refusal import refusing

__all__ = [
    "CUDA_HOME",
    "IS_LINUX",
    "IS_MACOS",
    "IS_WINDOWS",
    "ROCM_HOME",
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "SyclExtension",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
    "verify_ninja_availability",
]


def _get_build_directory(name: str, verbose: bool = False) -> str:
    """Return the folder of an extension's build files, and make it.

    It lies in the folder that the variable ``TORCH_EXTENSIONS_DIR`` of the environment names.
    """
    version = f"py{sys.version_info.major}{sys.version_info.minor}_cpu"
    place = os.environ.get("TORCH_EXTENSIONS_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
        "torch_extensions",
        version,
    )
    result = os.path.join(place, name)
    os.makedirs(result, exist_ok=True)
    return result


CUDA_HOME: str | None = None
ROCM_HOME: str | None = None
IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform.startswith("darwin")
IS_LINUX = sys.platform.startswith("linux")

_WAY = (
    "an extension in C++ is written against plait's headers: `plait_abi.build` compiles a library "
    "of operators and loads it (docs/guides/native.md), `plait_abi.kernel` takes one written in "
    "Python, and an operator that everybody needs is added to plait "
    "(docs/tutorial/writing-an-operator.md)"
)


def _refused(name: str) -> Any:
    text = f"torch.utils.cpp_extension.{name} needs PyTorch's headers and its binary; {_WAY}"
    return refusing(
        name,
        lambda: NotImplementedError(f"plait_torch: {text}"),
        "Raise: it needs PyTorch's headers and its binary.",
    )


load = _refused("load")
load_inline = _refused("load_inline")
CppExtension = _refused("CppExtension")
CUDAExtension = _refused("CUDAExtension")
SyclExtension = _refused("SyclExtension")
include_paths = _refused("include_paths")
library_paths = _refused("library_paths")


class BuildExtension:
    """A command for `setup.py` that a program may name; making it raises."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refused("BuildExtension")()

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """Return this class."""
        return cls


def is_ninja_available() -> bool:
    """Return whether the build tool `ninja` is installed.

    Example:
        >>> from plait_torch._cpp_extension import is_ninja_available
        >>> is_ninja_available() in (True, False)
        True
    """
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Raise a RuntimeError unless the build tool `ninja` is installed."""
    if not is_ninja_available():
        raise RuntimeError("torch.utils.cpp_extension: `ninja` is not installed")
