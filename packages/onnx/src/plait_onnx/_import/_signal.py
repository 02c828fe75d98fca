"""Fourier transforms, windows and filter banks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import plait_core as pc
from plait_core import Tensor
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]


def _transform(
    node: Node, x: Tensor, length: Any, axis: int, inverse: bool, onesided: bool
) -> Tensor:
    values = pc.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1)
    at = axis % x.ndim
    n = None if length is None else int(length.reshape(-1)[0])
    if n is not None:
        node.check_size([*values.shape[:at], n, *values.shape[at + 1 :]], 8)
    if inverse and onesided:
        return pc.fft.irfft(values, n, at).unsqueeze(-1)
    if onesided:
        result = pc.fft.rfft(values, n, at)
    else:
        result = (pc.fft.ifft if inverse else pc.fft.fft)(values, n, at)
    return pc.view_as_real(result)


@operator("DFT", host=(1,))
def _dft_17(node: Node) -> Function:
    axis, inverse, onesided = node.integer("axis", 1), node.flag("inverse"), node.flag("onesided")
    return lambda x, length=None: _transform(node, x, length, axis, inverse, onesided)


@operator("DFT", 20, host=(1, 2))
def _dft(node: Node) -> Function:
    inverse, onesided = node.flag("inverse"), node.flag("onesided")

    def run(x: Tensor, length: Any = None, axis: Any = None) -> Tensor:
        at = -2 if axis is None else int(axis.reshape(-1)[0])
        return _transform(node, x, length, at, inverse, onesided)

    return run


@operator("STFT", host=(1, 3))
def _stft(node: Node) -> Function:
    onesided = node.flag("onesided", True)

    def run(x: Tensor, step: Any, window: Tensor | None = None, length: Any = None) -> Tensor:
        hop = int(step.reshape(-1)[0])
        n = int(length.reshape(-1)[0]) if length is not None else 0
        if window is not None:
            n = window.shape[0]
        if hop < 1 or n < 1:
            raise ValueError("frame_step and frame_length must be positive")
        values = pc.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1)
        count = 1 + (values.shape[1] - n) // hop
        node.check_size([values.shape[0], max(count, 0), n], 8)
        if count < 1:
            raise ValueError(f"frames of {n} are longer than the signal of {values.shape[1]}")
        places = pc.arange(count, device=x.device)[:, None] * hop + pc.arange(n, device=x.device)
        frames = pc.index_select(values, 1, places.reshape(-1)).reshape(-1, count, n)
        if window is not None:
            frames = frames * window
        transformed = (
            pc.fft.rfft(frames) if onesided and not frames.is_complex() else pc.fft.fft(frames)
        )
        if onesided:
            transformed = transformed[..., : n // 2 + 1]
        return pc.view_as_real(transformed)

    return run


def _window(terms: tuple[float, ...]) -> Callable[[Node], Function]:
    """Return the entry of a window, a sum of cosines with falling periods."""

    def build(node: Node) -> Function:
        dtype, periodic = node.dtype("output_datatype", pc.float32), node.flag("periodic", True)

        def run(size: Any) -> Tensor:
            n = int(size.reshape(-1)[0])
            node.check_size([n], 8)
            angles = np.arange(n) * (2 * math.pi / (n if periodic else max(n - 1, 1)))
            values = sum(a * (-1) ** k * np.cos(k * angles) for k, a in enumerate(terms))
            return pc.tensor(np.asarray(values)).to(dtype)

        return run

    return build


operator("HannWindow", host=(0,))(_window((0.5, 0.5)))
operator("HammingWindow", host=(0,))(_window((25 / 46, 21 / 46)))
operator("BlackmanWindow", host=(0,))(_window((0.42, 0.5, 0.08)))


@operator("MelWeightMatrix", host=(0, 1, 2, 3, 4))
def _mel(node: Node) -> Function:
    dtype = node.dtype("output_datatype", pc.float32)

    def run(bins: Any, length: Any, rate: Any, low: Any, high: Any) -> Tensor:
        count, n, hertz, first, last = (
            v.reshape(-1)[0].item() for v in (bins, length, rate, low, high)
        )
        rows = n // 2 + 1
        if count < 1 or n < 1:
            raise ValueError("numbers of bins must be positive")
        node.check_size([rows, count], 8)
        lowest = 2595 * np.log10(1 + first / 700)
        highest = 2595 * np.log10(1 + last / 700)
        edges = lowest + np.arange(count + 2) * (highest - lowest) / (count + 2)
        places = (700 * (10 ** (edges / 2595) - 1) * (n + 1) // hertz).astype(np.int64)
        weights = np.zeros((rows, count))
        for i in range(count):
            start, middle, end = places[i : i + 3]
            if middle == start:
                if 0 <= middle < rows:
                    weights[middle, i] = 1
            else:
                for j in range(max(start, 0), min(middle + 1, rows)):
                    weights[j, i] = (j - start) / (middle - start)
            for j in range(max(middle, 0), min(end, rows)):
                weights[j, i] = (end - j) / (end - middle)
        return pc.from_numpy(weights).to(dtype)

    return run
