"""Products of matrices on the device, by our kernels and by the library's stand-in."""

import ctypes
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from on_both import check, random

import plait_core as pc
import plait_cuda
from plait_abi import operator

FLOATS = [pc.float32, pc.float64, pc.float16, pc.bfloat16]

ALL = [
    *FLOATS,
    *(pc.int8, pc.uint8, pc.int16, pc.int32, pc.int64),
    *(pc.complex64, pc.complex128),
]
SIZES = [
    *((1, 1, 1), (0, 3, 2), (3, 0, 2), (3, 2, 0), (3, 4, 5)),
    *((33, 65, 70), (64, 64, 64), (65, 31, 257)),
    *((1, 50, 2000), (50, 1, 2000), (5, 300, 777), (300, 5, 777), (8, 33, 1025)),
    (70, 130, 700),
]
mm, bmm, linear = operator("mm"), operator("bmm"), operator("linear")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_mm(rng, m, n, k, dtype):
    check(mm, random(rng, m, k, dtype=dtype), random(rng, k, n, dtype=dtype))


@pytest.mark.parametrize("dtype", [pc.float32, pc.float16, pc.int8, pc.complex128], ids=str)
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_mm_of_any_strides(rng, m, n, k, dtype):
    check(mm, random(rng, k, m, dtype=dtype).t(), random(rng, n, k, dtype=dtype).t())
    every_second = random(rng, m, 2 * k + 1, dtype=dtype)[:, 1::2]
    check(mm, every_second, random(rng, k, 2 * n + 1, dtype=dtype)[:, 1::2])
    check(mm, random(rng, 1, k, dtype=dtype).expand(m, k), random(rng, k, n, dtype=dtype))


@pytest.mark.parametrize("dtype", [pc.float32, pc.bfloat16], ids=str)
def test_mm_of_large_tiles(rng, dtype):
    a, b = random(rng, 150, 600, dtype=dtype), random(rng, 600, 140, dtype=dtype)
    check(mm, a, b, tolerance=0.3 if dtype == pc.bfloat16 else 1e-3)
    check(mm, b.t(), a.t(), tolerance=0.3 if dtype == pc.bfloat16 else 1e-3)


def test_bmm(rng):
    check(bmm, random(rng, 5, 3, 4), random(rng, 5, 4, 6))
    check(bmm, random(rng, 5, 33, 40), random(rng, 5, 40, 65))
    check(bmm, random(rng, 5, 40, 33).transpose(1, 2), random(rng, 1, 40, 65).expand(5, 40, 65))
    check(bmm, random(rng, 0, 3, 4), random(rng, 0, 4, 6))


def test_mv_and_dot(rng):
    for m, k in [(30, 40), (300, 1500), (1, 1), (5, 0)]:
        check(operator("mv"), random(rng, m, k), random(rng, k))
        check(operator("mv"), random(rng, k, m).t(), random(rng, 2 * k)[::2])
    for n in (0, 1, 33, 100_000):
        check(operator("dot"), random(rng, n), random(rng, 2 * n)[::2], tolerance=2e-3)


@pytest.mark.parametrize("shape", [(), (65,), (40, 1), (40, 65), (1, 1)])
def test_addmm(rng, shape):
    def addmm(self, a, b):
        return pc.addmm(self, a, b, beta=2, alpha=0.5)

    for k in (5, 500):
        check(addmm, random(rng, *shape), random(rng, 40, k), random(rng, k, 65))


def test_addmm_with_beta_0_does_not_read(rng):
    none = pc.full((1,), float("nan"))
    check(lambda *t: pc.addmm(*t, beta=0), none, random(rng, 4, 5), random(rng, 5, 6))


def test_addmm_with_a_number_of_the_host(rng):
    self, a, b = pc.tensor(2.0), random(rng, 4, 5), random(rng, 5, 6)
    got = pc.addmm(self, a.to("cuda"), b.to("cuda")).cpu()
    assert got.allclose(pc.addmm(self, a, b))


def test_addmm_of_integers(rng):
    def addmm(*t):
        return pc.addmm(*t, beta=2, alpha=3)

    sizes = ((3, 4), (3, 5), (5, 4))
    check(addmm, *(random(rng, *size, dtype=pc.int32) for size in sizes))


def test_linear(rng):
    weight, bias = random(rng, 33, 20), random(rng, 66)[::2]
    check(linear, random(rng, 7, 8, 20), weight, bias)
    check(linear, random(rng, 8, 7, 20).transpose(0, 1), weight, None)
    check(linear, random(rng, 20), weight, bias)
    check(linear, random(rng, 5, 9, 300), random(rng, 70, 300), random(rng, 70))


def test_rows_do_not_depend_on_others(rng):
    a, b = random(rng, 100, 700).to("cuda"), random(rng, 700, 70).to("cuda")
    pc.set_batch_invariant(True)
    try:
        whole, row = mm(a, b).cpu(), mm(a[3:4], b).cpu()
    finally:
        pc.set_batch_invariant(False)
    assert whole[3:4].equal(row)


def stand_in() -> ctypes.CDLL:
    folder = pathlib.Path(plait_cuda.__file__).parent
    return ctypes.CDLL(str(folder / "emulation" / "libcublasLt.so.13"))


def test_the_library_is_used(rng):
    library = stand_in()
    sizes = [(2, 40, 50), (2, 50, 60)]
    for shapes in (sizes, [(40, 50), (50, 60)]):
        before = library.plait_cublas_calls(), library.plait_cublas_choices()
        for _ in range(2):
            check(pc.matmul, *(random(rng, *shape) for shape in shapes))
        # how is asked once
        assert library.plait_cublas_calls() == before[0] + 2
        assert library.plait_cublas_choices() <= before[1] + 1


def test_a_graph_records_the_library(rng):
    a, b, bias = random(rng, 40, 50), random(rng, 50, 60), random(rng, 60)
    there = [each.cuda() for each in (a, b, bias)]
    pc.addmm(there[2], *there[:2])
    before = stand_in().plait_cublas_calls()
    graph = pc.cuda.CUDAGraph()
    with pc.cuda.graph(graph):
        c = pc.addmm(there[2], *there[:2])
    assert stand_in().plait_cublas_calls() == before + 1
    for factor in (1.0, -3.0):
        there[0].copy_(a * factor)
        graph.replay()
        want = pc.addmm(bias, a * factor, b)
        np.testing.assert_allclose(c.cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.repeats
def test_without_the_library():
    """Our own kernels compute what the library would."""
    tests = ["test_mm", "test_mm_of_large_tiles", "test_bmm", "test_linear", "test_addmm"]
    names = [f"{__file__}::{name}" for name in tests]
    environment = {**os.environ, "PLAIT_CUDA_CUBLAS": "0"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
