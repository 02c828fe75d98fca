"""`torch.__config__`: how the library was built."""

from __future__ import annotations

import plait
from plait_abi.imports import import_module

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Return a text about the build.

    Example:
        >>> from plait_torch._config import show
        >>> show().splitlines()[0].startswith("plait ")
        True
    """
    version = import_module("plait_torch._version").__version__
    return f"plait {plait.__version__}, torch names of {version}\n  - one thread pool, no MKL"


def parallel_info() -> str:
    """Return a text about threads."""
    return f"plait.get_num_threads() : {plait.get_num_threads()}"
