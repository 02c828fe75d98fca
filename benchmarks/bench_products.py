"""Matrix products of the shapes that models have, beside torch and beside what the machine can do.

The floor of a product is the larger of two times: its operations at the rate of multiply-adds in
registers, and its operands and result, once, at the rate at which a large tensor is summed up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from hardware_peak import hardware_peak
from timing import Case, Figure

import plait_core as pc
from plait_abi import operator

__all__ = ["CHEAP", "FIGURES", "SHAPES", "Shape", "cases"]

CHEAP = False
BUDGET = 0.15  # seconds for each of four times of a shape
NEAR = 1 / 0.9  # times the floor
LARGE = 1 << 20  # elements of an operand that does not stay in a core's caches


class Shape(NamedTuple):
    """A product (m, k) by (k, n), or `batch` of them.

    Attributes:
        left: "n", or "t": the operand lies as its transpose.
        right: the same of the other operand; a weight of ``Linear`` is "t".
    """

    name: str
    m: int
    k: int
    n: int
    left: str = "n"
    right: str = "t"
    batch: int = 0

    @property
    def title(self) -> str:
        """The name and the sizes."""
        batch = f"{self.batch} x " if self.batch else ""
        layout = "" if self.left + self.right == "nt" else f" {self.left}{self.right}"
        return f"{self.name}: {batch}{self.m} x {self.k} x {self.n}{layout}"


SHAPES = [
    Shape("VGG-19, batch 4, first layer of the head", 4, 25088, 4096),
    Shape("the same by the input", 4, 4096, 25088, right="n"),
    Shape("the same by the weight", 4096, 4, 25088, "t", "n"),
    Shape("AlexNet, batch 32, first layer of the head", 32, 9216, 4096),
    Shape("ResNet-50, batch 8, scores", 8, 2048, 1000),
    Shape("GNMT, 32 x 25, gates", 800, 512, 2048),
    Shape("the same by the weight", 2048, 800, 512, "t", "n"),
    Shape("GNMT, one step", 32, 512, 2048),
    Shape("GNMT, scores", 800, 512, 32000),
    Shape("NeuMF, 4096", 4096, 256, 256),
    Shape("NeuMF, last layer", 4096, 128, 64),
    Shape("NeuMF, score", 4096, 128, 1),
    Shape("the same by the weight", 256, 4096, 256, "t", "n"),
    Shape("GPT-2, prompt of 512, gates of attention", 512, 768, 2304),
    Shape("GPT-2, prompt of 512, to hidden", 512, 768, 3072),
    Shape("GPT-2, prompt of 512, from hidden", 512, 3072, 768),
    Shape("GPT-2, prompt of 512, scores", 512, 768, 50257),
    Shape("GPT-2, one word, to hidden", 1, 768, 3072),
    Shape("GPT-2, one word, from hidden", 1, 3072, 768),
    Shape("GPT-2, one word, scores", 1, 768, 50257),
    Shape("GPT-2, four words, scores", 4, 768, 50257),
    Shape("GPT-2, eight words, scores", 8, 768, 50257),
    Shape("BERT, 8 x 128, projections", 1024, 768, 768),
    Shape("BERT, 8 x 128, to hidden", 1024, 768, 3072),
    Shape("BERT, 8 x 128, scores of attention", 128, 64, 128, "n", "t", 96),
    Shape("BERT, 8 x 128, values of attention", 128, 128, 64, "n", "n", 96),
    Shape("square", 64, 64, 64, right="n", batch=64),
    Shape("square", 256, 256, 256, right="n"),
    Shape("square", 512, 512, 512, right="n"),
    Shape("square", 1024, 1024, 1024, right="n"),
    Shape("square", 2048, 2048, 2048, right="n"),
]


def operands(shape: Shape) -> tuple[Any, Any]:
    """Random operands, as arrays."""
    rng = np.random.default_rng(0)
    batch = (shape.batch,) if shape.batch else ()
    a, b = (
        rng.standard_normal((*batch, *(size if layout == "n" else size[::-1])), dtype=np.float32)
        for size, layout in (
            ((shape.m, shape.k), shape.left),
            ((shape.k, shape.n), shape.right),
        )
    )
    return (
        a if shape.left == "n" else a.swapaxes(-1, -2),
        b if shape.right == "n" else b.swapaxes(-1, -2),
    )


def sides(shape: Shape) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The product by both libraries; a layer's by ``linear``."""
    a, b = operands(shape)
    if shape.left + shape.right == "nt" and not shape.batch:
        linear = operator("linear")
        x, w = pc.from_numpy(a), pc.from_numpy(b.T)
        y, v = torch.from_numpy(a), torch.from_numpy(b.T)
        return lambda: linear(x, w), lambda: torch.nn.functional.linear(y, v)
    p, q, r, s = pc.from_numpy(a), pc.from_numpy(b), torch.from_numpy(a), torch.from_numpy(b)
    return lambda: p @ q, lambda: r @ s


