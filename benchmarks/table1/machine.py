"""The description of the machine on which a page was measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path

__all__ = ["SETS", "description", "described"]

MAKERS = {"AuthenticAMD": "AMD", "GenuineIntel": "Intel"}
SETS = (
    "sse4_2",
    "avx2",
    "fma",
    "avx512f",
    "avx512_bf16",
    "avx512_vnni",
    "amx_tile",
    "asimd",
    "sve",
)
"""The instruction sets that are named if the processor has them, as Linux calls them."""


def description() -> dict[str, str]:
    """Return the processor's maker and instruction sets, processors, memory and system."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    result = described(text)
    if hasattr(os, "sched_getaffinity"):
        result["processors"] = str(len(os.sched_getaffinity(0)))
    else:
        result["processors"] = str(os.cpu_count())
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        result["memory"] = f"{memory / 2**30:.0f} GiB"
    result["system"] = platform.system()
    result["python"] = platform.python_version()
    if hasattr(os, "getloadavg"):
        result["load when it began"] = f"{os.getloadavg()[0]:.1f}"
    return result


def described(cpuinfo: str) -> dict[str, str]:
    """Return maker and instruction sets by the text of ``/proc/cpuinfo``."""
    lines = dict(
        (part.strip() for part in line.split(":", 1))
        for line in cpuinfo.splitlines()
        if ":" in line
    )
    maker = lines.get("vendor_id", "")
    flags = lines.get("flags", lines.get("Features", "")).split()
    return {
        "processor": f"{MAKERS.get(maker, maker or 'unknown')} {platform.machine()}",
        "instruction sets": ", ".join(name for name in SETS if name in flags) or "unknown",
    }
