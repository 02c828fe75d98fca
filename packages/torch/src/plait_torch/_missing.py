"""Names that PyTorch has and plait does not, with the workarounds of `modules.txt`."""

from __future__ import annotations

from plait_torch._tables import sections


def advice(fullname: str) -> str:
    """Return the workaround for a missing name, or for a module that contains it; "" if there is
    none.

    Example:
        >>> from plait_torch._missing import advice
        >>> advice("torch.export.Dim") == advice("torch.export") != ""
        True
    """
    name = fullname.removeprefix("torch.")
    ways = sections()["instead"]
    while name:
        if name in ways:
            return ways[name]
        name = name.rpartition(".")[0]
    return ""


class MissingName(AttributeError):
    """A name of PyTorch without a counterpart in plait."""


class MissingModule(ModuleNotFoundError):
    """A module of PyTorch without a counterpart in plait."""


def explain(fullname: str) -> str:
    """Return the error text for a missing name, with the workaround if there is one."""
    way = advice(fullname)
    return f"plait_torch: {fullname} is not available" + (f"; {way}" if way else "")
