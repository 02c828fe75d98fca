"""Dtypes and layouts of PyTorch that plait does not have: names for comparisons."""

from __future__ import annotations

from typing import Any

from plait_torch._missing import MissingName, explain

__all__ = ["DTYPES", "LAYOUTS", "Absent"]

DTYPES = (
    "complex32", "chalf", "float4_e2m1fn_x2", "qint8", "qint32", "quint8", "quint4x2", "quint2x4",
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
        >>> four_bits = Absent("quint4x2")
        >>> plait.ones(1).dtype == four_bits
        False
        >>> four_bits.itemsize
        Traceback (most recent call last):
        plait_torch._missing.MissingName: plait_torch: torch.quint4x2 is not available; ...
    """

    _name: str

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name
        self.__dict__["__module__"] = "torch"  # where pickles find it

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name

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
