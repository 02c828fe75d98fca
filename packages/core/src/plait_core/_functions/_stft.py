"""The short-time Fourier transform and its inverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import ArgumentError, DTypeError, ShapeError
from plait_abi.binding import operator
from plait_abi.frames import warn
from plait_core._core import Tensor, is_tensor


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    r"""Fourier transforms of windows that move over a signal.

    .. math:: X_{\omega, m} = \sum_{k=0}^{n - 1} w_k\, x_{m h + k}\, e^{-2 \pi i \omega k / n}

    with :math:`n` for `n_fft`, :math:`h` for `hop_length`.

    Args:
        input: the signal, of shape ``(length,)`` or ``(batch, length)``.
        n_fft: the number of samples of a transform.
        hop_length: samples from one window to the next; None: ``n_fft // 4``.
        win_length: samples of the window, put into the middle of `n_fft`; None: `n_fft`.
        window: of shape ``(win_length,)``; None: ones.
        center: pad both ends with ``n_fft // 2`` samples, so that window m is around ``m * hop``.
        pad_mode: "reflect", "constant" (zeros), "replicate" or "circular".
        normalized: divide by ``sqrt(n_fft)``.
        onesided: leave out the frequencies that follow from the others; None: for real numbers.
        return_complex: complex numbers, or pairs of real ones in a last dimension. Must be given
            for real numbers.

    Returns:
        Of shape ``(frequencies, windows)``, with the batch before it.

    Raises:
        TypeError: if `input` or `window` is no tensor.
        DTypeError: if `input` holds integers.
        ShapeError: for other shapes, or a signal that is too short.
        ValueError: for lengths out of range, an unknown `pad_mode`, ``onesided`` for complex
            numbers, or real numbers without `return_complex`.

    Example:
        >>> import plait_core as pc
        >>> x = pc.cos(pc.arange(64) * (2 * pc.pi * 2 / 8))
        >>> spectrum = pc.stft(x, 8, window=pc.hann_window(8), return_complex=True)
        >>> spectrum.shape, int(spectrum.abs()[:, 8].argmax())
        (plait.Size([5, 33]), 2)
    """
    _require_signal("stft", input)
    hop, width = _lengths("stft", n_fft, hop_length, win_length)
    result = _window("stft", window, width, n_fft, input)
    is_complex = input.dtype.is_complex or result.dtype.is_complex
    if return_complex is None:
        if not is_complex:
            raise ArgumentError(
                "stft: `return_complex` must be given for real numbers; True is right"
            )
        return_complex = True
    if not return_complex:
        warn(
            "stft with return_complex=False is deprecated. PyTorch will return complex numbers; "
            "plait.view_as_real of them gives the same pairs"
        )
    if onesided and is_complex:
        raise ArgumentError("stft: `onesided` must be False for complex numbers, got True")
    half = not is_complex if onesided is None else onesided
    x = input if input.ndim == 2 else input.unsqueeze(0)
    if center:
        x = _padded(x, n_fft // 2, pad_mode)
    if x.shape[-1] < n_fft:
        raise ShapeError(
            f"stft: the signal must have `n_fft` = {n_fft} samples at least, got {x.shape[-1]} of "
            f"`input` of shape {tuple(input.shape)}"
        )
    frames = x.unfold(-1, n_fft, hop) * result
    transform = operator("fft_rfft" if half else "fft_fft")
    spectrum: Tensor = transform(frames, norm="ortho" if normalized else None).transpose(1, 2)
    if input.ndim == 1:
        spectrum = spectrum.squeeze(0)
    if return_complex:
        return spectrum
    return operator("view_as_real")(spectrum.contiguous())  # type: ignore[no-any-return]


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Invert the short-time Fourier transform.

    The inverse transforms, weighted by the window, are added where they overlap and divided by the
    sum of the squared windows there: the least-squares estimate of the signal (Griffin and Lim,
    "Signal estimation from modified short-time Fourier transform", 1984).

    Args:
        input: complex, of shape ``(frequencies, windows)`` or with a batch before it.
        n_fft, hop_length, win_length, window, center, normalized: the arguments of `stft`.
        onesided: whether `input` has only half of the frequencies; None: its number of frequencies
            says so.
        length: samples of the signal; None: all samples of the windows.
        return_complex: return a complex signal; then `input` must have all frequencies.

    Raises:
        TypeError: if `input` or `window` is no tensor.
        DTypeError: if `input` isn't complex.
        ShapeError: for other shapes.
        ValueError: for lengths out of range, or if the windows give a sample the weight 0.

    Example:
        >>> import plait_core as pc
        >>> x, window = pc.randn(100), pc.hann_window(16)
        >>> spectrum = pc.stft(x, 16, window=window, return_complex=True)
        >>> y = pc.istft(spectrum, 16, window=window, length=100)
        >>> pc.allclose(x, y, atol=1e-5)
        True
    """
    if not is_tensor(input):
        raise TypeError(f"istft: `input` must be a Tensor, got {type(input).__name__}")
    if not input.dtype.is_complex:
        raise DTypeError(f"istft: `input` must be complex, got {input.dtype.name}")
    if input.ndim not in (2, 3) or input.numel() == 0:
        raise ShapeError(
            "istft: `input` must have shape (frequencies, windows) or a batch of such, and "
            f"elements; got {tuple(input.shape)}"
        )
    hop, width = _lengths("istft", n_fft, hop_length, win_length)
    x = input if input.ndim == 3 else input.unsqueeze(0)
    half = x.shape[1] != n_fft if onesided is None else onesided
    expected = n_fft // 2 + 1 if half else n_fft
    if x.shape[1] != expected:
        raise ShapeError(
            f"istft: `input` must have {expected} frequencies for `n_fft` = {n_fft}, got shape "
            f"{tuple(input.shape)}"
        )
    if return_complex and half:
        raise ArgumentError("istft: `return_complex` needs all frequencies, with onesided=False")
    result = _window("istft", window, width, n_fft, input.real)
    # for real signals the other half is the conjugate, as in PyTorch
    if not half and not return_complex:
        x, half = x[:, : n_fft // 2 + 1], True
    frames = operator("fft_irfft" if half else "fft_ifft")(
        x.transpose(1, 2), n_fft, norm="ortho" if normalized else None
    )
    signal = _overlapped(frames * result, hop)
    weight = _overlapped((result * result).expand(1, frames.shape[1], n_fft), hop)
    begin = n_fft // 2 if center else 0
    end = signal.shape[-1] - begin if length is None else min(begin + length, signal.shape[-1])
    signal, weight = signal[:, begin:end], weight[:, begin:end]
    if not weight.numel() or float(weight.abs().min()) < 1e-11:
        raise ArgumentError("istft: `window` leaves samples of the signal at zero weight")
    signal = signal / weight
    if length is not None and signal.shape[-1] < length:
        missing = length - signal.shape[-1]
        signal = operator("cat")([signal, signal.new_zeros(signal.shape[0], missing)], 1)
    return signal if input.ndim == 3 else signal.squeeze(0)


def _overlapped(frames: Tensor, hop: int) -> Tensor:
    """Add windows of shape (batch, windows, n) at their positions in the signal."""
    batch, count, n = frames.shape
    total = (count - 1) * hop + n
    arange = operator("arange")
    starts = arange(count, device=frames.device).unsqueeze(1) * hop
    positions = (starts + arange(n, device=frames.device)).reshape(-1)
    return frames.new_zeros(batch, total).index_add(1, positions, frames.reshape(batch, -1))


def _require_signal(name: str, x: Any) -> None:
    if not is_tensor(x):
        raise TypeError(f"{name}: `input` must be a Tensor, got {type(x).__name__}")
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise DTypeError(f"{name}: `input` must be floating-point or complex, got {x.dtype.name}")
    if x.ndim not in (1, 2):
        raise ShapeError(
            f"{name}: `input` must have shape (length,) or (batch, length), got {tuple(x.shape)}"
        )


def _lengths(name: str, n_fft: int, hop: int | None, width: int | None) -> tuple[int, int]:
    if n_fft < 1:
        raise ArgumentError(f"{name}: `n_fft` must be at least 1, got {n_fft}")
    hop = n_fft // 4 if hop is None else hop
    width = n_fft if width is None else width
    if hop < 1:
        raise ArgumentError(f"{name}: `hop_length` must be at least 1, got {hop}")
    if not 1 <= width <= n_fft:
        raise ArgumentError(f"{name}: `win_length` must be in [1, {n_fft}], got {width}")
    return hop, width


def _window(name: str, window: Any, width: int, n_fft: int, like: Tensor) -> Tensor:
    """Return the window in the middle of `n_fft` zeros."""
    if window is None:
        warn(
            f"A window was not provided. A rectangular window will be applied: {name} without "
            "`window` leaks between frequencies; window=plait.hann_window(win_length), or "
            "plait.ones(win_length) for the rectangle"
        )
        window = like.new_ones(width)
    if not is_tensor(window):
        raise TypeError(f"{name}: `window` must be a Tensor, got {type(window).__name__}")
    if tuple(window.shape) != (width,):
        raise ShapeError(
            f"{name}: `window` must have shape ({width},), as `win_length` says, got "
            f"{tuple(window.shape)}"
        )
    left = (n_fft - width) // 2
    parts = [window.new_zeros(left), window, window.new_zeros(n_fft - width - left)]
    return operator("cat")(parts) if width < n_fft else window  # type: ignore[no-any-return]


def _padded(x: Tensor, n: int, mode: str) -> Tensor:
    size = x.shape[-1]
    if mode not in ("reflect", "constant", "replicate", "circular"):
        raise ArgumentError(
            'stft: `pad_mode` must be "reflect", "constant", "replicate" or "circular", got '
            f"{mode!r}"
        )
    least = {"reflect": n + 1, "circular": n, "replicate": 1, "constant": 0}[mode]
    if size < least:
        raise ShapeError(
            f'stft: pad_mode="{mode}" needs {least} samples at least for {n} on either side, got '
            f"{size}"
        )
    if mode == "reflect":
        ends = x[:, 1 : n + 1].flip(-1), x[:, size - 1 - n : size - 1].flip(-1)
    elif mode == "circular":
        ends = x[:, size - n :], x[:, :n]
    elif mode == "replicate":
        ends = x[:, :1].expand(-1, n), x[:, -1:].expand(-1, n)
    else:
        ends = (x.new_zeros(x.shape[0], n),) * 2
    return operator("cat")([ends[0], x, ends[1]], 1)  # type: ignore[no-any-return]


METHODS: dict[str, Callable[..., Any]] = {"istft": istft, "stft": stft}
