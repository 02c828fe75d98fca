"""Every algorithm computes the same convolutions."""

from __future__ import annotations

import ctypes
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_core.instruction_sets import kernel_library

BY_EXCEPTION, BY_RULE = -2, -1
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
    library.plait_core_force_algorithm(BY_EXCEPTION)


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
    expected = results(*layer)
    force(ALGORITHMS[algorithm])
    for got, want in zip(results(*layer), expected, strict=True):
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


@pytest.mark.parametrize(
    ("layer", "changed"),
    [
        ((4, 3, 16, 3, 1, 64), 0),  # a picture
        ((4, 3, 16, 3, 1, 63), None),
        ((4, 5, 16, 3, 1, 64), None),
        ((4, 96, 24, 1, 1, 28), None),
    ],
)
def test_exceptions_from_the_counts(
    force: Any, layer: tuple[int, ...], changed: int | None
) -> None:
    """The columns are what is computed, and nothing else beside the exceptions."""
    choice = results(*layer)
    force(BY_RULE)
    by_rule = results(*layer)
    force(ALGORITHMS["columns"])
    columns = results(*layer)
    for number, got in enumerate(choice[:2]):
        assert pc.equal(got, columns[number] if number == changed else by_rule[number])
