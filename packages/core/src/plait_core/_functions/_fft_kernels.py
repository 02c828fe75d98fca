"""The kernels of Fourier transforms: NumPy's pocketfft, imported at the first transform."""

from __future__ import annotations

from typing import Any

import plait_abi
from plait_core._core import is_reproducible


def _put(name: str, out: Any, function: str, x: Any, *sizes: Any, **settings: Any) -> None:
    """Write the result of NumPy's transform; infinity and nan are results and give no warnings."""
    if is_reproducible():
        raise NotImplementedError(
            f"{name}: there is no way to compute it with the same bits on every processor, which "
            "set_reproducible(True) asks for"
        )
    import numpy as np

    with np.errstate(all="ignore"):
        out.numpy()[...] = getattr(np.fft, function)(x.numpy(), *sizes, **settings)


def _c2c(x: Any, dim: tuple[int, ...], norm: Any, forward: bool, out: Any) -> None:
    _put("fft_c2c", out, "fftn" if forward else "ifftn", x, axes=dim, norm=norm)


def _r2c(x: Any, dim: tuple[int, ...], norm: Any, onesided: bool, out: Any) -> None:
    x = x.float() if x.itemsize == 2 else x  # NumPy does not have bfloat16 without ml_dtypes
    _put("fft_r2c", out, "rfftn" if onesided else "fftn", x, axes=dim, norm=norm)


def _c2r(x: Any, dim: tuple[int, ...], norm: Any, last: int, out: Any) -> None:
    sizes = [*(x.shape[d] for d in dim[:-1]), last]
    _put("fft_c2r", out, "irfftn", x, sizes, axes=dim, norm=norm)


def register() -> None:
    """Register the kernels; before NumPy 2 single precision is computed in double and rounded."""
    plait_abi.kernel("fft_c2c", _c2c)
    plait_abi.kernel("fft_r2c", _r2c)
    plait_abi.kernel("fft_c2r", _c2r)
