"""Measure where kernels choose a slow algorithm by rule, and write the table of exceptions.

    python benchmarks/tune.py                 measure, print what the rules lose, write the table
    python benchmarks/tune.py --check         measure and print only; exit status 1 if a rule loses
    PLAIT_CPU=avx2 python benchmarks/tune.py  the table of the family with narrower vectors

Each convolution of the networks below is computed by every algorithm that can, in turns, on one
thread, in processor time. A class of shapes gets a row if its rule takes more than a tenth longer
than the fastest algorithm, in two measurements. Rules that are not slower need no row.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pathlib
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import plait_core as pc
from plait_abi import operator
from plait_core._startup import kernel_library

__all__ = ["main"]

TABLES = pathlib.Path(__file__).resolve().parents[1] / "packages/core/cpp/kernel/tuning_tables.h"
BY_TABLE, BY_RULE, DIRECT, LANES, PIXELS, COLUMNS = -2, -1, 0, 16, 17, 18
NAMES = {-1: "ByRule", 0: "Direct", 2: "Tiles2", 3: "Tiles3", 4: "Tiles4", 5: "Tiles5"}
NAMES |= {16: "Lanes", 17: "Pixels", 18: "Columns"}
PASSES = ("forward", "by input", "by weight")
WORST = 1.1  # of the fastest algorithm's time
MOST = 2e9  # multiplications of a measurement; larger batches take as long for each image
ROUNDS = 5


class Layer(NamedTuple):
    """Square windows and images without groups, padded by half a window."""

    channels: int
    filters: int
    window: int
    stride: int
    side: int

    @property
    def result(self) -> int:
        """The side of the result."""
        return (self.side + 2 * (self.window // 2) - self.window) // self.stride + 1


def layers() -> Iterator[Layer]:
    """The convolutions of VGG-19, ResNet-50, AlexNet and MobileNetV2, without depthwise ones."""
    for c, f, side in ((3, 64, 224), (64, 64, 224), (64, 128, 112), (128, 128, 112)):
        yield Layer(c, f, 3, 1, side)
    for c, f, side in ((128, 256, 56), (256, 256, 56), (256, 512, 28), (512, 512, 28)):
        yield Layer(c, f, 3, 1, side)
    yield Layer(512, 512, 3, 1, 14)
    yield Layer(3, 64, 7, 2, 224)
    for c, side in ((64, 56), (128, 28), (256, 14), (512, 7)):
        yield Layer(c, c, 3, 1, side)
        yield Layer(c, 4 * c, 1, 1, side)
        yield Layer(4 * c, c, 1, 1, side)
        if c > 64:
            yield Layer(c, c, 3, 2, 2 * side)
            yield Layer(2 * c, 4 * c, 1, 2, 2 * side)
            yield Layer(2 * c, c, 1, 1, 2 * side)
    yield Layer(3, 64, 11, 4, 224)
    yield Layer(64, 192, 5, 1, 27)
    for c, f in ((192, 384), (384, 256), (256, 256)):
        yield Layer(c, f, 3, 1, 13)
    yield Layer(3, 32, 3, 2, 224)
    for c, f, side in ((32, 16, 112), (16, 96, 112), (96, 24, 56), (144, 24, 56), (24, 144, 56)):
        yield Layer(c, f, 1, 1, side)
    for c, f, side in ((144, 32, 28), (192, 32, 28), (32, 192, 28), (192, 64, 14), (64, 384, 14)):
        yield Layer(c, f, 1, 1, side)
    for c, f, side in ((384, 64, 14), (384, 96, 14), (96, 576, 14), (576, 96, 14), (576, 160, 7)):
        yield Layer(c, f, 1, 1, side)
    for c, f in ((160, 960), (960, 160), (960, 320), (320, 1280)):
        yield Layer(c, f, 1, 1, 7)


def candidates(layer: Layer, number: int, batch: int) -> list[int]:
    """The algorithms to compare, the rules first.

    Lanes are images, eight at a time, and derivatives by columns divide images among threads, so
    these are for many images.
    """
    chosen = [BY_RULE]
    if layer.stride == 1 and layer.window in (3, 5):
        chosen += [DIRECT, *((2, 4, 5) if layer.window == 3 else (2, 3))]
    else:
        chosen += [PIXELS]
    if number == 0 or batch >= 8:
        chosen.append(COLUMNS)
    if batch >= 8 and layer.side <= 14 and layer.window > 1:
        chosen.append(LANES)
    return chosen


def key_of(layer: Layer, number: int, batch: int) -> int:
    """The key of `ConvolutionClass` in kernel/tuning.cpp."""
    parts = (number, layer.window, layer.stride, 0 if batch < 4 else 1 if batch < 16 else 2)
    logs = (each.bit_length() - 1 for each in (layer.channels, layer.filters, layer.side))
    return int.from_bytes(bytes((*parts, *logs)), "big")


def calls(layer: Layer, batch: int) -> tuple[Callable[[], Any], ...]:
    """The three passes."""
    x = pc.randn(batch, layer.channels, layer.side, layer.side)
    w = pc.randn(layer.filters, layer.channels, layer.window, layer.window)
    g = pc.randn(batch, layer.filters, layer.result, layer.result)
    rest = ([layer.stride] * 2, [layer.window // 2] * 2, [1, 1], 1)
    forward, by_input = operator("conv2d"), operator("conv2d_backward_input")
    by_weight = operator("conv2d_backward_weight")
    return (
        lambda: forward(x, w, None, *rest),
        lambda: by_input(g, w, x.shape, *rest),
        lambda: by_weight(g, x, w.shape, *rest),
    )


def library() -> Any:
    """The kernels in use, which are loaded already."""
    folder = pathlib.Path(pc.__file__).parent / "lib"
    return ctypes.CDLL(str(folder / f"lib{kernel_library()}.so"))


def measure(call: Callable[[], Any], algorithms: list[int], force: Any) -> dict[int, float]:
    """Seconds of each algorithm: the median of rounds in turns."""
    times: dict[int, list[float]] = {each: [] for each in algorithms}
    repeats = dict.fromkeys(algorithms, 1)
    for turn in range(-1, ROUNDS):
        for each in list(times):
            force(each)
            begin = time.process_time()
            for _ in range(repeats[each]):
                call()
            taken = (time.process_time() - begin) / repeats[each]
            if turn >= 0:
                times[each].append(taken)
            else:
                repeats[each] = max(1, min(1000, int(0.01 / max(taken, 1e-6))))
        if turn == 1:  # what is far behind is not measured further
            best = min(min(seconds) for seconds in times.values())
            for each in [a for a, seconds in times.items() if min(seconds) > 1.5 * best]:
                if each != BY_RULE:
                    del times[each]
    force(BY_TABLE)
    return {each: statistics.median(seconds) for each, seconds in times.items()}


class Loss(NamedTuple):
    """How much longer than an algorithm a rule takes."""

    text: str
    algorithm: int
    ratio: float


def losses(batches: list[int], force: Any) -> tuple[dict[int, list[Loss]], list[float]]:
    """For each class of shapes its layers' losses, and all ratios."""
    found: dict[int, list[Loss]] = defaultdict(list)
    ratios = []
    for layer in dict.fromkeys(layers()):
        for batch in batches:
            work = layer.channels * layer.filters * layer.window**2 * layer.result**2
            if batch > 1 and batch * work > MOST:
                continue
            for number, call in enumerate(calls(layer, batch)):
                algorithms = candidates(layer, number, batch)
                loss = slowness(measure(call, algorithms, force))
                if loss[1] > WORST:  # once more, without those that are far behind
                    loss = min(
                        loss, slowness(measure(call, [BY_RULE, loss[0]], force)), key=lambda x: x[1]
                    )
                ratios.append(loss[1])
                text = (
                    f"{layer.channels}-{layer.filters}, {layer.window}x{layer.window} by "
                    f"{layer.stride} @{layer.side}, batch {batch}, {PASSES[number]}"
                )
                if loss[1] > WORST:
                    print(f"{text:56s} {NAMES[loss[0]]:8s} {loss[1]:.2f}", flush=True)
                found[key_of(layer, number, batch)].append(Loss(text, *loss))
    return found, ratios


