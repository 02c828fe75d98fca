"""The standard's extension for Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plait_abi import binding
from plait_core._core import Tensor, get_default_dtype
from plait_core._namespaces import shown as _shown
from plait_core.array_api._operators import axes_of, call

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

__dir__ = _shown(globals())


def _one(name: str, doc: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Tensor:
        return call(f"fft_{name}", x, n, axis, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}, along one axis; `n` cuts it, or fills it up with 0."
    return function


def _several(name: str, doc: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Tensor:
        return call(f"fft_{name}", x, s, axes, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}, along several axes (None: all); `s` are the sizes to use there."
    return function


fft = _one("fft", "The discrete Fourier transform")
ifft = _one("ifft", "The inverse of `fft`")
rfft = _one("rfft", "The first half of `fft` of real numbers")
irfft = _one("irfft", "The inverse of `rfft`: real numbers")
hfft = _one("hfft", "The real transform of numbers whose second half is the conjugate of the first")
ihfft = _one("ihfft", "The inverse of `hfft`")
fftn = _several("fftn", "The discrete Fourier transform")
ifftn = _several("ifftn", "The inverse of `fftn`")
rfftn = _several("rfftn", "The half of `fftn` of real numbers that tells the other")
irfftn = _several("irfftn", "The inverse of `rfftn`: real numbers")


def _frequencies(steps: Tensor, n: int, d: float, dtype: Any) -> Tensor:
    kind = binding.dtype(dtype) if dtype is not None else get_default_dtype()
    return (steps.to("float64") / (n * d)).to(kind)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the frequencies of `fft`: ``0, 1, ..., -2, -1`` over ``n * d``."""
    half = (n - 1) // 2 + 1
    parts = [call("arange", half, device=device), call("arange", -(n // 2), 0, 1, device=device)]
    return _frequencies(call("cat", parts, 0), n, d, dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the frequencies of `rfft`: ``0, 1, ..., n // 2`` over ``n * d``."""
    return _frequencies(call("arange", n // 2 + 1, device=device), n, d, dtype)


def _shifted(x: Tensor, axes: Any, back: bool) -> Tensor:
    for axis in axes_of("fftshift", axes, x.ndim):
        half = x.shape[axis] // 2
        x = call("roll", x, -half if back else half, axis)
    return x


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return the frequencies in order, 0 in the middle."""
    return _shifted(x, axes, False)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Undo `fftshift`."""
    return _shifted(x, axes, True)
