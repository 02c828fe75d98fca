"""What a report of a fault needs: versions, processor, threads, components and variables."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from collections.abc import Callable, Iterator
from importlib import metadata

from plait_abi.components import require

__all__ = ["describe"]

# what plait loads from other projects, if it is installed
_OTHERS = ("numpy", "scipy-openblas32", "cloudpickle", "onnx", "mpi4py", "ray", "torch")
_SECRET = "SECRET"  # variables with this in their name are shown without their value

Facts = Iterator[tuple[str, str]]


def describe() -> str:
    """Return the text that ``python -m plait`` prints.

    What cannot be found out is shown as its error, so that it works on a damaged installation.

    Example:
        >>> from plait._environment import describe
        >>> describe().splitlines()[0]
        'plait'
    """
    lines: list[str] = []
    for title, section in _SECTIONS.items():
        lines.append(title)
        try:
            lines.extend(f"  {name:<24} {text}" for name, text in section())
        except Exception as error:  # the rest of the text is needed all the more
            lines.append(f"  {type(error).__name__}: {error}")
    return "\n".join(lines)


def _packages() -> Facts:
    found = {str(each.metadata["Name"]).lower(): each.version for each in metadata.distributions()}
    ours = sorted(name for name in found if name == "plait" or name.startswith("plait-"))
    for name in (*ours, *(name for name in _OTHERS if name in found)):
        yield name, found[name]


def _python() -> Facts:
    lock = "without" if sysconfig.get_config_var("Py_GIL_DISABLED") else "with"
    yield "Python", f"{platform.python_version()}, {platform.python_implementation()}, {lock} GIL"
    yield "executable", sys.executable
    yield "system", platform.platform()
    if name := _name_of_system():
        yield "distribution", name


def _name_of_system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


def _processor() -> Facts:
    from plait_core.instruction_sets import kernel_levels, kernel_library

    core = require("core")
    yield "model", _model() or platform.machine()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield "processors", f"{os.cpu_count()}, of which this process may use {usable}"
    yield "kernels", f"{os.path.basename(kernel_library())}, of {', '.join(kernel_levels())}"
    yield "threads", str(core.get_num_threads())
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        yield "memory", f"{size / 2**30:.1f} GiB"


def _model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = (line.partition(":") for line in file)
            return next((text.strip() for name, _, text in lines if "model name" in name), "")
    except OSError:
        return ""


def _components() -> Facts:
    from plait_abi import report

    require("core")
    require("autograd")
    for record in report():
        if record.active and record.kind in ("component", "plugin", "role", "fallback"):
            device = f" ({record.device})" if record.device else ""
            yield f"{record.kind} {record.name}{device}", f"{record.provider} {record.version}"


def _variables() -> Facts:
    names = sorted(name for name in os.environ if name.startswith("PLAIT_"))
    for name in names:
        yield name, "(set)" if _SECRET in name else os.environ[name]
    if not names:
        yield "PLAIT_*", "none is set"


_SECTIONS: dict[str, Callable[[], Facts]] = {
    "plait": _packages,
    "Python and system": _python,
    "processor": _processor,
    "components": _components,
    "environment variables": _variables,
}
