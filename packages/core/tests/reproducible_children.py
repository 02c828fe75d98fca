"""The program of test_reproducible: digests of results in the reproducible mode, as JSON."""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples import draw

REFUSED = "refused"


def bits(array: np.ndarray[Any, Any]) -> bytes:
    """Return the bytes of an array; the payloads of NaNs do not count."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "c":
        array = array.view(array.real.dtype)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.tobytes()


def digest(result: Any) -> str:
    """Return a digest of all tensors and numbers of a result."""
    found = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, (list, tuple)):
            for each in value:
                add(each)
        elif isinstance(value, pc.Tensor):
            wide = value.detach()
            if wide.dtype is pc.bfloat16:
                wide = wide.to(pc.float32)
            found.update(f"{value.dtype}{tuple(value.shape)}".encode() + bits(wide.numpy()))
        else:
            found.update(repr(value).encode())

    add(result)
    return found.hexdigest()[:16]


def outcome(function: Any, *args: Any, **kwargs: Any) -> str:
    """Return the digest of what a call returns, or REFUSED."""
    pc.manual_seed(0)
    try:
        return digest(function(*args, **kwargs))
    except NotImplementedError as error:
        if "set_reproducible" not in str(error):
            raise
        return REFUSED


def operators() -> Iterator[tuple[str, str]]:
    """Yield each sample call of each operator that does not return uninitialised memory."""
    for spec in specs.all():
        if spec.name.startswith(("empty", "new_empty")):
            continue
        for i, sample in enumerate(draw(spec)):
            call = sample.copied().mapped(pc.from_numpy)
            yield f"{spec.name} {i}", outcome(operator(spec.name), *call.args, **call.kwargs)


def large() -> Iterator[tuple[str, str]]:
    """Yield calls that are large enough for tiles, blocks and pieces."""
    from test_bits import BY_IMAGE, BY_ROW, OPERATORS, A

    for name, function in OPERATORS.items():
        yield f"large {name}", outcome(function)
    for name, by_row in BY_ROW.items():
        yield f"rows {name}", outcome(by_row, A)
    for name, (images, by_image) in BY_IMAGE.items():
        yield f"images {name}", outcome(by_image, images)
    values = np.random.default_rng(5).standard_normal(100_000, dtype=np.float32)
    x = pc.from_numpy(np.concatenate([values, 30 * values, 1e-3 * values, 1e4 * values]))
    for name in (
        *("exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "tanh"),
        *("sinh", "cosh", "atan", "asin", "acos", "asinh", "acosh", "atanh", "erf", "sigmoid"),
        *("silu", "softplus", "mish", "elu", "selu", "celu", "log_sigmoid", "tanhshrink", "rsqrt"),
        *("gelu", "sqrt", "reciprocal", "square", "hardswish", "softsign"),
    ):
        yield f"many {name}", outcome(operator(name), x)
    yield "many pow", outcome(operator("pow"), x.abs(), x.flip(0))
    yield "many atan2", outcome(operator("atan2"), x, x.flip(0))
    for dtype, low, high in (("float32", -140, 100), ("float64", -1070, 900)):
        for seed in range(3):  # results are subnormal, cancel, overflow
            generator = np.random.default_rng(seed)
            a, b = (
                np.ldexp(
                    np.where(
                        generator.random((40, 40)) < 0.1, 0, generator.standard_normal((40, 40))
                    ),
                    generator.integers(low, high, (40, 40)) // (1 + seed),
                ).astype(dtype)
                for _ in range(2)
            )
            yield f"edges {dtype} {seed}", outcome(operator("mm"), *map(pc.from_numpy, (a, b)))
    yield "randn", outcome(pc.randn, 10_001)
    yield "rand", outcome(pc.rand, 10_001)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    pc.set_reproducible(True)
    with open(sys.argv[1], "w") as to:
        json.dump(dict([*operators(), *large()]), to)
