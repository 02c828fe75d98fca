"""`torch.__config__`: how the library was built."""

from __future__ import annotations

import plait
from plait_torch._version import __version__

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Return a text about the build.

    Example:
        >>> from plait_torch._config import show
        >>> show().splitlines()[0].startswith("plait ")
        True
    """
    return f"plait {plait.__version__}, torch names of {__version__}\n  - one thread pool, no MKL"


def parallel_info() -> str:
    """Return a text about threads."""
    return f"plait.get_num_threads() : {plait.get_num_threads()}"
