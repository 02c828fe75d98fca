"""Short-time Fourier transforms agree with torch's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

import plait_core as pc

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.filterwarnings(
    "ignore:(A window was not|The length of signal):UserWarning"
)
WINDOWS = [None, (12, "hann"), (16, "hamming"), (16, "complex")]


def window_of(which: Any) -> tuple[int | None, Any]:
    if which is None:
        return None, None
    width, kind = which
    if kind == "complex":
        return width, RNG.standard_normal(width) + 1j * RNG.standard_normal(width)
    return width, getattr(np, {"hann": "hanning", "hamming": "hamming"}[kind])(width)


@pytest.mark.parametrize("mode", ["reflect", "constant", "replicate", "circular"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("is_complex", [False, True])
def test_transforms(mode: str, window: Any, is_complex: bool) -> None:
    x = RNG.standard_normal((2, 61)) + (1j * RNG.standard_normal((2, 61)) if is_complex else 0)
    width, values = window_of(window)
    some = is_complex or (values is not None and np.iscomplexobj(values))
    for hop, center, normalized, half in itertools.product(
        (None, 5), (True, False), (True, False), (None, False) if some else (None, True, False)
    ):
        options: dict[str, Any] = {
            "hop_length": hop, "win_length": width, "center": center, "pad_mode": mode,
            "normalized": normalized, "onesided": half, "return_complex": True,
        }  # fmt: skip
        result = None if values is None else torch.from_numpy(values)
        want = torch.stft(torch.from_numpy(x), 16, window=result, **options)
        got = pc.stft(
            pc.from_numpy(x),
            16,
            window=None if values is None else pc.from_numpy(values),
            **options,
        )
        assert tuple(got.shape) == tuple(want.shape)
        np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-12)


@pytest.mark.parametrize("length", [None, 40, 61, 70])
@pytest.mark.parametrize("half", [None, False])
@pytest.mark.parametrize("center", [True, False])
def test_inverses(length: int | None, half: bool | None, center: bool) -> None:
    x, window = RNG.standard_normal(61), np.hamming(16)
    options: dict[str, Any] = {"hop_length": 4, "center": center, "onesided": half}
    spectrum = torch.stft(
        torch.from_numpy(x), 16, window=torch.from_numpy(window), return_complex=True, **options
    )
    want = torch.istft(spectrum, 16, window=torch.from_numpy(window), length=length, **options)
    got = pc.istft(
        pc.from_numpy(spectrum.numpy()), 16, window=pc.from_numpy(window), length=length, **options
    )
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-12)
