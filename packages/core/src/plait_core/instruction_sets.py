"""The instruction sets that kernels are built for, and the one that this process uses."""

from __future__ import annotations

import os
import pathlib

import plait_core._core as _core

__all__ = ["LIBRARIES", "kernel_levels", "kernel_library"]

LIBRARIES = pathlib.Path(__file__).parent / "lib"
"""The folder of the kernel libraries."""


def kernel_library() -> str:
    """Return the stem of the best kernel library for this processor.

    ``PLAIT_CPU=base`` or ``PLAIT_CPU=avx2`` in the environment chooses another one.

    Example:
        >>> from plait_core.instruction_sets import kernel_library
        >>> kernel_library() in ("plait_cpu_base", "plait_cpu_avx2")
        True
    """
    setting = os.environ.get("PLAIT_CPU", "")
    if setting not in ("", "base", "avx2"):
        raise ValueError(f"PLAIT_CPU: base or avx2 is required; got {setting!r}")
    if setting == "avx2" and not _core._cpu_supports_avx2():
        raise ValueError("PLAIT_CPU: this processor does not have avx2")
    if setting:
        return f"plait_cpu_{setting}"
    return "plait_cpu_avx2" if _core._cpu_supports_avx2() else "plait_cpu_base"


def kernel_levels() -> list[str]:
    """Return the values of ``PLAIT_CPU`` that this processor and this installation can run.

    Example:
        >>> from plait_core.instruction_sets import kernel_levels
        >>> set(kernel_levels()) <= {"base", "avx2"}
        True
    """
    levels = ["base", "avx2"] if _core._cpu_supports_avx2() else ["base"]
    return [name for name in levels if (LIBRARIES / f"libplait_cpu_{name}.so").exists()]
