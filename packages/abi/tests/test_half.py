"""plait/half.h against NumPy, whose conversions of float16 round the same way."""

from __future__ import annotations

import ctypes
import os
import subprocess

import numpy as np
import pytest

import plait_abi

SOURCE = """
#include <plait/half.h>
#define RUN(name, to, from)                                                       \\
  void name##_run(const from *x, to *y, int64_t n) {                              \\
    for (int64_t i = 0; i < n; i++) y[i] = name(x[i]);                            \\
  }
RUN(plait_float16_to_float, float, uint16_t)
RUN(plait_float16_of_float, uint16_t, float)
RUN(plait_bfloat16_to_float, float, uint16_t)
RUN(plait_bfloat16_of_float, uint16_t, float)
"""
INCLUDE = plait_abi.paths()["include"]
ALL = np.arange(1 << 16, dtype=np.uint16)


@pytest.fixture(scope="module", params=["-O0", "-O3"])
def library(request, tmp_path_factory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("half")
    (folder / "half.c").write_text(SOURCE)
    out = folder / "half.so"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror", "-shared"]
    command = [*os.environ.get("CC", "cc").split(), *flags, request.param, "-fPIC"]
    command += [f"-I{INCLUDE}", str(folder / "half.c"), "-o", str(out)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(out))


def convert(library: ctypes.CDLL, name: str, x: np.ndarray, dtype: type) -> np.ndarray:
    y = np.empty(x.shape, dtype)
    pointers = (ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
    getattr(library, f"{name}_run")(*pointers, ctypes.c_int64(x.size))
    return y


def floats() -> np.ndarray:
    """Return float32 numbers near all numbers of float16, and random others."""
    random = np.random.default_rng(0)
    exact = ALL.view(np.float16).astype(np.float32)
    bits = exact.view(np.uint32)
    near = [(bits + np.uint32(step)).view(np.float32) for step in (0xFFFFFFFF, 0, 1)]
    middle = (bits + np.uint32(1 << 12)).view(np.float32)
    small = random.standard_normal(50_000).astype(np.float32) * np.float32(2.0**-20)
    anything = random.integers(0, 1 << 32, 500_000, dtype=np.uint32).view(np.float32)
    return np.concatenate([*near, middle, small, anything])


def test_float16_to_float32(library: ctypes.CDLL) -> None:
    got = convert(library, "plait_float16_to_float", ALL, np.float32)
    right = ALL.view(np.float16).astype(np.float32)
    number = ~np.isnan(right)
    np.testing.assert_array_equal(got[number].view(np.uint32), right[number].view(np.uint32))
    payload = (ALL[~number].astype(np.uint32) & 0x3FF) << 13
    sign = (ALL[~number].astype(np.uint32) & 0x8000) << 16
    expected = sign | 0x7FC00000 | payload
    np.testing.assert_array_equal(got[~number].view(np.uint32), expected)


def test_float32_to_float16(library: ctypes.CDLL) -> None:
    x = floats()
    got = convert(library, "plait_float16_of_float", x, np.uint16)
    with np.errstate(over="ignore"):
        right = x.astype(np.float16).view(np.uint16)
    number = ~np.isnan(x)
    np.testing.assert_array_equal(got[number], right[number])
    bits = x[~number].view(np.uint32)
    expected = (bits >> 16 & 0x8000) | 0x7E00 | (bits >> 13 & 0x3FF)
    np.testing.assert_array_equal(got[~number], expected)


def test_bfloat16(library: ctypes.CDLL) -> None:
    wide = convert(library, "plait_bfloat16_to_float", ALL, np.float32)
    np.testing.assert_array_equal(wide.view(np.uint32), ALL.astype(np.uint32) << 16)
    x = np.concatenate([floats(), (wide.view(np.uint32) + (1 << 15)).view(np.float32)])
    got = convert(library, "plait_bfloat16_of_float", x, np.uint16).astype(np.uint32)
    bits = x.view(np.uint32)
    number = ~np.isnan(x)
    below, rest = bits >> 16, bits & 0xFFFF
    up = (rest > 0x8000) | ((rest == 0x8000) & (below & 1 == 1))
    np.testing.assert_array_equal(got[number], (below + up)[number])
    np.testing.assert_array_equal(got[~number], (below | 0x40)[~number])
