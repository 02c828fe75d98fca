"""What an operator takes beside its input and result: a bounded multiple of them.

Every public operator is called on 512 KB in float32 and bfloat16, with one thread, if its sample
can grow to that. Counted is what the allocator of the CPU gave. Families whose cost grows faster
than their input are left to benchmarks/bench_operator_memory.py.
"""

from __future__ import annotations

import gc
import itertools
from typing import Any

import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples.large import as_dtype, distinct_samples, enlargements, repeat
from plait_ops.spec import Operator

pytestmark = pytest.mark.usefixtures("one_thread")

MEGABYTE = 1 << 20
INPUT = 2 * MEGABYTE
SCRATCH = 3 * MEGABYTE  # constants, and a slab for small tensors that a call may need to map
TRIALS = (1 << 8, 1 << 12)  # elements, to see whether results grow as the input
DTYPES = ("float32", "bfloat16")
FACTOR = 6.0
# What they take is known, and more: the limit holds where they get better.
LARGER = {
    "histc": 12.0,  # a composite of about ten steps
    "histogram": 30.0,
    "msort": 10.0,  # indices are int64
    "nanquantile": 20.0,
    "nonzero_static": 30.0,  # places are int64, a column for each dimension
    "quantile": 20.0,
    "nextafter": 30.0,  # of halves: integers of twice their size, step by step
}
COSTLY = ("linalg/", "vision/", "recurrent/", "attention/")
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
    def to_tensor(array: Any, chosen: bool) -> Any:
        made = pc.from_numpy(array.copy())
        return made.to(getattr(pc, dtype)) if chosen and array.dtype.kind == "f" else made

    return to_tensor


def taken(spec: Operator, sample: Any, how: Any, dtype: str) -> tuple[int, int] | None:
    """Bytes that a call takes at most, and those of its input and result; None if it cannot be
    made large.
    """
    for elements in (*TRIALS, INPUT // 4):
        call = as_dtype(repeat(sample, how, elements), convert(dtype))
        given = size([list(call.args), call.kwargs])
        gc.collect(0)
        pc.empty_cache()
        pc.reset_peak_memory_stats("cpu")
        before = int(pc.memory_stats()["live_bytes"])
        try:
            made = operator(spec.name)(*call.args, **call.kwargs)
        except Exception:  # not a call of this operator when it is enlarged so
            return None
        peak = int(pc.memory_stats()["peak_bytes"]) - before
        if elements < INPUT // 4 and size(made) > 32 * (given + 64):
            return None
        del call
    return peak, given + size(made)


PUBLIC = [
    spec
    for spec in specs.all()
    if not (spec.internal or spec.unpredictable or spec.family.startswith(COSTLY))
    if spec.name not in UNKNOWN
]


@pytest.mark.parametrize("spec", PUBLIC, ids=lambda spec: spec.name)
def test_memory_is_bounded(spec: Operator) -> None:
    factor = LARGER.get(spec.name, FACTOR)
    measured = 0
    for dtype in DTYPES:
        for sample in distinct_samples(spec, 1):
            found = (taken(spec, sample, how, dtype) for how in enlargements(sample))
            for peak, whole in itertools.islice(filter(None, found), 1):
                assert peak <= factor * whole + SCRATCH, (dtype, peak / max(whole, 1))
                measured += 1
    if not measured:
        pytest.skip("no sample of it can grow")
