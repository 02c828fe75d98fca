"""Errors of convolutions by Winograd's algorithm, over those of the direct algorithm.

python benchmarks/convolution_errors.py                       print the table
python benchmarks/convolution_errors.py FILE FILE             and write it into these files,
                                                              between its two marks
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import plait_core as pc
from plait_abi import operator

__all__ = ["main"]

MODES = ("F2", "F4", "F5", "F6")
# window, images, channels and filters, size
LAYERS = ((3, 4, 64, 28), (3, 4, 256, 14), (3, 4, 512, 7), (5, 4, 64, 27), (5, 4, 192, 14))
MARKS = ("<!-- errors -->", "<!-- end of errors -->")
PASSES = ("forward", "by the input", "by the weight")


def passes(x: Any, w: Any, g: Any) -> list[Any]:
    """The result and both derivatives, as float64 arrays."""
    rest = ((1, 1), (w.shape[2] // 2,) * 2, (1, 1), 1)
    result = (
        pc.conv2d(x, w, None, *rest),
        operator("conv2d_backward_input")(g, w, x.shape, *rest),
        operator("conv2d_backward_weight")(g, x, w.shape, *rest),
    )
    return [a.numpy().astype(np.float64) for a in result]


def errors(positive: bool, window: int, n: int, c: int, size: int) -> dict[str, list[float]]:
    """The largest errors over the largest result, by mode, for each pass."""
    rng = np.random.default_rng(0)
    draw = rng.random if positive else rng.standard_normal
    shapes = ((n, c, size, size), (c, c, window, window), (n, c, size, size))
    tensors = [pc.from_numpy(draw(shape, np.float32)) for shape in shapes]
    pc.set_winograd("off")
    right = passes(*(a.to(pc.float64) for a in tensors))
    results = {}
    for mode in ("off", *MODES):
        pc.set_winograd(mode)
        result = passes(*tensors)
        pairs = zip(result, right, strict=True)
        results[mode] = [float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs]
    pc.set_winograd("auto")
    return results


def rows() -> Iterator[str]:
    """The lines of the table in Markdown."""
    titles = " | ".join(f"{mode}" for mode in MODES)
    yield f"| numbers | layer | pass | direct | {titles} |"
    yield "|---|---|---|--:|" + "--:|" * len(MODES)
    for positive in (True, False):
        for window, n, c, size in LAYERS:
            result = errors(positive, window, n, c, size)
            for i, name in enumerate(PASSES):
                direct = result["off"][i]
                ratios = " | ".join(
                    "" if window == 5 and mode == "F2" else f"{result[mode][i] / direct:.1f}"
                    for mode in MODES
                )
                kind = "[0, 1)" if positive else "normal"
                layer = f"{window} x {window}, {c} channels @{size}"
                yield f"| {kind} | {layer} | {name} | {direct:.1e} | {ratios} |"


def main(files: list[str]) -> int:
    """Print the table, and write it into files."""
    table = "\n".join(rows())
    print(table)
    for file in files:
        path = pathlib.Path(file)
        before, _, rest = path.read_text().partition(MARKS[0])
        _, _, after = rest.partition(MARKS[1])
        path.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
