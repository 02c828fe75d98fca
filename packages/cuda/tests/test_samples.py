"""Every operator that has a kernel of plait-cuda, on all its samples: as on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_cuda  # noqa: F401 - brings the device
from plait_abi import Probe, operator
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample
from plait_ops.spec import Operator

TOLERANCE = {
    "float16": 2e-3,
    "float32": 3e-5,
    "float64": 1e-11,
    "complex64": 3e-5,
    "complex128": 1e-11,
}


# The vectors have any sign; test_linear_algebra.py looks at them. Here the values are compared.
VALUES_ALONE = {
    "linalg_eigh": 0,
    "linalg_svd": 1,
    "singular_values": 0,
    "symmetric_eigenvalues": 0,
}


def has_kernel(name: str) -> bool:
    """Return whether plait-cuda brings a kernel of the operator."""
    try:
        with Probe(name, "plait_cuda", "cuda"):
            return True
    except ValueError:
        return False


OPERATORS = [spec for spec in specs.all() if has_kernel(spec.name)]
takes_operators = pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)


def arrays(sample: Sample) -> list[np.ndarray[Any, Any]]:
    result: list[Any] = []
    sample.mapped(result.append)
    return result


def main_sample(spec: Operator) -> Sample:
    """Return the first sample whose arrays are of float32 and have elements, else the first."""
    drawn = list(draw(spec))
    for sample in drawn:
        inputs = arrays(sample)
        kinds = {x.dtype.name for x in inputs if x.dtype.kind == "f"}
        if inputs and kinds == {"float32"} and all(x.size for x in inputs):
            return sample
    return drawn[0]


def to_device(x: np.ndarray[Any, Any]) -> Any:
    return pc.from_numpy(x).to("cuda")


def with_gaps(x: np.ndarray[Any, Any]) -> Any:
    """Return a tensor of the device in memory with gaps."""
    if not x.ndim:
        return to_device(x)
    wide = np.zeros([2 * n for n in x.shape], x.dtype)
    inside = tuple(slice(None, None, 2) for _ in x.shape)
    wide[inside] = x
    return to_device(wide)[inside]


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def call(spec: Operator, sample: Sample, device: str, place: Any) -> tuple[list[Any], list[Any]]:
    """Return the results, and the arguments as they are afterwards."""
    inside = sample.copied().mapped(place)
    kwargs = dict(inside.kwargs)
    if any(argument.name == "device" for argument in spec.schema.arguments):
        kwargs.setdefault("device", device)
    results = as_list(operator(spec.name)(*inside.args, **kwargs))
    after: list[Any] = []
    for value in (*inside.args, *inside.kwargs.values()):
        after += [x for x in as_list(value) if isinstance(x, pc.Tensor)]
    return results, after


# The signs and phases of vectors are free: their products are compared.
PRODUCTS: dict[str, Callable[..., Any]] = {
    "linalg_eigh": lambda w, v: v * w[..., None, :] @ v.conj().swapaxes(-1, -2),
    "linalg_svd": lambda u, s, v: (
        u[..., : s.shape[-1]] * s[..., None, :] @ v[..., : s.shape[-1], :]
    ),
}
VECTORS = {"linalg_eigh": (1,), "linalg_svd": (0, 2)}


def assert_same_factors(spec: Operator, sample: Sample, got: list[Any], want: list[Any]) -> None:
    """Compare values, products, and whether vectors are orthonormal."""
    factors = [x.cpu().numpy() for x in got]
    product = PRODUCTS[spec.name]
    bound = 10 * TOLERANCE[factors[0].dtype.name] * sample.tolerance
    expected = product(*(x.numpy() for x in want))
    np.testing.assert_allclose(product(*factors), expected, rtol=bound, atol=bound)
    for i, (x, y) in enumerate(zip(factors, want, strict=True)):
        assert (got[i].dtype, x.shape) == (y.dtype, tuple(y.shape)), sample
        if i not in VECTORS[spec.name]:
            np.testing.assert_allclose(x, y.numpy(), rtol=bound, atol=bound)
            continue
        by_rows = x if x.shape[-1] >= x.shape[-2] else x.swapaxes(-1, -2)
        ones = np.broadcast_to(
            np.eye(by_rows.shape[-2]), (*x.shape[:-2], *by_rows.shape[-2:-1] * 2)
        )
        np.testing.assert_allclose(by_rows @ by_rows.conj().swapaxes(-1, -2), ones, atol=bound)


def assert_same(spec: Operator, sample: Sample, got: list[Any], want: list[Any]) -> None:
    assert len(got) == len(want), sample
    if spec.name in VALUES_ALONE:
        got, want = ([results[VALUES_ALONE[spec.name]]] for results in (got, want))
    for one, other in zip(got, want, strict=True):
        if not isinstance(other, pc.Tensor):
            assert one == other, sample
            continue
        assert (one.dtype, tuple(one.shape)) == (other.dtype, tuple(other.shape)), sample
        if spec.unpredictable:
            continue
        x, y = one.detach().cpu(), other.detach()
        if y.dtype == pc.bfloat16:
            x, y = x.to(pc.float32), y.to(pc.float32)
        bound = TOLERANCE.get(y.numpy().dtype.name, 0.0) * sample.tolerance
        if other.dtype == pc.bfloat16:
            bound = 2e-2 * sample.tolerance
        np.testing.assert_allclose(
            x.numpy(), y.numpy(), rtol=bound, atol=bound, err_msg=str(sample)
        )


def check(spec: Operator, sample: Sample, place: Any) -> None:
    want, after = call(spec, sample, "cpu", pc.from_numpy)
    got, changed = call(spec, sample, "cuda", place)
    if spec.name in PRODUCTS:
        assert_same_factors(spec, sample, got, want)
        return
    assert_same(spec, sample, got, want)
    if any(argument.writes for argument in spec.schema.arguments):
        assert_same(spec, sample, changed, after)


@takes_operators
def test_samples(spec: Operator) -> None:
    for sample in draw(spec):
        check(spec, sample, to_device)


@takes_operators
def test_memory_with_gaps(spec: Operator) -> None:
    if spec.name != "as_strided":  # which counts elements of the memory
        check(spec, main_sample(spec), with_gaps)
