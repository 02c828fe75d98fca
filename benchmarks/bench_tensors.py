"""Twenty operators on tensors of 4 Ki, 1 Mi and 16 Mi elements: the fixed list.

The list was committed before any optimisation and does not change; cases that are slower than the
peer's are kept. Rows have 64 elements in the smallest, and 1024 in the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from timing import Case

import plait_core as pc

__all__ = ["MEAN_BAR", "cases"]

MEAN_BAR = 0.5  # of the geometric mean of all ratios: twice as fast
BAR = 1 / 0.9  # of each
SIZES = {"4 Ki": (64, 64), "1 Mi": (1024, 1024), "16 Mi": (16384, 1024)}
SIDES_OF_PRODUCTS = {"4 Ki": 64, "1 Mi": 1024, "16 Mi": 4096}
IMAGES = {"4 Ki": (1, 1, 64, 64), "1 Mi": (4, 16, 128, 128), "16 Mi": (16, 64, 128, 128)}

Maker = Callable[..., Callable[[], Any]]

# Functions of the library, x, y and a row: all float32, from the normal distribution.
DENSE: dict[str, Maker] = {
    "x + y": lambda lib, x, y, row: lambda: x + y,
    "x * 2": lambda lib, x, y, row: lambda: x * 2,
    "x.add_(y)": lambda lib, x, y, row: lambda: x.add_(y),
    "x + row": lambda lib, x, y, row: lambda: x + row,
    "x > y": lambda lib, x, y, row: lambda: x > y,
    "exp": lambda lib, x, y, row: lambda: lib.exp(x),
    "tanh": lambda lib, x, y, row: lambda: lib.tanh(x),
    "where": lambda lib, x, y, row: where(lib, x, y),
    "transposed copy": lambda lib, x, y, row: lambda: x.T.contiguous(),
    "cat": lambda lib, x, y, row: lambda: lib.cat([x, y]),
    "sum": lambda lib, x, y, row: lambda: x.sum(),
    "mean of columns": lambda lib, x, y, row: lambda: x.mean(0),
    "amax of rows": lambda lib, x, y, row: lambda: x.amax(1),
    "softmax of rows": lambda lib, x, y, row: lambda: lib.softmax(x, 1),
    "layer_norm": lambda lib, x, y, row: layer_norm(lib, x, row),
    "cumsum of rows": lambda lib, x, y, row: lambda: x.cumsum(1),
    "sort of rows": lambda lib, x, y, row: lambda: x.sort(1),
}


def where(library: Any, x: Any, y: Any) -> Callable[[], Any]:
    """One or the other, by a condition that branch prediction cannot learn."""
    condition = x > y
    return lambda: library.where(condition, x, y)


def layer_norm(library: Any, x: Any, row: Any) -> Callable[[], Any]:
    """With weight and bias."""
    function = (library.nn.functional if library is torch else library).layer_norm
    return lambda: function(x, (x.shape[1],), row, row)


def both(array: Any) -> tuple[Any, Any]:
    """The same numbers for plait and for torch, each with memory of its own."""
    return pc.tensor(array), torch.tensor(array)


def cases() -> Iterator[Case]:
    """The sixty cases: see `timing.Case`."""
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> tuple[Any, Any]:
        return both(rng.standard_normal(shape, dtype=np.float32))

    for size, shape in SIZES.items():
        for name, make in DENSE.items():
            operands = zip(draw(*shape), draw(*shape), draw(shape[1]), strict=True)
            ours, theirs = (
                make(lib, *each) for lib, each in zip((pc, torch), operands, strict=True)
            )
            yield f"{name}, {size}", ours, theirs, BAR
        yield lookup(size, draw(*shape), both(rng.integers(0, shape[0], shape[0])))
        yield product(size, *draw(SIDES_OF_PRODUCTS[size], SIDES_OF_PRODUCTS[size]))
        yield pooling(size, *draw(*IMAGES[size]))


def lookup(size: str, tables: tuple[Any, Any], indices: tuple[Any, Any]) -> Case:
    """Rows in an order drawn at random."""
    (x, y), (i, j) = tables, indices
    return f"rows by index, {size}", lambda: x[i], lambda: y[j], BAR


def product(size: str, x: Any, y: Any) -> Case:
    """A square matrix by itself."""
    return f"x @ x, {size}", lambda: x @ x, lambda: y @ y, BAR


def pooling(size: str, x: Any, y: Any) -> Case:
    """Windows of 2 x 2, NCHW."""
    peer = torch.nn.functional.max_pool2d
    return f"max_pool2d, {size}", lambda: pc.max_pool2d(x, 2), lambda: peer(y, 2), BAR
