"""The report of all registrations and of the packages that made them."""

from __future__ import annotations

import collections
import importlib.metadata
import sys
from typing import NamedTuple

from plait_abi import binding
from plait_abi.components import chosen


class Record(NamedTuple):
    """One registration.

    ``kind`` is component, plugin, role, layer, kernel, observer or fallback; ``active`` says
    whether it is in use, and for a component whether it is loaded. ``device`` is the device type of
    kernels, of the roles that devices have and of fallbacks, else empty; ``calls`` is the number of
    calls of an operator that ran on the CPU instead, of fallbacks.

    Example:
        >>> import plait_abi, plait_core
        >>> kernels = [r for r in plait_abi.records() if (r.kind, r.name) == ("kernel", "mm")]
        >>> any(record.active for record in kernels)
        True
    """

    kind: str
    name: str
    provider: str
    version: str
    active: bool
    device: str = ""
    calls: int = 0


_MOST_ALIKE = 8  # registrations of one kind and provider that the table lists one by one


class Report(tuple[Record, ...]):
    """The lines of a report, each a `Record`; as text, also in a Python prompt, it is their table.

    Each line of the table has kind, name, provider and version; what is registered but not in use
    is in brackets. Names of entries for a device other than the CPU end with the name of the
    device. A fallback to the CPU has the number of calls in place of the version. More than eight
    registrations that differ in their names alone, such as all kernels of a library, are one line
    with their number; iteration gives each of them.

    Example:
        >>> import plait_abi, plait_core
        >>> report = plait_abi.report()
        >>> "cpu" in {record.device for record in report if record.kind == "kernel"}
        True
    """

    __slots__ = ()

    def __str__(self) -> str:
        alike = collections.Counter(map(_without_name, self))
        lines = [_cells(record) for record in self if alike[_without_name(record)] <= _MOST_ALIKE]
        for record, count in alike.items():
            if count > _MOST_ALIKE:
                lines.append(_cells(record._replace(name=f"{count} names")))
        widths = [max((len(line[i]) for line in lines), default=0) for i in range(3)]
        return "\n".join(
            "  ".join([*map(str.ljust, line[:3], widths), line[3]]).rstrip() for line in lines
        )

    __repr__ = __str__


def _without_name(record: Record) -> Record:
    """Return what a record is beside its name; fallbacks count calls, and are never joined."""
    return record if record.kind == "fallback" else record._replace(name="")


def _cells(record: Record) -> tuple[str, str, str, str]:
    if record.kind == "component":
        state = "" if record.active else " (not loaded)"
        return (record.kind, record.name, record.provider, record.version + state)
    name = record.name if record.device in ("", "cpu") else f"{record.name} on {record.device}"
    if record.kind == "fallback":
        return (record.kind, name, record.provider, f"{record.calls} calls on the CPU")
    return (record.kind, name if record.active else f"({name})", record.provider, record.version)


def records() -> list[Record]:
    """Return everything that is registered with the runtime.

    >>> import plait_abi
    >>> [r.provider for r in plait_abi.records() if (r.kind, r.name) == ("role", "host")]
    ['python']
    """
    return [
        Record(kind or "", name or "", provider or "", version or "", active, device, calls)
        for kind, name, provider, version, active, device, calls in binding.records()
    ]


def report() -> Report:
    """Say which component fills which role, and which library provides which kernels.

    Each line has kind, name, provider and version. A registration that is not in use is in
    brackets. Components that are installed but not loaded are marked as such. Operators that ran on
    the CPU for a device that has no kernel for them (``plait.use(fallback=...)``) have a line each
    of the kind fallback, with the number of calls.

    Returns:
        The lines; a prompt shows them as a table, and ``print(report())`` prints it.

    Example:
        >>> import plait_abi
        >>> lines = plait_abi.report()
        >>> [line.provider for line in lines if line.name == "host"]
        ['python']
        >>> str(lines).splitlines()[0].split()[:3]
        ['component', 'autograd', 'plait_autograd']
    """
    components = (_component(name, module) for name, module in sorted(chosen().items()))
    return Report([*components, *records()])


def _component(name: str, module: str) -> Record:
    try:
        version = importlib.metadata.version(module.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        version = getattr(sys.modules.get(module), "__version__", "not installed")
    return Record("component", name, module, version, module in sys.modules)
