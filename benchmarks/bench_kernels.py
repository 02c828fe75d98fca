"""Kernels compared with the peer's, without gradients: pointwise, rows, products, images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from timing import Case

import plait_core as pc
from plait_abi import operator

__all__ = ["cases"]

RNG = np.random.default_rng(0)
aten = torch.ops.aten


def both(array: Any) -> tuple[Any, Any]:
    """The same numbers for plait and for torch."""
    return pc.from_numpy(array), torch.from_numpy(array)


def draw(*shape: int) -> tuple[Any, Any]:
    """Normal float32 numbers for both."""
    return both(RNG.standard_normal(shape).astype(np.float32))


def same(name: str, make: Callable[[Any, Any], Callable[[], Any]], *shape: int) -> Case:
    """A case in which both sides are called alike: ``make(library, tensor)``."""
    x, y = draw(*shape)
    return name, make(pc, x), make(torch, y), None


def pointwise() -> Iterator[Case]:
    """Cases that are limited by memory, and by arithmetic."""
    many = 1 << 24
    yield same("add, 4096", lambda lib, x: lambda: x + x, 4096)
    yield same("add, 16 M", lambda lib, x: lambda: x + x, many)
    yield same("exp, 16 M", lambda lib, x: lambda: lib.exp(x), many)
    yield same("tanh, 16 M", lambda lib, x: lambda: lib.tanh(x), many)
    yield same("sin, 1 M", lambda lib, x: lambda: lib.sin(x), 1 << 20)
    yield same("x > 0, 16 M", lambda lib, x: lambda: x > 0, many)
    yield same("x + row, 4096 x 4096", lambda lib, x: lambda: x + x[0], 4096, 4096)
    yield same("transposed copy, 2000 x 2000", lambda lib, x: lambda: x.T.contiguous(), 2000, 2000)
    yield same("to channels last, 16 x 64 x 56 x 56", channels_last, 16, 64, 56, 56)
    yield same("randn, 1 M", lambda lib, x: lambda: lib.randn(1 << 20), 1)


def channels_last(library: Any, x: Any) -> Callable[[], Any]:
    """A copy in channels-last format."""
    return lambda: x.permute(0, 2, 3, 1).contiguous()


def rows() -> Iterator[Case]:
    """Reductions, softmax, losses, normalisation, lookups."""
    yield same("sum, 16 M", lambda lib, x: lambda: x.sum(), 1 << 24)
    yield same("sum of columns, 4096 x 4096", lambda lib, x: lambda: x.sum(0), 4096, 4096)
    yield same("var of rows, 4096 x 4096", lambda lib, x: lambda: x.var(1), 4096, 4096)
    yield same("argmax of rows, 4096 x 4096", lambda lib, x: lambda: x.argmax(1), 4096, 4096)
    for shape in ((128, 1000), (4096, 4096)):
        text = f"{shape[0]} x {shape[1]}"
        yield same(f"softmax, {text}", lambda lib, x: lambda: lib.softmax(x, 1), *shape)
        yield same(f"log_softmax, {text}", lambda lib, x: lambda: lib.log_softmax(x, 1), *shape)
    x, y = draw(4096, 1000)
    labels, targets = both(RNG.integers(0, 1000, 4096))
    peer, cross_entropy = torch.nn.functional, operator("cross_entropy")
    yield (
        "cross_entropy, 4096 x 1000",
        lambda: cross_entropy(x, labels),
        lambda: peer.cross_entropy(y, targets),
        None,
    )
    a, b = draw(8192, 1024)
    yield (
        "layer_norm, 8192 x 1024",
        lambda: pc.layer_norm(a, (1024,)),
        lambda: peer.layer_norm(b, (1024,)),
        None,
    )
    table, weights = draw(50_000, 256)
    at, indices = both(RNG.integers(0, 50_000, 8192))
    yield (
        "embedding, 8192 of 50000 x 256",
        lambda: pc.embedding(table, at),
        lambda: peer.embedding(indices, weights),
        None,
    )


def products() -> Iterator[Case]:
    """Matrix products of the sizes that networks have."""
    linear = operator("linear")
    for m, k, n in ((32, 1024, 1024), (8, 25_088, 4096), (512, 512, 512), (2048, 2048, 2048)):
        (a, b), (c, d) = draw(m, k), draw(n, k)
        bias, shift = draw(n)
        yield (
            f"linear, {m} x {k} x {n}",
            lambda a=a, c=c, bias=bias: linear(a, c, bias),
            lambda b=b, d=d, shift=shift: torch.nn.functional.linear(b, d, shift),
            None,
        )


def images() -> Iterator[Case]:
    """Pooling in both passes; convolutions are in bench_convolutions.py."""
    for shape in ((128, 6, 28, 28), (8, 64, 112, 112)):
        x, y = draw(*shape)
        yield from pooling(" x ".join(map(str, shape)), x, y)


def pooling(name: str, x: Any, y: Any) -> Iterator[Case]:
    """Windows of 2 x 2, forward and backward."""
    peer = torch.nn.functional.max_pool2d
    result, indices = operator("max_pool2d_with_indices")(x, 2)
    at = peer(y, 2, return_indices=True)[1]
    gx, gy = both(RNG.standard_normal(result.shape).astype(np.float32))
    backward = operator("max_pool2d_backward")
    yield f"max_pool2d, {name}", lambda: pc.max_pool2d(x, 2), lambda: peer(y, 2), None
    yield (
        f"max_pool2d backward, {name}",
        lambda: backward(gx, indices, x.shape),
        lambda: aten.max_pool2d_with_indices_backward(
            gy, y, [2, 2], [2, 2], [0, 0], [1, 1], False, at
        ),
        None,
    )


def cases() -> Iterator[Case]:
    """The cases: see `timing.Case`."""
    yield from pointwise()
    yield from rows()
    yield from products()
    yield from images()
