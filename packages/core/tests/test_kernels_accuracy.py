"""Accuracy on any processor: products by the worst BLAS library, long scans."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_core.instruction_sets import kernel_levels

RNG = np.random.default_rng(11)
BAR = 30
"""Units of ``eps * sqrt(k)``: runs of 512 reach 25, one run of 20,000 reaches 100 and more."""

WORST = r"""
#include <complex.h>
/* Products added one after the other to the result itself, in its own precision. */
#define GEMM(name, T, S, GET)                                                               \
  void name(int order, int ta, int tb, int m, int n, int k, S alpha, const T *a, int lda,   \
            const T *b, int ldb, S beta, T *c, int ldc) {                                   \
    (void)order;                                                                            \
    for (long i = 0; i < m; i++)                                                            \
      for (long j = 0; j < n; j++) {                                                        \
        volatile T sum = GET beta == 0 ? 0 : GET beta * c[i * ldc + j];                     \
        for (long l = 0; l < k; l++)                                                        \
          sum += GET alpha * (ta == 111 ? a[i * lda + l] : a[l * lda + i]) *                \
                 (tb == 111 ? b[l * ldb + j] : b[j * ldb + l]);                             \
        c[i * ldc + j] = sum;                                                               \
      }                                                                                     \
  }
#define GEMV(name, T)                                                                       \
  void name(int order, int trans, int m, int n, T alpha, const T *a, int lda, const T *x,   \
            int incx, T beta, T *y, int incy) {                                             \
    (void)order;                                                                            \
    const int rows = trans == 111 ? m : n, k = trans == 111 ? n : m;                        \
    for (long i = 0; i < rows; i++) {                                                       \
      volatile T sum = beta == 0 ? 0 : beta * y[i * incy];                                  \
      for (long l = 0; l < k; l++)                                                          \
        sum += alpha * (trans == 111 ? a[i * lda + l] : a[l * lda + i]) * x[l * incx];      \
      y[i * incy] = sum;                                                                    \
    }                                                                                       \
  }