def slowness(times: dict[int, float]) -> tuple[int, float]:
    """The fastest algorithm, and the rule's time over its."""
    best = min(times, key=times.__getitem__)
    return best, times[BY_RULE] / times[best]


def rows_of(found: dict[int, list[Loss]]) -> list[str]:
    """The rows of the table: classes whose layers all lose by the rule, by the same algorithm."""
    rows = []
    for key, each in sorted(found.items()):
        algorithms = {loss.algorithm for loss in each}
        if len(algorithms) == 1 and all(loss.ratio > WORST for loss in each):
            comment = f"  // {each[0].ratio:.2f}: {each[0].text}"
            rows.append(f"    {{0x{key:014x}, Algorithm::{NAMES[each[0].algorithm]}}},{comment}")
    return rows


def family() -> str:
    """The name of this processor's table."""
    info = pathlib.Path("/proc/cpuinfo").read_text()
    maker = "Amd" if "AuthenticAMD" in info else "Intel" if "GenuineIntel" in info else ""
    if not maker or kernel_library() != "plait_cpu_avx2":
        raise SystemExit(
            "benchmarks/tune.py: there are tables for AMD's and Intel's processors only"
        )
    wide = "avx512f" in info and os.environ.get("PLAIT_CPU") != "avx2"
    return f"k{maker}{'Avx512' if wide else 'Avx2'}"


def write(name: str, rows: list[str]) -> None:
    """Replace one table."""
    rows = [*rows, "    {~uint64_t(0), Algorithm::ByRule},"]
    table = f"constexpr TableRow {name}[] = {{\n" + "\n".join(rows) + "\n};"
    pattern = rf"constexpr TableRow {name}\[\] = \{{.*?\}};(?=\n)"
    text, count = re.subn(pattern, lambda _: table, TABLES.read_text(), count=1, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"benchmarks/tune.py: {TABLES} has no table {name}")
    TABLES.write_text(text)


def main(arguments: list[str] | None = None) -> int:
    """Measure; print the losses; write the table unless asked not to."""
    parser = argparse.ArgumentParser("benchmarks/tune.py", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a rule loses")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    flags = parser.parse_args(arguments)
    pc.set_num_threads(1)
    name = family()
    found, ratios = losses(flags.batches, library().plait_core_force_algorithm)
    lost = sum(ratio > WORST for ratio in ratios)
    print(
        f"{name}: {lost} of {len(ratios)} choices lose more than a tenth, worst {max(ratios):.2f}"
    )
    if not flags.check:
        write(name, rows_of(found))
    return int(flags.check and lost > 0)


if __name__ == "__main__":
    sys.exit(main())
