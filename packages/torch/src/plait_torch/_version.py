"""`torch.version`: the version of PyTorch whose names and semantics these are."""

from __future__ import annotations

import re
from typing import Any

import plait

__all__ = ["TorchVersion", "__version__", "cuda", "debug", "git_version", "hip", "xpu"]


class TorchVersion(str):
    """A version that compares with other versions, as texts or tuples, by its numbers.

    Example:
        >>> from plait_torch._version import TorchVersion
        >>> TorchVersion("2.13.0+plait") >= "2.4", TorchVersion("2.13.0") < (2, 9)
        (True, False)
    """

    __slots__ = ()

    def _pair(self, other: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        one, two = _release(self), _release(other)
        size = max(len(one), len(two))
        return one + (0,) * (size - len(one)), two + (0,) * (size - len(two))

    def __lt__(self, other: Any) -> bool:
        one, two = self._pair(other)
        return one < two

    def __le__(self, other: Any) -> bool:
        one, two = self._pair(other)
        return one <= two

    def __gt__(self, other: Any) -> bool:
        one, two = self._pair(other)
        return one > two

    def __ge__(self, other: Any) -> bool:
        one, two = self._pair(other)
        return one >= two

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple):
            one, two = self._pair(other)
            return one == two
        return str.__eq__(self, other) if isinstance(other, str) else False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def _release(version: Any) -> tuple[int, ...]:
    """Return the numbers of a version: (2, 13, 0) of "2.13.0+plait" and of (2, 13, 0)."""
    if isinstance(version, tuple):
        return tuple(int(part) for part in version if str(part).isdigit())
    match = re.match(r"\s*v?(\d+(?:\.\d+)*)", str(version))
    if match is None:
        raise TypeError(f"TorchVersion: a version such as '2.4' is required, got {version!r}")
    return tuple(int(part) for part in match.group(1).split("."))


__version__ = TorchVersion("2.13.0+plait")
cuda: str | None  # by `__getattr__`
hip = None
xpu = None
git_version = "plait"
debug = False


def __getattr__(name: str) -> Any:
    """Return `cuda`: the version of CUDA of plait-cuda; None where there is no device."""
    if name == "cuda":
        return "13.0" if plait.cuda.is_available() else None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
