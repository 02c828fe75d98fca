"""The report of all registrations and of the packages that made them."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import IO, NamedTuple

from plait_abi import _binding
from plait_abi.components import chosen

__all__ = ["Record", "records", "report"]


class Record(NamedTuple):
    """One registration; ``kind`` is plugin, role, layer or kernel, ``active`` if it is in force."""

    kind: str
    name: str
    provider: str
    version: str
    active: bool


def records() -> list[Record]:
    """Return everything that is registered with the runtime.

    >>> import plait_abi
    >>> [r.provider for r in plait_abi.records() if (r.kind, r.name) == ("role", "host")]
    ['python']
    """
    return [
        Record(kind or "", name or "", provider or "", version or "", active)
        for kind, name, provider, version, active in _binding.records()
    ]


def report(file: IO[str] | None = None) -> str:
    """Print which component fills which role and which library provides which kernels.

    Each line has kind, name, provider and version. A registration that is not in force is in
    brackets. Components that are installed but not loaded are marked as such.

    Returns:
        The text that was printed.
    """
    lines = [_component(name, module) for name, module in sorted(chosen().items())]
    for kind, name, provider, version, active in records():
        lines.append((kind, name if active else f"({name})", provider, version))
    widths = [max(len(line[i]) for line in lines) for i in range(3)]
    text = "\n".join(
        "  ".join(
            [*(part.ljust(width) for part, width in zip(line, widths, strict=False)), line[3]]
        ).rstrip()
        for line in lines
    )
    print(text, file=file)
    return text


def _component(name: str, module: str) -> tuple[str, str, str, str]:
    try:
        version = importlib.metadata.version(module.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        version = getattr(sys.modules.get(module), "__version__", "not installed")
    state = "" if module in sys.modules else " (not loaded)"
    return ("component", name, module, version + state)
