"""PyTorch's functions about CUDA devices; plait has no such devices.

>>> import plait_core as pc
>>> device = "cuda" if pc.cuda.is_available() else "cpu"
>>> device
'cpu'
"""

from __future__ import annotations

from typing import NoReturn

from plait_core._namespaces import shown as _shown

__all__ = [
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
]
__dir__ = _shown(globals())


def is_available() -> bool:
    """Return False: plait has no CUDA devices.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.is_available()
        False
    """
    return False


def device_count() -> int:
    """Return 0, the number of CUDA devices.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.device_count()
        0
    """
    return 0


def is_initialized() -> bool:
    """Return False: no CUDA device is in use.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.is_initialized()
        False
    """
    return False


def manual_seed(seed: int) -> None:
    """Seed the current CUDA device. Plait has none, so this does nothing.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.manual_seed(0)
    """


def manual_seed_all(seed: int) -> None:
    """Seed all CUDA devices. Plait has none, so this does nothing.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.manual_seed_all(0)
    """


def empty_cache() -> None:
    """Free the cached memory of CUDA devices. Plait has none, so this does nothing.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.empty_cache()
    """


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"module 'plait_core.cuda' has no attribute {name!r}: plait has no component for CUDA; ask "
        "plait.cuda.is_available() first"
    )
