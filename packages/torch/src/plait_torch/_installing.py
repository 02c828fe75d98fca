"""Putting the finder in front of the others, and taking it back."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from plait_torch import _tensor_methods
from plait_torch._finder import Finder

__all__ = ["install", "installed", "uninstall"]

_finder = Finder()


def is_installed() -> bool:
    """Tell whether `torch` means plait now."""
    return _finder in sys.meta_path


def install() -> None:
    """Make ``import torch`` mean plait, until `uninstall`. A second time nothing happens.

    Raises:
        RuntimeError: if PyTorch is imported already.

    Example:
        >>> import importlib.util, plait_torch
        >>> plait_torch.install()
        >>> importlib.util.find_spec("torch.nn") is not None
        True
        >>> plait_torch.uninstall()
    """
    if is_installed():
        return
    there = sys.modules.get("torch")
    if there is not None:
        place = getattr(there, "__file__", None) or there.__name__
        raise RuntimeError(f"plait_torch.install: torch is imported already, from {place}")
    sys.meta_path.insert(0, _finder)
    _tensor_methods.bind()
    importlib.invalidate_caches()


def uninstall() -> None:
    """Take the finder back; ``import torch`` means what it meant before."""
    if not is_installed():
        return
    sys.meta_path.remove(_finder)
    _tensor_methods.unbind()
    for name in _names():
        del sys.modules[name]


@contextmanager
def installed() -> Iterator[None]:
    """`install` for the length of a ``with`` block; modules imported in it stay with who has them.

    Example:
        >>> import plait_torch
        >>> with plait_torch.installed():
        ...     import torch
        >>> torch.zeros(2)
        tensor([0., 0.])
    """
    before = is_installed()
    install()
    try:
        yield
    finally:
        if not before:
            uninstall()


def _names() -> list[str]:
    return [name for name in sys.modules if name == "torch" or name.startswith("torch.")]
