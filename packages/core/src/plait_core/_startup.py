"""Loads the operator set, the runtime library and the kernels when plait_core is imported."""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import platform
from collections.abc import Callable

import plait_core._core as _core
from plait_abi import binding, paths
from plait_core.instruction_sets import LIBRARIES, kernel_library

_kernels: list[str] = []  # the libraries of kernels that are loaded


def _check_numbers() -> None:
    """Raise for environment variables whose numbers the libraries would ignore."""
    threads = os.environ.get("PLAIT_NUM_THREADS") or "1"
    if not (threads.isascii() and threads.isdigit() and int(threads) >= 1):
        raise ValueError(f"PLAIT_NUM_THREADS: a positive integer is required; got {threads!r}")
    setting = os.environ.get("PLAIT_CACHE_BYTES") or "0"
    if not (setting.isascii() and setting.isdigit() and int(setting) < 2**63):
        raise ValueError(f"PLAIT_CACHE_BYTES: a number of bytes is required; got {setting!r}")


def start() -> None:
    """Load the libraries in the order of their dependencies."""
    _check_numbers()
    best = kernel_library()
    _load(paths("plait_ops").get("libplait_ops.so"), "plait-ops")
    _load(str(LIBRARIES / "libplait_core.so"), "plait-core")
    base, faster = (LIBRARIES / f"lib{name}.so" for name in ("plait_cpu_base", best))
    if base.exists() or base == faster or not faster.exists():
        _kernels.append(str(base))
    if base != faster and (faster.exists() or os.environ.get("PLAIT_CPU")):
        _kernels.append(str(faster))
    for library in _kernels:
        _load(library, "plait-core")
    _use_blas(_kernels)
    _core._start()


def set_reproducible(mode: bool) -> None:
    """Make results have the same bits on every x86-64 processor and for every batch size.

    Sums, products and elementary functions are computed in one order, which depends on the shapes
    alone, and fused operations are emulated where the processor has none. Operators without such a
    way, those of LAPACK for example, raise a NotImplementedError that names them. The mode implies
    `set_batch_invariant`; docs/guides/reproducibility.md says what is promised and what it costs.

    Args:
        mode: Whether it is on.

    Example:
        >>> import plait_core as pc
        >>> pc.set_reproducible(True)
        >>> x, w = pc.randn(8, 300), pc.randn(300, 50)
        >>> y = pc.softmax(x @ w, 1)  # the same bits with and without AVX2
        >>> pc.set_reproducible(False)
    """
    if mode and _kernels[-1].endswith("libplait_cpu_base.so"):
        _load_exact()
    _core._set_reproducible(mode)


@functools.cache
def _load_exact() -> None:
    """Load the kernels that emulate fused operations, where the base ones have none."""
    if platform.machine() in ("x86_64", "AMD64"):
        _load(str(LIBRARIES / "libplait_cpu_exact.so"), "plait-core")


def device_setup() -> Callable[[], None] | None:
    """Return a function, to be pickled, that loads the devices of this process in another one."""
    libraries = binding.device_libraries()
    return functools.partial(load_devices, libraries) if libraries else None


def load_devices(libraries: list[str]) -> None:
    """Load the libraries of devices; those that are loaded are left alone."""
    for library in libraries:
        binding.load(library)


def _load(path: str | None, package: str) -> None:
    if path is None or not os.path.exists(path):
        reason = ""
        if path and os.path.basename(path).startswith("libplait_cpu_"):
            reason = (
                "it was built for one kind of processor (PLAIT_LEVELS=native) or is incomplete: "
            )
        raise ImportError(
            f"plait_core: {package} is installed without its compiled library"
            + (f" {path}" if path else "")
            + f"; {reason}install it again (pip install --force-reinstall {package})"
        )
    binding.load(path)


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
