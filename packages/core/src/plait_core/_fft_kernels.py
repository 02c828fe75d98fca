"""The kernels of Fourier transforms: NumPy's pocketfft, which is imported at the first of them."""

from __future__ import annotations

from typing import Any

import plait_abi
from plait_abi.imports import import_module

__all__ = ["register"]


def _put(out: Any, function: str, x: Any, *sizes: Any, **settings: Any) -> None:
    """Write what NumPy's transform gives; infinity and nan are results, not warnings."""
    np = import_module("numpy")

    with np.errstate(all="ignore"):
        out.numpy()[...] = getattr(np.fft, function)(x.numpy(), *sizes, **settings)


def _c2c(x: Any, dim: tuple[int, ...], norm: Any, forward: bool, out: Any) -> None:
    _put(out, "fftn" if forward else "ifftn", x, axes=dim, norm=norm)


def _r2c(x: Any, dim: tuple[int, ...], norm: Any, onesided: bool, out: Any) -> None:
    x = x.float() if x.itemsize == 2 else x  # NumPy may have no bfloat16
    _put(out, "rfftn" if onesided else "fftn", x, axes=dim, norm=norm)


def _c2r(x: Any, dim: tuple[int, ...], norm: Any, last: int, out: Any) -> None:
    sizes = [*(x.shape[d] for d in dim[:-1]), last]
    _put(out, "irfftn", x, sizes, axes=dim, norm=norm)


def register() -> None:
    """Register them; single precision stays single from NumPy 2 on, and is rounded to before."""
    plait_abi.kernel("fft_c2c", _c2c)
    plait_abi.kernel("fft_r2c", _r2c)
    plait_abi.kernel("fft_c2r", _c2r)
