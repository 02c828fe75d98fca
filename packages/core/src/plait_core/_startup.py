"""Loads the operator set, the runtime library and the kernels when plait_core is imported."""

from __future__ import annotations

import importlib.util
import os
import pathlib
from collections.abc import Callable
from functools import partial

import plait_core._core as _core
from plait_abi import _binding, paths

__all__ = ["device_setup", "kernel_library", "start"]


def kernel_library() -> str:
    """Return the stem of the best kernel library for this processor.

    ``PLAIT_CPU=base`` or ``PLAIT_CPU=avx2`` in the environment chooses another one.
    """
    wanted = os.environ.get("PLAIT_CPU", "")
    if wanted not in ("", "base", "avx2"):
        raise ValueError(f"PLAIT_CPU: one of base, avx2 is required; got {wanted!r}")
    if wanted == "avx2" and not _core._cpu_supports_avx2():
        raise ValueError("PLAIT_CPU: avx2 is asked for, which this processor does not have")
    if wanted:
        return f"plait_cpu_{wanted}"
    return "plait_cpu_avx2" if _core._cpu_supports_avx2() else "plait_cpu_base"


def _check_numbers() -> None:
    """Raise for environment variables whose numbers the libraries would ignore."""
    threads = os.environ.get("PLAIT_NUM_THREADS") or "1"
    if not (threads.isascii() and threads.isdigit() and int(threads) >= 1):
        raise ValueError(f"PLAIT_NUM_THREADS: a positive integer is required; got {threads!r}")
    kept = os.environ.get("PLAIT_CACHE_BYTES") or "0"
    if not (kept.isascii() and kept.isdigit() and int(kept) < 2**63):
        raise ValueError(f"PLAIT_CACHE_BYTES: a number of bytes is required; got {kept!r}")


def start() -> None:
    """Load the libraries in the order of their dependencies."""
    _check_numbers()
    ours = pathlib.Path(__file__).parent / "lib"
    best = kernel_library()
    _load(paths("plait_ops").get("libplait_ops.so"), "plait-ops")
    _load(str(ours / "libplait_core.so"), "plait-core")
    kernels = [str(ours / "libplait_cpu_base.so")]
    faster = ours / f"lib{best}.so"
    if best != "plait_cpu_base" and (faster.exists() or os.environ.get("PLAIT_CPU")):
        kernels.append(str(faster))
    for library in kernels:
        _load(library, "plait-core")
    _use_blas(kernels)
    _core._start()


def device_setup() -> Callable[[], None] | None:
    """Return a function, to be pickled, that loads the devices of this process in another one."""
    libraries = _binding.device_libraries()
    return partial(load_devices, libraries) if libraries else None


def load_devices(libraries: list[str]) -> None:
    """Load the libraries of devices; those that are loaded are left alone."""
    for library in libraries:
        _binding.load(library)


def _load(path: str | None, package: str) -> None:
    if path is None or not os.path.exists(path):
        raise ImportError(
            f"plait_core: {package} is installed without its compiled library"
            + (f" {path}" if path else "")
            + f"; install it again (pip install --force-reinstall {package})"
        )
    _binding.load(path)


def _use_blas(libraries: list[str]) -> None:
    """Give the kernels the path of the packaged BLAS, which they open at the first matrix product.

    A library that the user names is opened at once, so that an unusable one is an error here.
    """
    packaged = "" if os.environ.get("PLAIT_BLAS_LIBRARY") else _packaged_blas()
    for library in libraries:
        refusal = _core._use_blas(library, packaged)
        if refusal is not None:
            raise ValueError(refusal)


def _packaged_blas() -> str:
    """Return the path of the library in the package scipy_openblas32, or ""."""
    spec = importlib.util.find_spec("scipy_openblas32")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(pathlib.Path(folder, "lib").glob("libscipy_openblas*.so")):
            return str(path)
    return ""
