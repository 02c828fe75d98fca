"""The peak of the processor: multiply-adds of float32 in registers, and bytes of memory."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from plait_profiler import Peak, machine_peak

__all__ = ["flags_for", "hardware_peak"]

SOURCE = Path(__file__).resolve().parent / "fma_peak.c"


def flags_for(cpuinfo: str, level: str) -> list[str]:
    """Return the compiler's flags for the widest float32 registers that may be used.

    Args:
        cpuinfo: the text of ``/proc/cpuinfo``.
        level: the value of ``PLAIT_CPU``, which limits kernels in the same way.
    """
    words = set(cpuinfo.split())
    if level not in ("base", "avx2") and "avx512f" in words:
        return ["-DWIDTH=16", "-mavx512f"]
    if level != "base" and {"avx2", "fma"} <= words:
        return ["-DWIDTH=8", "-mavx2", "-mfma"]
    return ["-DWIDTH=4"]


@functools.cache
def hardware_peak(threads: int) -> Peak:
    """Measure multiply-adds in registers, counted as two operations, and the bytes of a large copy.

    The loop is compiled with ``CC``, else ``cc``; without a compiler the rate of a large matrix
    product, which is lower, stands for it.
    """
    peak = machine_peak()
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        return peak
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text()
    except OSError:
        cpuinfo = ""
    flags = flags_for(cpuinfo, os.environ.get("PLAIT_CPU", ""))
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "fma_peak")
        command = [
            *compiler,
            "-O3",
            "-std=c11",
            "-D_GNU_SOURCE",
            *flags,
            str(SOURCE),
            "-o",
            program,
        ]
        subprocess.run([*command, "-lpthread"], check=True)
        done = subprocess.run([program, str(threads)], capture_output=True, text=True, check=True)
    return Peak(max(float(done.stdout), peak.flops), peak.bandwidth)
