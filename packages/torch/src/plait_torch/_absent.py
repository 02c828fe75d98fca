"""Dtypes and layouts of PyTorch that plait does not have: names for comparisons."""

from __future__ import annotations

from typing import Any

import plait
from plait_torch._missing import MissingName, explain

__all__ = ["DTYPES", "LAYOUTS", "Absent", "finfo"]

DTYPES = (
    "complex32", "chalf", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "float4_e2m1fn_x2", "qint8", "qint32", "quint8", "quint4x2", "quint2x4",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)),
)  # fmt: skip
LAYOUTS = ("jagged", "_mkldnn")


class Absent:
    """A dtype or a layout that does not exist in plait. Programs compare with such names and have
    tables of them.

    It is equal to no dtype or layout of a tensor, and its use raises an error with its name.

    Example:
        >>> import plait
        >>> from plait_torch._absent import Absent
        >>> eight_bits = Absent("float8_e5m2")
        >>> plait.ones(1).dtype == eight_bits
        False
        >>> eight_bits.itemsize
        Traceback (most recent call last):
        plait_torch._missing.MissingName: plait_torch: torch.float8_e5m2 is not available; use ...
    """

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self._name,)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise MissingName(explain(f"torch.{self._name}"), name=name, obj=self)


_made: dict[str, Absent] = {}


def _named(name: str) -> Absent:
    return _made.setdefault(name, Absent(name))


def __getattr__(name: str) -> Any:
    if name in DTYPES or name in LAYOUTS:
        return _named("complex32" if name == "chalf" else name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# bits of fraction, the largest number and the smallest normal one
_EIGHT = {
    "float8_e4m3fn": (3, 448.0, 2.0**-6),
    "float8_e4m3fnuz": (3, 240.0, 2.0**-7),
    "float8_e5m2": (2, 57344.0, 2.0**-14),
    "float8_e5m2fnuz": (2, 57344.0, 2.0**-15),
}


class finfo(plait.finfo):  # noqa: N801 - PyTorch's name
    """`plait.finfo`, also for the 8-bit floats that plait does not have.

    Example:
        >>> from plait_torch._absent import Absent, finfo
        >>> finfo(Absent("float8_e4m3fn")).max
        448.0
    """

    __slots__ = ()

    def __init__(self, type: Any = None) -> None:
        known = _EIGHT.get(type._name) if isinstance(type, Absent) else None
        if known is None:
            super().__init__(type)
            return
        fraction, largest, smallest = known
        fields = {"bits": 8, "eps": 2.0**-fraction, "dtype": type._name}
        fields |= {"max": largest, "min": -largest, "smallest_normal": smallest}
        for name, value in fields.items():
            setattr(self, name, value)  # slots of the base class
