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
    state = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, (list, tuple)):
            for each in value:
                add(each)
        elif isinstance(value, pc.Tensor):
            wide = value.detach()
            if wide.dtype is pc.bfloat16:
                wide = wide.to(pc.float32)
            state.update(f"{value.dtype}{tuple(value.shape)}".encode() + bits(wide.numpy()))
        else:
            state.update(repr(value).encode())

    add(result)
    return state.hexdigest()[:16]


def outcome(function: Any, *args: Any, **kwargs: Any) -> str:
    """Return the digest of a call's result, or REFUSED."""
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
    yield from convolutions()
    values = np.random.default_rng(5).standard_normal(100_000, dtype=np.float32)
    x = pc.from_numpy(np.concatenate([values, 30 * values, 1e-3 * values, 1e4 * values]))
    for name in (
        *("exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "tanh"),
        *("sinh", "cosh", "atan", "asin", "acos", "asinh", "acosh", "atanh", "erf", "sigmoid"),
        *("silu", "softplus", "mish", "elu", "selu", "celu", "log_sigmoid", "tanhshrink", "rsqrt"),
        *("gelu", "sqrt", "reciprocal", "square", "hardswish", "softsign", "lgamma", "digamma"),
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
    for n in (74, 100, 384, 1001, 4096):
        for dtype in ("float32", "float64"):
            line = values[: 9 * n].reshape(9, n).astype(dtype)
            for layout, line_ in (("rows", line), ("columns", line.T.copy().T)):
                z = pc.fft.fft(pc.from_numpy(line_))
                yield f"fft {n} {dtype} {layout}", digest(z)
                yield f"ifft {n} {dtype} {layout}", digest(pc.fft.ifft(z))
                yield f"irfft {n} {dtype} {layout}", digest(pc.fft.irfft(z))
    yield "randn", outcome(pc.randn, 10_001)
    yield "rand", outcome(pc.rand, 10_001)


def convolutions() -> Iterator[tuple[str, str]]:
    """Yield convolutions of random sizes and their derivatives."""
    generator = np.random.default_rng(7)

    def draw_tensor(*shape: int) -> Any:
        return pc.from_numpy(generator.standard_normal(shape, dtype=np.float32))

    def one_of(*values: int) -> int:
        return int(generator.choice(values))

    for i in range(80):
        groups, per_group = (one_of(1, 2, 6), one_of(1, 4)) if i % 4 == 0 else (1, 0)
        c = groups * per_group or one_of(1, 2, 3, 4, 8, 16, 33, 64, 130)
        oc = groups * one_of(1, 3, 8) if groups > 1 else one_of(1, 3, 6, 8, 12, 16, 40, 64, 130)
        k, stride, dilation = one_of(1, 2, 3, 4, 5), one_of(1, 1, 2), one_of(1, 1, 1, 2)
        padding, size = one_of(0, 1, 2), one_of(9, 12, 17, 28)
        x = draw_tensor(one_of(1, 2, 3, 8, 16, 19), c, size, size + one_of(0, 0, 3))
        w = draw_tensor(oc, c // groups, k, k)
        bias = draw_tensor(oc) if i % 2 else None
        settings = (stride, padding, dilation, groups)
        y = operator("conv2d")(x, w, bias, *settings)
        name = f"convolution {i} {tuple(x.shape)} {tuple(w.shape)} {settings}"
        yield name, digest(y)
        backward_input, backward_weight = (
            operator(f"conv2d_backward_{of}")(y, other, list(to.shape), *settings)
            for of, other, to in (("input", w, x), ("weight", x, w))
        )
        yield f"{name} input", digest(backward_input)
        yield f"{name} weight", digest(backward_weight)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    pc.set_reproducible(True)
    with open(sys.argv[1], "w") as to:
        json.dump(dict([*operators(), *large()]), to)
