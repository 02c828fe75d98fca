"""`torch._utils_internal`: paths of files, which programs of PyTorch's own repositories ask for."""

from __future__ import annotations

import os

__all__ = ["get_file_path", "get_file_path_2", "get_writable_path", "resolve_library_path"]


def get_file_path(*path_components: str) -> str:
    """Return the path of a file in the folder of this package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), *path_components)


def get_file_path_2(*path_components: str) -> str:
    """Return the parts of a path joined.

    Example:
        >>> import os
        >>> from plait_torch._paths import get_file_path_2
        >>> get_file_path_2("one", "two") == os.path.join("one", "two")
        True
    """
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """Return a path, or that of a new folder if nothing can be written there."""
    if os.access(path, os.W_OK):
        return path
    import tempfile

    return tempfile.mkdtemp(suffix=os.path.basename(path))


def resolve_library_path(path: str) -> str:
    """Return a path without symbolic links."""
    return os.path.realpath(path)
