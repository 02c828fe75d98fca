"""Short-time Fourier transforms against the definition, their inverses, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc

RNG = np.random.default_rng(0)


def test_the_definition() -> None:
    x, w = RNG.standard_normal(30), RNG.standard_normal(8)
    got = pc.stft(
        pc.from_numpy(x), 8, 3, window=pc.from_numpy(w), center=False, return_complex=True
    )
    frames = [np.fft.rfft(x[i : i + 8] * w) for i in range(0, 23, 3)]
    np.testing.assert_allclose(got.numpy(), np.stack(frames, 1), atol=1e-12)
    pairs = pc.stft(
        pc.from_numpy(x), 8, 3, window=pc.from_numpy(w), center=False, return_complex=False
    )
    np.testing.assert_array_equal(pc.view_as_complex(pairs).numpy(), got.numpy())


@pytest.mark.parametrize("half", [True, False])
@pytest.mark.parametrize("shape", [(50,), (3, 50)])
def test_there_and_back(shape: tuple[int, ...], half: bool) -> None:
    x = pc.from_numpy(RNG.standard_normal(shape))
    window = pc.hann_window(12, dtype=pc.float64)
    options: dict[str, Any] = {"win_length": 12, "window": window, "onesided": half}
    for normalized in (True, False):
        options["normalized"] = normalized
        spectrum = x.stft(16, 4, return_complex=True, **options)
        assert spectrum.shape[-2] == (9 if half else 16)
        np.testing.assert_allclose(spectrum.istft(16, 4, length=50, **options), x, atol=1e-12)


@pytest.mark.parametrize(
    ("error", "call", "text"),
    [
        (TypeError, lambda: pc.stft([1.0], 4), "`input` must be a Tensor, got list"),
        (ValueError, lambda: pc.stft(pc.zeros(9), 4), "`return_complex` must be given"),
        (pc.DTypeError, lambda: pc.stft(pc.arange(9), 4), "`input` must be floating.*int64"),
        (pc.ShapeError, lambda: pc.stft(pc.zeros(1, 1, 9), 4), r"got \(1, 1, 9\)"),
        (ValueError, lambda: pc.stft(pc.zeros(9), 0), "`n_fft` must be at least 1, got 0"),
        (ValueError, lambda: pc.stft(pc.zeros(9), 4, 0), "`hop_length` must be at least 1, got 0"),
        (ValueError, lambda: pc.stft(pc.zeros(9), 4, 1, 5), r"`win_length` must be in \[1, 4\]"),
        (
            pc.ShapeError,
            lambda: pc.stft(pc.zeros(9), 4, window=pc.ones(3), return_complex=True),
            r"`window` must have shape \(4,\).*got \(3,\)",
        ),
        (
            pc.ShapeError,
            lambda: pc.stft(pc.zeros(2), 8, return_complex=True),
            'pad_mode="reflect" needs 5 samples',
        ),
        (
            ValueError,
            lambda: pc.stft(pc.zeros(9), 4, pad_mode="around", return_complex=True),
            "`pad_mode` must be",
        ),
        (pc.DTypeError, lambda: pc.istft(pc.zeros(3, 5), 4), "`input` must be complex"),
        (
            pc.ShapeError,
            lambda: pc.istft(pc.zeros(4, 5, dtype=pc.complex64), 8, onesided=True),
            "5 frequencies",
        ),
        (
            ValueError,
            lambda: pc.istft(pc.ones(3, 5, dtype=pc.complex64), 4, window=pc.zeros(4)),
            "zero weight",
        ),
    ],
)
def test_refusals(error: type[Exception], call: Any, text: str) -> None:
    with pytest.raises(error, match=f"stft: .*{text}"):
        call()


def test_the_half_that_follows_from_the_other_is_not_read() -> None:
    spectrum = pc.stft(pc.arange(12.0), 4, return_complex=True, onesided=False, window=pc.ones(4))
    changed = spectrum.clone()
    changed[3:] = 7.0
    want = pc.istft(spectrum, 4, window=pc.ones(4), onesided=False)
    assert pc.istft(changed, 4, window=pc.ones(4), onesided=False).tolist() == want.tolist()
