"""Comparisons of an operator's results on the emulated device with those of the CPU."""

import numpy as np
import plait_core as pc
import plait_cuda  # noqa: F401

FLOATS = [pc.float32, pc.float64, pc.float16, pc.bfloat16]
# relative to 1 and the result, for sums of some hundred terms
TOLERANCE = {
    pc.float32: 2e-4,
    pc.float64: 1e-10,
    pc.float16: 2e-2,
    pc.bfloat16: 1.5e-1,
    pc.complex64: 2e-4,
    pc.complex128: 1e-10,
}


def random(rng: np.random.Generator, *shape: int, dtype: pc.dtype = pc.float32) -> pc.Tensor:
    """Make normal numbers, or integers below 100."""
    if dtype.is_complex:
        return pc.tensor(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).to(dtype)
    if dtype.is_floating_point:
        return pc.tensor(rng.standard_normal(shape)).to(dtype)
    return pc.tensor(rng.integers(0, 100, shape)).to(dtype)


def values(t: pc.Tensor) -> np.ndarray:
    """Give the elements of any tensor as float64, int64 or complex128."""
    t = t.cpu()
    if t.dtype.is_floating_point:
        return t.to(pc.float64).numpy()
    return t.to(pc.complex128 if t.dtype.is_complex else pc.int64).numpy()


def on_device(argument: object) -> object:
    """Copy a tensor to the device; other arguments stay."""
    return argument.to("cuda") if isinstance(argument, pc.Tensor) else argument


def assert_same(function: object, *arguments: object, tolerance: float | None = None) -> None:
    """Call a function on the CPU and on the device, and compare all results."""
    want, got = function(*arguments), function(*map(on_device, arguments))
    if isinstance(want, pc.Tensor):
        want, got = [want], [got]
    for one, other in zip(want, got, strict=True):
        assert other.device.type == "cuda"
        assert (other.shape, other.dtype) == (one.shape, one.dtype)
        limit = TOLERANCE.get(one.dtype, 0) if tolerance is None else tolerance
        np.testing.assert_allclose(values(other), values(one), rtol=limit, atol=limit)
