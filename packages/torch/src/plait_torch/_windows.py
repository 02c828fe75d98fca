"""`torch.signal.windows`: window functions of M points.

``sym=False`` leaves the last of M + 1 points out, as spectra want it. Formulas: F. J. Harris, "On
the use of windows for harmonic analysis with the discrete Fourier transform" (1978).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import plait

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _window(
    name: str,
    M: int,
    sym: bool,
    formula: Callable[[Any, int], Any],
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """The formula at the points 0 to M - 1 (float64) and the largest one, in the wanted dtype."""
    if M < 0:
        raise plait.ArgumentError(f"{name}: `M` must not be negative; got {M}")
    if layout not in (None, plait.strided):
        raise plait.ArgumentError(f"{name}: `layout` must be strided; got {layout}")
    dtype = dtype or plait.get_default_dtype()
    if dtype not in (plait.float32, plait.float64):
        raise plait.ArgumentError(f"{name}: `dtype` must be float32 or float64; got {dtype}")
    points = plait.arange(M, dtype=plait.float64, device=device)
    values = formula(points, M - 1 if sym else M) if M > 1 else plait.ones_like(points)
    return values.to(dtype).requires_grad_(requires_grad)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Any:
    """A triangle from 0 to 1 to 0: ``1 - |2 n / N - 1|``.

    Example:
        >>> from plait_torch._windows import bartlett
        >>> bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window("bartlett", M, sym, lambda n, last: 1 - (2 * n / last - 1).abs(), **options)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Any:
    """The sum of ``(-1)^i a_i cos(2 pi i n / N)``.

    Example:
        >>> from plait_torch._windows import general_cosine
        >>> general_cosine(3, a=[0.5, 0.5])
        tensor([0., 1., 0.])
    """
    factors = list(a)
    if not factors:
        raise plait.ArgumentError("general_cosine: `a` must not be empty")

    def formula(n: Any, last: int) -> Any:
        angle = n * (2 * math.pi / last)
        terms = ((-1) ** i * f * (angle * i).cos() for i, f in enumerate(factors))
        return sum(terms, plait.zeros_like(n))

    return _window("general_cosine", M, sym, formula, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Any:
    """The general cosine of 0.42, 0.5 and 0.08."""
    return general_cosine(M, a=(0.42, 0.5, 0.08), sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Any:
    """The general cosine of Nuttall's four factors, which add up to 1."""
    return general_cosine(M, a=(0.3635819, 0.4891775, 0.1365995, 0.0106411), sym=sym, **options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Any:
    """The general cosine of ``alpha`` and ``1 - alpha``."""
    return general_cosine(M, a=(alpha, 1 - alpha), sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Any:
    """``0.54 - 0.46 cos(2 pi n / N)``."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Any:
    """``sin(pi n / N)^2``.

    Example:
        >>> from plait_torch._windows import hann
        >>> hann(4, sym=False)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Any:
    """Half a period of the sine, at the middles of M (or M + 1) intervals."""

    def formula(n: Any, last: int) -> Any:
        return ((n + 0.5) * (math.pi / (last + 1))).sin()

    return _window("cosine", M, sym, formula, **options)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any
) -> Any:
    """``exp(-|n - center| / tau)``; the centre is the middle, and can be chosen where not `sym`."""
    if tau <= 0:
        raise plait.ArgumentError(f"exponential: `tau` must be positive; got {tau}")
    if sym and center is not None:
        raise plait.ArgumentError("exponential: `center` must be None where `sym` is true")

    def formula(n: Any, last: int) -> Any:
        return (-(n - (last / 2 if center is None else center)).abs() / tau).exp()

    return _window("exponential", M, sym, formula, **options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Any:
    """``exp(-(n - middle)^2 / (2 std^2))``."""
    if std <= 0:
        raise plait.ArgumentError(f"gaussian: `std` must be positive; got {std}")

    def formula(n: Any, last: int) -> Any:
        return (-(((n - last / 2) / std) ** 2) / 2).exp()

    return _window("gaussian", M, sym, formula, **options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Any:
    """``I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta)``, I0 the modified Bessel function."""
    if beta < 0:
        raise plait.ArgumentError(f"kaiser: `beta` must not be negative; got {beta}")

    def formula(n: Any, last: int) -> Any:
        inside = (1 - (2 * n / last - 1) ** 2).clamp(min=0)
        top = plait.full((), beta, dtype=plait.float64)
        return plait.special.i0(beta * inside.sqrt()) / plait.special.i0(top)

    return _window("kaiser", M, sym, formula, **options)
