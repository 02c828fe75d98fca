"""Resizing images: uint8 and float32, both memory formats, all modes of `interpolate`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from timing import Case

import plait

__all__ = ["CHEAP", "cases"]

CHEAP = True
BAR = 1.5
SIZES = {
    "a photograph to 224": ((1, 3, 1080, 1920), (224, 224)),
    "32 images of 256 to 224": ((32, 3, 256, 256), (224, 224)),
    "8 images of 64 to 512": ((8, 3, 64, 64), (512, 512)),
    "a mask of 512": ((1, 1, 512, 512), (300, 700)),
    "16 channels of 128 to 256": ((2, 16, 128, 128), (256, 256)),
}
MODES = (
    *(("nearest", False), ("nearest-exact", False), ("bilinear", False), ("bilinear", True)),
    *(("bicubic", False), ("bicubic", True)),
)


def resizing(
    library: Any, image: torch.Tensor, size: tuple[int, int], mode: str, antialias: bool, last: bool
) -> Callable[[], Any]:
    """Return the call of a library."""
    x = image if library is torch else library.from_numpy(image.numpy())
    if last:
        x = x.contiguous(memory_format=library.channels_last)
    return lambda: library.nn.functional.interpolate(x, size, mode=mode, antialias=antialias)


def cases() -> Iterator[Case]:
    """Yield each size, dtype, memory format and mode."""
    for (name, (shape, size)), dtype in itertools.product(SIZES.items(), ("uint8", "float32")):
        image = torch.randint(0, 256, shape).to(getattr(torch, dtype))
        for last, (mode, antialias) in itertools.product((False, True), MODES):
            if last and shape[1] == 1:
                continue
            words = [name, dtype, mode + " with antialias" * antialias, "channels last" * last]
            ours, theirs = (
                resizing(library, image, size, mode, antialias, last) for library in (plait, torch)
            )
            yield ", ".join(filter(None, words)), ours, theirs, BAR
