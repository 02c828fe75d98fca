"""Fourier transforms: lengths, layouts, precision, and round trips."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import plait_abi
import plait_core as pc

fft = pc.fft


def draw(*shape: int, dtype: str = "float64") -> pc.Tensor:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return pc.from_numpy(x.astype(dtype))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward", None])
def test_round_trips(norm: str | None) -> None:
    z, x = draw(3, 8, 5, dtype="complex128"), draw(3, 8, 5)
    for forth, back, start in (
        (fft.fft, fft.ifft, z), (fft.fft2, fft.ifft2, z), (fft.fftn, fft.ifftn, z),
    ):  # fmt: skip
        result = back(forth(start, norm=norm), norm=norm)
        np.testing.assert_allclose(result.numpy(), start.numpy(), atol=1e-12)
    result = fft.irfft(fft.rfft(x, norm=norm), n=5, norm=norm)
    np.testing.assert_allclose(result.numpy(), x.numpy(), atol=1e-12)
    for forth, back in ((fft.rfftn, fft.irfftn), (fft.ihfftn, fft.hfftn)):
        result = back(forth(x, norm=norm), s=(3, 8, 5), norm=norm)
        np.testing.assert_allclose(result.numpy(), x.numpy(), atol=1e-11)
    result = fft.hfft(fft.ihfft(x, dim=1, norm=norm), n=8, dim=1, norm=norm)
    np.testing.assert_allclose(result.numpy(), x.numpy(), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision_stays_single(dtype: str) -> None:
    x = draw(4, 6, dtype=dtype)
    assert fft.fft(x).dtype == pc.complex64
    assert fft.irfft2(fft.rfft2(draw(4, 6, dtype="float32"))).dtype == pc.float32
    assert fft.fft(draw(4, dtype="float32").half()).dtype == pc.complex64
    assert fft.fft(pc.tensor([1, 2, 3])).dtype == pc.complex64


def test_forms() -> None:
    x = draw(4, 6)
    out = pc.empty(4, 6, dtype=pc.complex128)
    assert fft.fft(x, out=out) is out
    np.testing.assert_allclose(out.numpy(), np.fft.fft(x.numpy()))
    np.testing.assert_allclose(fft.fft(x.numpy()).numpy(), np.fft.fft(x.numpy()))
    np.testing.assert_allclose(
        fft.rfft(x.T[::-1, ::2]).numpy(), np.fft.rfft(x.numpy().T[::-1, ::2])
    )
    assert tuple(fft.rfft(draw(4, 6).to("meta")).shape) == (4, 4)


def test_a_kernel_can_be_replaced() -> None:
    calls = []

    def mine(x, dim, norm, forward, out):  # type: ignore[no-untyped-def]
        calls.append((dim, norm, forward))
        out.zero_()

    with plait_abi.kernel("fft_c2c", mine):
        assert fft.ifft(draw(2, 3, dtype="complex64")).abs().sum().item() == 0
    assert calls == [((1,), "backward", False)]
    assert fft.ifft(draw(2, 3, dtype="complex64")).abs().sum().item() > 0


def test_infinity_gives_results_without_warnings() -> None:
    x = pc.tensor([1.0, float("inf"), 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not fft.rfft(x).real.isfinite().all().item()
        assert not fft.ifft(x).real.isfinite().all().item()
        assert not fft.irfft(x).isfinite().all().item()


# Of each radix, products of them, primes, what lanes divide and do not divide, convolutions.
LENGTHS = (*range(1, 41), 49, 64, 100, 128, 143, 192, 240, 500, 512, 961, 1000, 1024, 2018, 4096)


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32", "float64"])
def test_lengths_layouts_and_numbers_of_lines(dtype: str) -> None:
    single = dtype in ("complex64", "float32")
    wide = "complex128" if dtype.startswith("complex") else "float64"

    def check(got: pc.Tensor, want: np.ndarray, *case: object) -> None:
        error = np.abs(got.numpy() - want).max() / np.abs(want).max()
        assert error < (1e-6 if single else 2e-15), (case, error)

    for n in LENGTHS:
        for lines in (1, 3, 13):
            for layout, axis in (((lines, n), 1), ((n, lines), 0), ((2, n, lines), 1)):
                x = draw(*layout, dtype=wide).to(getattr(pc, dtype))
                array = x.numpy().astype(wide)
                for name in ("fft", "ifft", "rfft"):
                    if name == "rfft" and wide == "complex128":
                        continue
                    want = getattr(np.fft, name)(array, axis=axis)
                    check(getattr(fft, name)(x, dim=axis), want, name, n, layout)
                for size in (2 * n - 1, 2 * n - 2):
                    if size:
                        want = np.fft.irfft(array, size, axis=axis)
                        check(fft.irfft(x, size, dim=axis), want, "irfft", size, layout)


@pytest.mark.parametrize("dims", [(0, 1), (2, 0), (1, 2), (0, 1, 2), (2, 1, 0)])
def test_several_dimensions(dims: tuple[int, ...]) -> None:
    for shape in ((3, 4, 5), (8, 16, 64), (2, 37, 10)):
        for x in (draw(*shape), draw(*shape).permute(2, 0, 1), draw(*shape)[:, ::2]):
            for name in ("fftn", "rfftn", "ifftn", "irfftn"):
                want = getattr(np.fft, name)(x.numpy(), axes=dims)
                got = getattr(fft, name)(x, dim=dims).numpy()
                np.testing.assert_allclose(got, want, atol=1e-11, err_msg=name)


def test_plans_are_kept_for_some_lengths_and_made_again() -> None:
    x = draw(2, 300, dtype="complex64")
    first = [fft.fft(x[:, :n]).numpy() for n in range(200, 300)]
    for n, before in zip(range(200, 300), first, strict=True):
        np.testing.assert_array_equal(fft.fft(x[:, :n]).numpy(), before)


def test_it_does_not_import_numpy() -> None:
    code = (
        "import sys, plait_core as pc; x = pc.fft.fft(pc.ones(2)); "
        "assert 'numpy' not in sys.modules; print(x.real.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[2.0, 0.0]\n"