GEMM(cblas_sgemm, float, float, )
GEMM(cblas_dgemm, double, double, )
GEMM(cblas_cgemm, float complex, const float complex *, *)
GEMM(cblas_zgemm, double complex, const double complex *, *)
GEMV(cblas_sgemv, float)
GEMV(cblas_dgemv, double)
"""


def run(code: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, *code], env=environment, capture_output=True, text=True, timeout=300
    )


def errors(**variables: str) -> dict[str, float]:
    """The errors of long products in a process with these variables."""
    script = pathlib.Path(__file__).with_name("product_accuracy.py")
    done = run([str(script)], **variables)
    assert done.returncode == 0, done.stderr
    lines = [line.split(None, 1) for line in done.stdout.splitlines()]
    return {name: float(value) for value, name in lines}


@pytest.fixture(scope="module")
def worst_blas(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A BLAS that sums all products of a result up one after the other."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("a C compiler is required")
    folder = tmp_path_factory.mktemp("blas")
    source, library = folder / "worst.c", folder / "libworst.so"
    source.write_text(WORST)
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(command, check=True, timeout=240)
    return str(library)


@pytest.mark.parametrize("level", kernel_levels())
def test_products_by_the_worst_blas(worst_blas: str, level: str) -> None:
    result = errors(PLAIT_BLAS_LIBRARY=worst_blas, PLAIT_CPU=level)
    assert {name: value for name, value in result.items() if not value <= BAR} == {}


@pytest.mark.parametrize("variables", [{}, {"PLAIT_BLAS_LIBRARY": "none"}])
@pytest.mark.long
def test_products_by_the_usual_blas(variables: dict[str, str]) -> None:
    result = errors(**variables)
    assert {name: value for name, value in result.items() if not value <= BAR} == {}


def test_products_have_the_same_bits_for_all_threads(by_threads: Any) -> None:
    for m, k, n in ((6, 20_000, 5), (3, 150_000, 3), (300, 2000, 300), (1, 9000, 700)):
        a, b = (pc.from_numpy(RNG.standard_normal(s, np.float32)) for s in ((m, k), (k, n)))
        assert len(set(by_threads(lambda: pc.mm(a, b).numpy().tobytes()))) == 1  # noqa: B023


def scan_error(name: str, x: Any, want: Any, dim: int) -> float:
    got = getattr(pc, name)(pc.from_numpy(x), dim).numpy()
    return float(np.max(np.abs(got.astype(want.dtype) - want) / np.abs(want)))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("shape", [(4_000_000,), (1_000_000, 2), (200_000, 7)])
def test_long_scans(shape: tuple[int, ...], dtype: Any) -> None:
    """The error of a scan does not grow: each result is rounded once."""
    kind, unit = (np.complex128, 1e-4j) if dtype == np.complex64 else (np.float64, 1e-4)
    bar = 1.5 * float(np.finfo(dtype).eps)
    x = RNG.random(shape).astype(dtype) + (0.5j * np.ones(shape) if dtype == np.complex64 else 0)
    x = x.astype(dtype)
    assert scan_error("cumsum", x, np.cumsum(x.astype(kind), 0), 0) < bar
    y = np.exp(unit * RNG.standard_normal(shape)).astype(dtype)
    assert scan_error("cumprod", y, np.cumprod(y.astype(kind), 0), 0) < bar
    if dtype == np.float32:
        z = RNG.standard_normal(shape).astype(dtype)
        want = np.log(np.cumsum(np.exp(z.astype(np.float64)), 0))
        got = pc.logcumsumexp(pc.from_numpy(z), 0).numpy()
        # near 0 the logarithm of a sum is as exact as the sum, which float64 carries
        np.testing.assert_allclose(got, want, rtol=bar, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_scans_have_the_same_bits_for_all_threads(dtype: Any, by_threads: Any) -> None:
    x = pc.from_numpy((1 + 0.01 * RNG.standard_normal(100_000)).astype(dtype))
    for scan in (pc.cumsum, pc.cumprod, pc.logcumsumexp):
        assert len(set(by_threads(lambda: scan(x, 0).numpy().tobytes()))) == 1, scan  # noqa: B023


def test_gradients_of_long_scans() -> None:
    """The derivative of a sum of running sums is a running sum from the other end."""
    x = RNG.random(1_000_000).astype(np.float32)
    wide = x.astype(np.float64)
    got = pc.flip(pc.cumsum(pc.flip(pc.from_numpy(x), [0]), 0), [0]).numpy()
    np.testing.assert_allclose(got, np.cumsum(wide[::-1])[::-1], rtol=2e-7)


def test_infinite_factors_of_complex_scans() -> None:
    x = np.array([complex(np.inf, 0), 2, 1 + 1j], np.complex64)
    assert pc.cumprod(pc.from_numpy(x), 0)[0].item() == complex(np.inf, 0)


@pytest.mark.parametrize("level", kernel_levels())
def test_unusable_blas(tmp_path: pathlib.Path, level: str) -> None:
    """A library that cannot be used is an error when the package starts."""
    (tmp_path / "text.so").write_text("not a library")
    for path in ("/nope/libblas.so", str(tmp_path / "text.so"), "libc.so.6"):
        done = run(["-c", "import plait_core"], PLAIT_BLAS_LIBRARY=path, PLAIT_CPU=level)
        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("ValueError: PLAIT_BLAS_LIBRARY: ") and path in last


def test_unusable_cache_bytes() -> None:
    for text in ("x", "-1", "1e9", "9" * 30):
        done = run(["-c", "import plait_core"], PLAIT_CACHE_BYTES=text)
        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("ValueError: PLAIT_CACHE_BYTES: ") and text in last


def test_environment_stays_as_it_is() -> None:
    """The package sets no environment variable, so that child processes inherit none."""
    code = """
import os
before = dict(os.environ)
import plait_core as pc
pc.ones(200, 200) @ pc.ones(200, 200)
assert dict(os.environ) == before
"""
    done = run(["-c", code])
    assert done.returncode == 0, done.stderr
