"""Print the errors of long products in units of ``eps * sqrt(k)``: one line for each operator.

Run by itself, so that the environment says which BLAS library and which of its kernels are used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import plait_core as pc
from plait_abi import operator

SIZES = [
    *((6, 20_000, 5), (1, 100_000, 1), (1, 20_000, 5), (6, 20_000, 1), (2, 4096, 8)),
    *((40, 2000, 40), (3, 150_000, 3), (90, 1200, 90), (70, 3000, 1), (1, 3000, 70)),
]
RNG = np.random.default_rng(7)


def draw(shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw numbers of variance 1 of a dtype's own precision, real or complex."""
    x = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = (x + 1j * RNG.standard_normal(shape)) / np.sqrt(2)
    return x.astype(dtype)


def wide(x: Any) -> Any:
    """Return an array in a precision whose errors do not count."""
    small = x.dtype in (np.float32, np.complex64)
    if x.dtype.kind == "c":
        return x.astype(np.complex128 if small else np.clongdouble)
    return x.astype(np.float64 if small else np.longdouble)


def error(got: Any, want: Any, k: int) -> float:
    """Return the largest error in units of ``eps * sqrt(k)``."""
    array = got.numpy()
    return float(np.abs(array - want).max() / np.finfo(array.dtype).eps / np.sqrt(k))


def errors_of_products(dtype: Any) -> dict[str, float]:
    """Return the worst error of each operator over sizes and layouts."""
    worst: dict[str, float] = {}

    def note(name: str, got: Any, want: Any, k: int) -> None:
        worst[name] = max(worst.get(name, 0.0), error(got, want, k))

    for m, k, n in SIZES:
        if m * k * n > 2 * 10**6 and dtype in (np.float64, np.complex128):
            continue  # long doubles are slow
        for layout in range(4):
            a = draw((m, k), dtype) if layout & 1 else draw((k, m), dtype).T
            b = draw((k, n), dtype) if layout & 2 else draw((n, k), dtype).T
            want, x, y = wide(a) @ wide(b), pc.from_numpy(a), pc.from_numpy(b)
            note("mm", pc.mm(x, y), want, k)
            note("mv", pc.mv(x, y[:, 0]), want[:, 0], k)
            note("dot", pc.dot(x[0], y[:, 0]), want[0, 0], k)
            note("bmm", pc.bmm(x.expand(4, m, k), y.expand(4, k, n)), want, k)
            bias = draw((n,), dtype)
            result = operator("linear")(x, y.T, pc.from_numpy(bias))
            note("linear", result, want + wide(bias), k)
            self = draw((m, n), dtype)
            note("addmm", pc.addmm(pc.from_numpy(self), x, y), want + wide(self), k)
    return worst


def errors_of_convolutions() -> dict[str, float]:
    """Return the errors of a convolution of many channels and of its derivatives."""
    x, w = draw((2, 600, 9, 9), np.float32), draw((3, 600, 3, 3), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(wide(x), (3, 3), (2, 3))
    forward = np.einsum("nchwij,ocij->nohw", windows, wide(w), optimize=True)
    images, g = draw((3, 2, 90, 90), np.float32), draw((3, 3, 88, 88), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(wide(images), (3, 3), (2, 3))
    by_weight = np.einsum("nchwij,nohw->ocij", windows, wide(g), optimize=True)
    deep, many = draw((2, 5000, 1, 1), np.float32), draw((5000, 2, 3, 3), np.float32)
    by_input = np.einsum("no,ocij->ncij", wide(deep)[:, :, 0, 0], wide(many), optimize=True)
    weight = operator("conv2d_backward_weight")(
        pc.from_numpy(g), pc.from_numpy(images), (3, 2, 3, 3), (1, 1), (0, 0), (1, 1), 1
    )
    whole = operator("conv2d_backward_input")(
        pc.from_numpy(deep), pc.from_numpy(many), (2, 2, 3, 3), (1, 1), (0, 0), (1, 1), 1
    )
    convolved = pc.conv2d(pc.from_numpy(x), pc.from_numpy(w))
    return {
        "conv2d": error(convolved, forward, 5400),
        "conv2d by weight": error(weight, by_weight, 3 * 88 * 88),
        "conv2d by input": error(whole, by_input, 5000),
    }


def errors_of_attention() -> dict[str, float]:
    """Return the error of a mean over many values, which attention with equal weights is."""
    keys = 6000
    values = draw((1, 2, keys, 8), np.float32)
    zeros = pc.zeros(1, 2, 3, 8)
    result = operator("scaled_dot_product_attention")(
        zeros, pc.zeros(1, 2, keys, 8), pc.from_numpy(values)
    )
    want = wide(values).mean(2, keepdims=True).repeat(3, 2)
    return {"attention": error(result, want, 1) * np.sqrt(keys)}


def main() -> None:
    """Print a line for each operator and dtype."""
    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        for name, value in errors_of_products(dtype).items():
            print(f"{value:.1f} {name} of {np.dtype(dtype).name}")
    for name, value in (errors_of_convolutions() | errors_of_attention()).items():
        print(f"{value:.1f} {name} of float32")


if __name__ == "__main__":
    main()
