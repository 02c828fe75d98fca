"""Kernels that memory limits, as a share of a copy on the device; products and convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gpu.sides import Options, Side, in_turns, sides

__all__ = ["run"]

Work = Callable[[], Any]

CONVOLUTIONS = ((64, 64, 56, 3), (256, 256, 14, 3), (256, 64, 56, 1), (3, 64, 112, 7))
"""Channels in and out, pixels of a side of the result, and of the filter: some of ResNet-50's."""


def run(options: Options) -> dict[str, Any]:
    """Return for each kernel its bytes and seconds on each side, and for products operations."""
    present = sides(options)
    rows = 64 if options.small else 8192
    tables = {side: kernels(side, rows, options.device) for side in present}
    seconds = options.seconds / (len(tables[present[0]]) + 12 + 3 * len(CONVOLUTIONS))
    result: dict[str, Any] = {"kernels": {}, "products": {}, "convolutions": {}}
    for name in tables[present[0]]:
        works = {side: tables[side][name][1] for side in present}
        nbytes = tables[present[0]][name][0]
        result["kernels"][name] = {"bytes": nbytes, **in_turns(works, seconds)}
    for dtype in ("float32", "bfloat16"):
        for size in (32,) if options.small else (512, 2048, 8192):
            works = {side: product(side, size, dtype, options.device) for side in present}
            row = {"operations": 2 * size**3, **in_turns(works, seconds)}
            result["products"][f"{size} {dtype}"] = row
        for sizes in CONVOLUTIONS:
            works = {side: convolution(side, sizes, dtype, options) for side in present}
            name, operations = convolution_facts(sizes, options)
            row = {"operations": operations, **in_turns(works, seconds)}
            result["convolutions"][f"{name} {dtype}"] = row
    return result


def kernels(side: Side, rows: int, device: str) -> dict[str, tuple[int, Work]]:
    """Return the kernels by name: the least bytes that they move, and a call."""
    lib = side.library
    functional = lib.nn.functional
    columns = 4096 if rows > 1000 else 128
    x = lib.randn(rows, columns, device=device)
    y, out = lib.randn(rows, columns, device=device), lib.empty(rows, columns, device=device)
    half = x.to(lib.bfloat16)
    vector = lib.ones(columns, device=device)
    images = lib.randn(rows // 32, 64, 32, columns // 64, device=device)
    channels = [lib.ones(64, device=device) for _ in range(4)]
    n = 4 * math.prod(x.shape)
    index = lib.randint(0, rows, (rows,), device=device)
    parameter = lib.nn.Parameter(lib.zeros(rows, columns, device=device))
    parameter.grad = lib.randn(rows, columns, device=device)
    adam = lib.optim.Adam([parameter])
    norm_arguments = (*channels, True)
    return {
        "copy": (2 * n, lambda: out.copy_(x)),
        "add": (3 * n, lambda: lib.add(x, y, out=out)),
        "add a row": (2 * n, lambda: lib.add(x, vector, out=out)),
        "relu": (2 * n, lambda: functional.relu(x)),
        "gelu": (2 * n, lambda: functional.gelu(x)),
        "exp of bfloat16": (n, lambda: half.exp()),
        "cast to bfloat16": (n + n // 2, lambda: x.to(lib.bfloat16)),
        "transposed copy": (2 * n, lambda: x.t().contiguous()),
        "sum": (n, lambda: x.sum()),
        "sum of rows": (n, lambda: x.sum(1)),
        "sum of columns": (n, lambda: x.sum(0)),
        "max of rows": (n, lambda: x.amax(1)),
        "softmax": (2 * n, lambda: x.softmax(1)),
        "layer norm": (2 * n, lambda: functional.layer_norm(x, (columns,), vector, vector)),
        "batch norm": (3 * n, lambda: functional.batch_norm(images, *norm_arguments)),
        "cumsum": (2 * n, lambda: x.cumsum(1)),
        "rows by index": (2 * n, lambda: x.index_select(0, index)),
        "Adam": (7 * n, adam.step),
    }


def product(side: Side, size: int, dtype: str, device: str) -> Work:
    """Return a call of a product of two square matrices."""
    library = side.library
    kind = getattr(library, dtype)
    a, b = (library.randn(size, size, device=device).to(kind) for _ in range(2))
    return lambda: a @ b


def scaled(sizes: tuple[int, int, int, int], options: Options) -> tuple[int, int, int, int, int]:
    """Return the batch, and the sizes of a convolution."""
    c, k, size, r = sizes
    return (1, min(c, 8), 8, 8, r) if options.small else (64, c, k, size, r)


def convolution_facts(sizes: tuple[int, int, int, int], options: Options) -> tuple[str, int]:
    """Return the name of a convolution, and its operations."""
    n, c, k, size, r = scaled(sizes, options)
    return f"{c} to {k} channels, {size} x {size}, {r} x {r}", 2 * n * k * size**2 * c * r**2


def convolution(side: Side, sizes: tuple[int, int, int, int], dtype: str, options: Options) -> Work:
    """Return a call of a convolution."""
    library = side.library
    n, c, k, size, r = scaled(sizes, options)
    stride = 2 if r == 7 else 1
    kind = getattr(library, dtype)
    x = library.randn(n, c, size * stride, size * stride, device=options.device).to(kind)
    w = library.randn(k, c, r, r, device=options.device).to(kind)
    call = library.nn.functional.conv2d
    return lambda: call(x, w, None, stride, r // 2)
