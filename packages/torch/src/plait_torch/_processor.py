"""`torch.cpu.get_capabilities`: what the processor has, as Linux tells it."""

from __future__ import annotations

import os
import pathlib
import platform
from typing import Any

__all__ = ["get_capabilities"]

# Linux' names of instruction sets of x86-64, by PyTorch's; others differ by underscores at most
_NAMES = {
    "sse3": "pni",
    "lzcnt": "abm",
    "bmi": "bmi1",
    "fma3": "fma",
    "sha": "sha_ni",
}
_SETS = """
sse sse2 sse3 ssse3 sse4_1 sse4_2 sse4a avx avx2 avx_vnni avx_ne_convert avx_vnni_int8
avx_vnni_int16 avx512_f avx512_cd avx512_dq avx512_bw avx512_vl avx512_ifma avx512_vbmi avx512_vbmi2
avx512_bitalg avx512_vpopcntdq avx512_vnni avx512_bf16 avx512_fp16 avx512_vp2intersect avx512_4vnniw
avx512_4fmaps avx10_1 avx10_2 amx_tile amx_int8 amx_bf16 amx_fp16 fma3 fma4 f16c bmi bmi2 popcnt
lzcnt aes sha clflush clflushopt clwb
"""


def _cpuinfo() -> list[dict[str, str]]:
    """Return what /proc/cpuinfo says of each logical core."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return []
    lines = ([line.partition(":") for line in part.splitlines()] for part in text.split("\n\n"))
    return [{key.strip(): value.strip() for key, _, value in part} for part in lines if part]


def _cache_size(index: int) -> int:
    """Return the bytes of a cache of the first core, 0 if it is not known."""
    path = pathlib.Path(f"/sys/devices/system/cpu/cpu0/cache/index{index}/size")
    try:
        text = path.read_text(encoding="ascii").strip()
        return int(text.rstrip("KM")) << {"K": 10, "M": 20}.get(text[-1:], 0)
    except (OSError, ValueError):
        return 0


def get_capabilities() -> dict[str, Any]:
    """Return the name of the processor, the numbers of its cores, caches and instruction sets.

    Returns:
        Numbers in bytes of caches, of cores and sockets, and for each instruction set whether the
        processor has it. On other processors than x86-64 the instruction sets have Linux' names.

    Example:
        >>> from plait_torch._processor import get_capabilities
        >>> get_capabilities()["num_logical_cores"] >= 1
        True
    """
    cores = _cpuinfo()
    first = cores[0] if cores else {}
    has = set(first.get("flags", first.get("Features", "")).split())
    places = {
        (core.get("physical id"), core.get("core id", str(i))) for i, core in enumerate(cores)
    }
    if platform.machine() == "x86_64":
        compact = {name.replace("_", "") for name in has}
        sets = {name: _NAMES.get(name, name).replace("_", "") in compact for name in _SETS.split()}
    else:
        sets = dict.fromkeys(sorted(has), True)
    return {
        **sets,
        "architecture": platform.machine(),
        "cpu_name": first.get("model name", platform.machine()),
        "num_sockets": len({core.get("physical id") for core in cores}) or 1,
        "num_physical_cores": len(places) or 1,
        "num_logical_cores": len(cores) or os.cpu_count() or 1,
        "l1d_cache_size": _cache_size(0),
        "l2_cache_size": _cache_size(2),
    }