def cases() -> Iterator[Case]:
    """The cases: see `timing.Case`."""
    for shape in SHAPES:
        yield shape.title, *sides(shape), None


def shortest(call: Callable[[], Any], budget: float) -> float:
    """Return the shortest time of a call."""
    best, end = float("inf"), time.perf_counter() + budget
    while True:
        begin = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            return best


def reading() -> float:
    """Bytes a second of a tensor that no cache holds."""
    big = pc.ones(1 << 26)
    return float(big.nbytes) / shortest(big.sum, 0.3)


def floor(shape: Shape, threads: int, bandwidth: float) -> float:
    """The least time by the machine's rates; what the caches may hold counts as read at once."""
    count = max(shape.batch, 1)
    sizes = shape.m * shape.k, shape.k * shape.n, shape.m * shape.n
    operations = 2 * count * shape.m * shape.k * shape.n / hardware_peak(threads).flops
    return max(operations, 4 * sum(size for size in sizes if size >= LARGE) / bandwidth)


def floors() -> Iterator[Figure]:
    """Each shape's time over its floor on one thread, and one thread's time over two threads'."""
    before = pc.get_num_threads()
    try:
        rates = {}
        for threads in (1, 2):
            pc.set_num_threads(threads)
            rates[threads] = reading()
            peak = hardware_peak(threads).flops
            yield Figure(f"multiply-adds of {threads}", peak / 1e9, None, "GFLOP/s")
            yield Figure(f"reading, threads: {threads}", rates[threads] / 1e9, None, "GB/s")
        for shape in SHAPES:
            yield from figures(shape, rates)
    finally:
        pc.set_num_threads(before)
        torch.set_num_threads(before)


def figures(shape: Shape, rates: dict[int, float]) -> Iterator[Figure]:
    """The rows of one shape."""
    ours, theirs = sides(shape)
    best: dict[tuple[str, int], float] = {}
    for _ in range(2):
        for threads in (1, 2):
            pc.set_num_threads(threads)
            torch.set_num_threads(threads)
            for name, call in (("plait", ours), ("torch", theirs)):
                key = name, threads
                best[key] = min(best.get(key, float("inf")), shortest(call, BUDGET / 2))
    for threads in (1, 2):
        least = floor(shape, threads, rates[threads])
        note = f"torch {best['torch', threads] / least:.2f}"
        value, limit = best["plait", threads] / least, NEAR if threads == 1 else None
        yield Figure(f"{shape.title}, threads: {threads}", value, limit, "floors", note)
    gain = {name: best[name, 1] / best[name, 2] for name in ("plait", "torch")}
    note = f"torch {gain['torch']:.2f}"
    yield Figure(f"{shape.title}, gain of two threads", gain["plait"], None, "", note)


FIGURES = {"floors": floors}
