"""`torch._utils_internal`: paths of files, which tests of libraries ask for."""

from __future__ import annotations

import os
import tempfile

__all__ = ["get_file_path", "get_file_path_2", "get_writable_path", "resolve_library_path"]


def get_file_path(*path_components: str) -> str:
    """Return a path below the folder in which the package `torch` lies.

    Example:
        >>> from plait_torch._paths import get_file_path
        >>> get_file_path("torch", "lib").endswith("lib")
        True
    """
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.join(folder, *path_components)


def get_file_path_2(*path_components: str) -> str:
    """Return the path of its parts.

    Example:
        >>> import os
        >>> from plait_torch._paths import get_file_path_2
        >>> get_file_path_2("assets", "image.png").replace(os.sep, "/")
        'assets/image.png'
    """
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """Return the path if it can be written to, or a new folder."""
    if os.access(path, os.W_OK):
        return path
    return tempfile.mkdtemp(suffix=os.path.basename(path))


def resolve_library_path(path: str) -> str:
    """Return the path without symbolic links."""
    return os.path.realpath(path)
