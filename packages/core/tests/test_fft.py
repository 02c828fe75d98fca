"""Fourier transforms: precision, kernels that are loaded late, and round trips."""

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


def test_importing_does_not_import_numpy() -> None:
    code = (
        "import sys, plait_core as pc; assert 'numpy' not in sys.modules; "
        "x = pc.fft.fft(pc.ones(2)); assert 'numpy' in sys.modules; print(x.real.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[2.0, 0.0]\n"


def test_a_record_names_the_provider() -> None:
    records = [r for r in plait_abi.records() if (r.kind, r.name) == ("kernel", "fft_r2c")]
    assert [r.provider for r in records] == ["plait_core._functions._fft_kernels"]
