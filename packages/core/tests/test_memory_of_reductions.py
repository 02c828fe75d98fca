"""The memory of reductions, scans and extremes beside input and result: the same for any input.

Every operator of the families below is called on 4 MB of halves, bytes and truth values, with one
thread, as each has memory of its own.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.promotion import group
from plait_ops.spec import Operator

pytestmark = pytest.mark.usefixtures("one_thread")

FAMILIES = ("reduction/reductions", "reduction/extremes", "reduction/scans", "reduction/variance")
FAMILIES += ("reduction/norms", "reduction/counting")
MEGABYTE = 1 << 20
INPUT, SCRATCH = 4 * MEGABYTE, 3 * MEGABYTE
SIZES = {"float16": 2, "bfloat16": 2, "uint8": 1, "bool": 1}
# They are made of elementwise steps, whose temporaries have the shape of the input.
COMPOSED = {"histc", "histogram", "logsumexp"}
# Integers are cast to int64 first, which is the size of the result, as in PyTorch.
CAST = {("reduction/scans", "uint8"), ("reduction/scans", "bool")}


def arguments(spec: Operator) -> Iterator[dict[str, Any]]:
    """Yield arguments beside `self`: a dimension, if that is all that the operator needs."""
    needed = [each for each in spec.schema.arguments if not each.has_default]
    dims = [each for each in spec.schema.arguments if each.name == "dim"]
    names = [each.name for each in needed]
    if names == ["self"]:
        yield {}
    elif names == ["self", "unbiased"]:
        yield {"unbiased": True}
    if names in (["self"], ["self", "dim"]) and dims:
        as_list = dims[0].type.startswith("int[]")
        for dim in (0, 1):
            yield {"dim": [dim] if as_list else dim}


CASES = [
    (spec, dtype)
    for spec in specs.all()
    if spec.family in FAMILIES and not spec.internal and spec.name not in COMPOSED
    for dtype in SIZES
    if (spec.family, dtype) not in CAST
    if dtype in group(spec.dtypes) or (dtype == "bfloat16" and "float16" in group(spec.dtypes))
]


def stat(name: str) -> int:
    return int(pc.memory_stats()[name])


@pytest.mark.parametrize(("spec", "dtype"), CASES, ids=lambda v: getattr(v, "name", v))
def test_memory_does_not_grow_with_the_input(spec: Operator, dtype: str) -> None:
    for rows in (1, 256):
        whole = INPUT // SIZES[dtype]
        x = pc.ones(whole if rows == 1 else (rows, whole // rows), dtype=getattr(pc, dtype))
        for call in arguments(spec):
            if rows == 1 and call.get("dim") in (1, [1]):
                continue
            gc.collect()
            pc.empty_cache()
            pc.reset_peak_memory_stats("cpu")
            before = stat("live_bytes")
            try:
                result = operator(spec.name)(x, **call)
            except (pc.DTypeError, pc.ShapeError):
                break  # the operator's own rules
            results = result if isinstance(result, tuple) else (result,)
            size = sum(each.numel() * each.itemsize for each in results)
            assert stat("peak_bytes") - before <= size * 1.25 + SCRATCH, (call, rows)


@pytest.mark.parametrize("dtype", list(SIZES))
def test_equal_compares_block_by_block(dtype: str) -> None:
    x = pc.ones(INPUT // SIZES[dtype], dtype=getattr(pc, dtype))
    y = x.clone()
    pc.reset_peak_memory_stats("cpu")
    before = stat("live_bytes")
    assert pc.equal(x, y)
    assert stat("peak_bytes") - before <= 5 * MEGABYTE
    y[-1] = 0
    assert not pc.equal(x, y) and not pc.equal(x, y[1:])
    rows = x.reshape(4, -1)[:, ::2]
    assert pc.equal(rows, rows.clone()) and not pc.equal(rows, rows * 0)
