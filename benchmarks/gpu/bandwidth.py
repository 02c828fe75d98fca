"""Kernels that memory limits, as a share of a copy on the device; products beside PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gpu.sides import Options, Side, in_turns, sides

__all__ = ["run"]

Work = Callable[[], Any]


def run(options: Options) -> dict[str, Any]:
    """Return for each kernel its bytes and seconds on each side, and for products operations."""
    present = sides(options)
    rows = 64 if options.small else 8192
    tables = {side: kernels(side, rows, options.device) for side in present}
    seconds = options.seconds / (len(tables[present[0]]) + 12)
    result: dict[str, Any] = {"kernels": {}, "products": {}}
    for name in tables[present[0]]:
        works = {side: tables[side][name][1] for side in present}
        nbytes = tables[present[0]][name][0]
        result["kernels"][name] = {"bytes": nbytes, **in_turns(works, seconds)}
    for dtype in ("float32", "bfloat16"):
        for size in (32,) if options.small else (512, 2048, 8192):
            works = {side: product(side, size, dtype, options.device) for side in present}
            row = {"operations": 2 * size**3, **in_turns(works, seconds)}
            result["products"][f"{size} {dtype}"] = row
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
