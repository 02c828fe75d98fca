"""The memory of an operator beside its input and result: a bounded multiple of them, and in place
nothing.

Every public operator is called on 2 MB in float32 and bfloat16, with one thread, if its sample can
grow to that; on less, if its cost grows faster than its input. Counted is what the allocator of
the CPU gave. benchmarks/bench_operator_memory.py compares with PyTorch.
"""

from __future__ import annotations

import gc
import itertools
from typing import Any

import pytest

import plait_core as pc
from plait_abi import kernel, operator
from plait_ops import specs
from plait_ops.samples.large import as_dtype, distinct_samples, enlargements, repeat
from plait_ops.spec import Composite, Operator, Pointwise, View

pytestmark = pytest.mark.usefixtures("one_thread")

MEGABYTE = 1 << 20
INPUT = 2 * MEGABYTE
SCRATCH = 7 * MEGABYTE // 2  # constants, and a slab for small tensors that a call may map
TRIALS = (1 << 8, 1 << 12)  # elements, to see whether results grow as the input
DTYPES = ("float32", "bfloat16")
FACTOR = 6.0
# What they take is known, and more: the limit holds where they get better.
LARGER = {
    "histc": 8.0,  # places are int64, and a composite of about ten steps
    "histogram": 30.0,
    "msort": 10.0,  # indices are int64
    "nanquantile": 20.0,
    "pdist": 20.0,  # the differences of each row, made in a loop, are kept to its end
    "quantile": 20.0,
}
COSTLY = ("linalg/", "vision/", "recurrent/", "attention/")
FEW = 1 << 15  # elements, of those
UNKNOWN = {"empty_strided", "tril_indices", "triu_indices"}  # numbers decide what they take


def tensors(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for each in value for tensor in tensors(each)]
    return [value] if isinstance(value, pc.Tensor) else []


def size(value: Any) -> int:
    return sum(each.numel() * each.itemsize for each in tensors(value))


def convert(dtype: str) -> Any:
    def to_tensor(array: Any, selection: bool) -> Any:
        result = pc.from_numpy(array.copy())
        return result.to(getattr(pc, dtype)) if selection and array.dtype.kind == "f" else result

    return to_tensor


def memory_of(spec: Operator, sample: Any, how: Any, dtype: str) -> tuple[int, int] | None:
    """Bytes that a call takes at most, and those of its input and result; None if it cannot be
    made large.
    """
    whole = FEW if spec.family.startswith(COSTLY) else INPUT // 4
    for elements in (*TRIALS, whole):
        call = as_dtype(repeat(sample, how, elements), convert(dtype))
        nbytes = size([list(call.args), call.kwargs])
        gc.collect(0)
        pc.empty_cache()
        pc.reset_peak_memory_stats("cpu")
        before = int(pc.memory_stats()["live_bytes"])
        try:
            result = operator(spec.name)(*call.args, **call.kwargs)
        except Exception:  # not a call of this operator when it is enlarged so
            return None
        peak = int(pc.memory_stats()["peak_bytes"]) - before
        if elements < whole and size(result) > 32 * (nbytes + 64):
            return None
        del call
    return peak, nbytes + size(result)


PUBLIC = [
    spec
    for spec in specs.all()
    if not (spec.internal or spec.unpredictable)
    if spec.name not in UNKNOWN
]


@pytest.mark.parametrize("spec", PUBLIC, ids=lambda spec: spec.name)
def test_memory_is_bounded(spec: Operator) -> None:
    factor = LARGER.get(spec.name, FACTOR)
    measured = 0
    for dtype in DTYPES:
        for sample in distinct_samples(spec, 1):
            result = (memory_of(spec, sample, how, dtype) for how in enlargements(sample))
            for peak, whole in itertools.islice(filter(None, result), 1):
                assert peak <= factor * whole + SCRATCH, (dtype, peak / max(whole, 1))
                measured += 1
    if not measured:
        pytest.skip("no sample of it can grow")


IN_PLACE = [
    spec
    for spec in PUBLIC
    if spec.inplace and hasattr(pc.Tensor, spec.schema.base + "_")
    if not spec.family.startswith(COSTLY)
]
LARGE = MEGABYTE  # elements of float32: a copy is larger than SCRATCH
# They compute in float64, or need an intermediate beside the last one.
WITH_TEMPORARY = {"float_power", "ldexp", "mvlgamma", "renorm"}


@pytest.mark.parametrize("spec", IN_PLACE, ids=lambda spec: spec.name)
def test_in_place_takes_no_copy(spec: Operator) -> None:
    """A result that has no other dtype than its target is written there."""
    write = getattr(pc.Tensor, spec.schema.base + "_")
    if spec.name in WITH_TEMPORARY:
        pytest.skip("it has a temporary")
    for sample in distinct_samples(spec, 1):
        for how in enlargements(sample):
            call = as_dtype(repeat(sample, how, LARGE), convert("float32"))
            target, *args = call.args
            if not isinstance(target, pc.Tensor) or size(target) < LARGE:
                continue
            gc.collect(0)
            pc.empty_cache()
            pc.reset_peak_memory_stats("cpu")
            before = int(pc.memory_stats()["live_bytes"])
            try:
                write(target, *args, **call.kwargs)
            except Exception:  # not a call of this operator when it is enlarged so
                continue
            peak = int(pc.memory_stats()["peak_bytes"]) - before
            assert peak <= SCRATCH, peak / MEGABYTE
            return
    pytest.skip("no sample of it can grow")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "spec",
    [spec for spec in IN_PLACE if not isinstance(spec, (Composite, Pointwise, View))],
    ids=lambda spec: spec.name,
)
def test_kernels_of_programs_share_no_memory(spec: Operator, dtype: str) -> None:
    """A kernel that may clear its result before it reads does not get an input as the result."""
    shared = []

    def look(*values: Any) -> Any:
        *arguments, result = values
        shared.extend(each.data_ptr() == result.data_ptr() for each in tensors(arguments))
        return NotImplemented  # plait's own kernel computes

    write = getattr(pc.Tensor, spec.schema.base + "_")
    with kernel(spec.name, look):
        for sample in distinct_samples(spec, 1):
            call = as_dtype(sample, convert(dtype))
            try:
                write(*call.args, **call.kwargs)
            except Exception:  # the result does not fit the target
                continue
    assert not any(shared)
