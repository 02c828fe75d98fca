"""The cost of results that do not depend on threads, on the size of the batch, or on the processor.

The peer is the same work without this property: OpenBLAS with its own threads, plait's own products
without the batch-invariant mode, and steps of the paper's models without the reproducible mode. A
ratio of 1.1 is a cost of 10 %.
"""

from __future__ import annotations

import ctypes
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy_openblas32
from models import MODELS, PAPER
from timing import Case, Seconds

import plait_core as pc
from plait_abi import operator

__all__ = ["cases"]

BAR = 1.1
SIDES = (512, 1024, 2048)
BATCHES = ((32, 1024, 1024), (512, 512, 512), (8, 25088, 4096), (2048, 2048, 2048))
MODE_BAR = 1.5  # of the reproducible mode
STEPS = {"alexnet": 16, "vgg19": 4, "resnet50": 8, "mobilenet": 8, "gnmt": 8, "neumf": 1024}
ROW_MAJOR, PLAIN = 101, 111
PATIENCE = 0.05  # seconds: the time that OpenBLAS's threads spin while they wait


def openblas() -> Any:
    """A copy of the library that plait opens, with its own threads."""
    name = f"lib{scipy_openblas32.get_library()}.so"
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(Path(scipy_openblas32.get_lib_dir()) / name, folder)
        return ctypes.CDLL(copy)


def free_product(library: Any, n: int) -> Callable[[], Any]:
    """``x @ x`` by one call of OpenBLAS with as many threads as plait has."""
    library.scipy_openblas_set_num_threads(pc.get_num_threads())
    x = np.random.default_rng(0).standard_normal((n, n), dtype=np.float32)
    out = np.empty_like(x)
    one, zero = ctypes.c_float(1), ctypes.c_float(0)

    def run() -> Any:
        a, c = (ctypes.c_void_p(each.ctypes.data) for each in (x, out))
        start = time.perf_counter()
        library.scipy_cblas_sgemm(
            ROW_MAJOR, PLAIN, PLAIN, n, n, n, one, a, n, a, n, zero, c, n
        )  # fmt: skip
        seconds = Seconds(time.perf_counter() - start)
        time.sleep(PATIENCE)
        return seconds

    return run


def in_mode(on: bool, run: Callable[[], Any]) -> Callable[[], Any]:
    """A call in the batch-invariant mode, or outside of it."""

    def call() -> Any:
        before = pc.is_batch_invariant()
        pc.set_batch_invariant(on)
        try:
            return run()
        finally:
            pc.set_batch_invariant(before)

    return call


def step(name: str, batch: int) -> Callable[[bool], Callable[[], None]]:
    """Return a function that gives a training step in the reproducible mode, or outside of it."""
    import plait

    model = MODELS[name]
    network = model.build(plait)
    optimizer = model.optimizer(plait, network.parameters())
    *inputs, target = (plait.from_numpy(x) for x in model.data(batch))

    def in_reproducible_mode(on: bool) -> Callable[[], None]:
        def run() -> None:
            plait.set_reproducible(on)
            try:
                optimizer.zero_grad()
                model.loss(plait, network(*inputs), target).backward()
                optimizer.step()
            finally:
                plait.set_reproducible(False)

        return run

    return in_reproducible_mode


def cases() -> Iterator[Case]:
    """The cases: see `timing.Case`. The batch-invariant mode has no bar, as it is optional."""
    library, linear = openblas(), operator("linear")
    for n in SIDES:
        x = pc.randn(n, n)
        yield (
            f"product of {n} x {n}, bits apart from threads",
            lambda x=x: x @ x,
            free_product(library, n),
            BAR,
        )
    for m, k, n in BATCHES:
        x, w = pc.randn(m, k), pc.randn(n, k)
        run = lambda x=x, w=w: linear(x, w)  # noqa: E731
        yield (
            f"linear {m} x {k} x {n}, batch-invariant",
            in_mode(True, run),
            in_mode(False, run),
            None,
        )
    for name in PAPER:
        make = step(name, STEPS[name])
        yield f"step of {name}, reproducible", make(True), make(False), MODE_BAR
