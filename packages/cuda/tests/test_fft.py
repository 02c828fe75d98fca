"""Fourier transforms on the device, against those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from on_both import check, numbers

from plait_abi import operator

C2C = operator("fft_c2c")
# of all radices, of other factors, of primes, beyond what shared memory holds
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 12, 30, 49, 210, 256, 1000, 4096, 11, 13, 31, 97, 1009, 2 * 3 * 11]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int, dtype: str) -> None:
    for forward in (True, False):
        check(lambda t, f=forward: C2C(t, [1], "backward", f), numbers((3, n), dtype))
        check(lambda t, f=forward: C2C(t, [0], "ortho", f), numbers((n, 5), dtype))


@pytest.mark.parametrize("n", [16384, 3**9, 20011])
def test_long_lines(n: int) -> None:
    check(lambda t: C2C(t, [1], "forward", True), numbers((2, n), "complex128"))
    check(lambda t: C2C(t, [1], "backward", False), numbers((2, n), "complex64"), tolerance=3e-5)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_several_dimensions(norm: str) -> None:
    x = numbers((4, 6, 15, 11), "complex64")
    for dims in ([0, 1], [2], [1, 3], [0, 1, 2, 3], [1, 2]):
        for forward in (True, False):
            check(lambda t, d=dims, f=forward: C2C(t, d, norm, f), x)
    check(lambda t: C2C(t.permute(3, 1, 0, 2), [1, 2], norm, True), x)
    check(lambda t: C2C(t, [1, 2], norm, True), numbers((0, 3, 4), "complex64"))


def test_real_transforms() -> None:
    for n in (8, 15):
        x = numbers((3, 6, n), "float32")
        check(lambda t: operator("fft_r2c")(t, [1, 2], "backward", True), x)
        half = operator("fft_r2c")(x, [1, 2], "backward", True)
        check(lambda t, n=n: operator("fft_c2r")(t, [1, 2], "backward", n), half)


def test_it_is_the_sum_it_is_defined_by() -> None:
    x = numbers((10,), "complex128")
    k = np.arange(10)
    matrix = np.exp(-2j * np.pi * np.outer(k, k) / 10)
    got = C2C(x.to("cuda"), [0], "backward", True).cpu().numpy()
    np.testing.assert_allclose(got, matrix @ x.numpy(), atol=1e-12)
