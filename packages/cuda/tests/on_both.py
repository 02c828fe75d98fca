"""Calls of operators on the device and on the CPU, and the comparison of their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import plait_core as pc
import plait_cuda  # noqa: F401 - brings the device

TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-12}
TOLERANCE |= {"complex64": 1e-5, "complex128": 1e-12}


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Return a tensor of the CPU with numbers of any dtype: small ones of both signs."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return pc.tensor(random.random(shape) < 0.5)
    if dtype.startswith(("int", "uint")):
        low = 0 if dtype.startswith("uint") else -9
        return pc.tensor(random.integers(low, 10, shape)).to(getattr(pc, dtype))
    x = random.normal(size=shape)
    if dtype.startswith("complex"):
        return pc.tensor(x + 1j * random.normal(size=shape)).to(getattr(pc, dtype))
    return pc.tensor(x).to(getattr(pc, dtype))


def random(rng: np.random.Generator, *shape: int, dtype: Any = pc.float32) -> Any:
    """Return a tensor of the CPU with normal numbers, or integers below 100."""
    if dtype.is_complex:
        return pc.tensor(rng.normal(size=shape) + 1j * rng.normal(size=shape)).to(dtype)
    if dtype.is_floating_point:
        return pc.tensor(rng.normal(size=shape)).to(dtype)
    return pc.tensor(rng.integers(0, 100, shape)).to(dtype)


def assert_same(got: Any, want: Any, tolerance: float | None = None) -> None:
    """Compare a result of the device with that of the CPU."""
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            assert_same(one, other, tolerance)
        return
    assert got.device.type == "cuda"
    assert (got.dtype, tuple(got.shape)) == (want.dtype, tuple(want.shape))
    bound = tolerance
    if bound is None:
        bound = TOLERANCE.get(str(want.dtype).rpartition(".")[2], 0.0)
    wide = (lambda t: t.to(pc.float32)) if "bfloat16" in str(want.dtype) else (lambda t: t)
    expected = wide(want).numpy()
    finite = np.abs(expected[np.isfinite(expected)]) if bound else np.zeros(0)
    scale = max(1.0, float(finite.max(initial=0)))
    np.testing.assert_allclose(wide(got.cpu()).numpy(), expected, rtol=bound, atol=bound * scale)


def check(function: Callable[..., Any], *arguments: Any, tolerance: float | None = None) -> None:
    """Call a function with tensors of the CPU, and with the same ones on the device."""
    want = function(*arguments)
    moved = (each.to("cuda") if isinstance(each, pc.Tensor) else each for each in arguments)
    assert_same(function(*moved), want, tolerance)


def wait_for(function: Callable[..., Any], *args: Any) -> None:
    """Call a function, and wait until the device has done its work: its errors come late."""
    function(*args)
    pc.zeros(1, device="cuda").cpu()
