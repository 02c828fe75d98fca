"""Tables of algorithms: their form, and that every algorithm computes the same convolutions."""

from __future__ import annotations

import ctypes
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_core._startup import kernel_library

BY_TABLE, BY_RULE = -2, -1
ALGORITHMS = {"direct": 0, "tiles 2": 2, "tiles 3": 3, "tiles 4": 4, "tiles 5": 5}
ALGORITHMS |= {"lanes": 16, "pixels": 17, "columns": 18}
LAYERS = [  # images, channels, filters, window, stride, side
    (9, 16, 24, 3, 1, 13),
    (2, 16, 16, 5, 1, 14),
    (2, 12, 16, 3, 2, 14),
    (2, 16, 20, 1, 1, 12),
    (2, 16, 20, 1, 2, 12),
    (2, 3, 16, 7, 2, 30),
]


@pytest.fixture
def force() -> Iterator[Any]:
    folder = pathlib.Path(pc.__file__).parent / "lib"
    library = ctypes.CDLL(str(folder / f"lib{kernel_library()}.so"))
    yield library.plait_core_force_algorithm
    library.plait_core_force_algorithm(BY_TABLE)


def results(images: int, c: int, f: int, window: int, stride: int, side: int) -> list[Any]:
    rng = np.random.default_rng(0)
    rest = ([stride] * 2, [window // 2] * 2, [1, 1], 1)

    def draw(*shape: int) -> Any:
        return pc.tensor(rng.random(shape, dtype=np.float32))

    x, w = draw(images, c, side, side), draw(f, c, window, window)
    y = operator("conv2d")(x, w, None, *rest)
    g = draw(*y.shape)
    by_input = operator("conv2d_backward_input")(g, w, x.shape, *rest)
    return [y, by_input, operator("conv2d_backward_weight")(g, x, w.shape, *rest)]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_gives_the_convolution(
    force: Any, algorithm: str, layer: tuple[int, ...]
) -> None:
    force(BY_RULE)
    wanted = results(*layer)
    force(ALGORITHMS[algorithm])
    for got, want in zip(results(*layer), wanted, strict=True):
        a, b = got.numpy(), want.numpy()
        assert np.abs(a - b).max() <= 2e-5 * np.abs(b).max()


def test_forced_tiles_change_bits_and_modes_come_first(force: Any) -> None:
    layer = LAYERS[0]
    force(0)
    direct = results(*layer)[0].tolist()
    force(4)
    tiles = results(*layer)[0].tolist()
    assert direct != tiles
    try:
        pc.set_winograd("off")
        assert results(*layer)[0].tolist() != tiles
        pc.set_winograd("F4")
        force(0)
        assert results(*layer)[0].tolist() == tiles
    finally:
        pc.set_winograd("auto")


def test_results_of_an_image_do_not_depend_on_the_batch_in_the_mode() -> None:
    sizes = (64, 64, 3, 1, 56), (64, 192, 5, 1, 27), (3, 64, 3, 1, 32)
    pc.set_batch_invariant(True)
    try:
        for c, f, window, stride, side in sizes:
            x, w = pc.randn(17, c, side, side), pc.randn(f, c, window, window)
            rest = ([stride] * 2, [window // 2] * 2, [1, 1], 1)
            many = operator("conv2d")(x, w, None, *rest)
            for first, count in ((0, 1), (3, 5)):
                few = operator("conv2d")(x[first : first + count], w, None, *rest)
                assert pc.equal(few, many[first : first + count])
    finally:
        pc.set_batch_invariant(False)


def test_tables_are_sorted() -> None:
    """A kernel searches by halves; the last row ends each table."""
    header = pathlib.Path(__file__).parents[1] / "cpp" / "kernel" / "tuning_tables.h"
    if not header.exists():
        pytest.skip("the sources are not here")
    tables = re.findall(r"TableRow (\w+)\[\] = \{(.*?)\n?\};\n", header.read_text(), re.DOTALL)
    assert [name for name, _ in tables] == ["kAmdAvx2", "kAmdAvx512", "kIntelAvx2", "kIntelAvx512"]
    for _, body in tables:
        keys = [int(key, 16) for key in re.findall(r"\{0x([0-9a-f]+),", body)]
        assert keys == sorted(set(keys)) and "~uint64_t(0)" in body.splitlines()[-1]
