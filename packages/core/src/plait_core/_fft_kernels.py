"""The kernels of Fourier transforms: NumPy's pocketfft, which is imported at the first of them."""

from __future__ import annotations

from typing import Any

import plait_abi

__all__ = ["register"]


def _c2c(x: Any, dim: tuple[int, ...], norm: Any, forward: bool, out: Any) -> None:
    import numpy as np

    transform = np.fft.fftn if forward else np.fft.ifftn
    out.numpy()[...] = transform(x.numpy(), axes=dim, norm=norm)


def _r2c(x: Any, dim: tuple[int, ...], norm: Any, onesided: bool, out: Any) -> None:
    import numpy as np

    transform = np.fft.rfftn if onesided else np.fft.fftn
    x = x.float() if x.itemsize == 2 else x  # NumPy may have no bfloat16
    out.numpy()[...] = transform(x.numpy(), axes=dim, norm=norm)


def _c2r(x: Any, dim: tuple[int, ...], norm: Any, last: int, out: Any) -> None:
    import numpy as np

    sizes = [*(x.shape[d] for d in dim[:-1]), last]
    out.numpy()[...] = np.fft.irfftn(x.numpy(), sizes, axes=dim, norm=norm)


def register() -> None:
    """Register them; single precision stays single from NumPy 2 on, and is rounded to before."""
    plait_abi.kernel("fft_c2c", _c2c)
    plait_abi.kernel("fft_r2c", _r2c)
    plait_abi.kernel("fft_c2r", _c2r)
