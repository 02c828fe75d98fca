"""Convolutions, plain and transposed, each pass separately, and a training step of DCGAN."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from timing import Case

import plait_autograd  # noqa: F401 - the engine
import plait_core as pc
import plait_nn as nn
import plait_nn.functional as F
import plait_optim as optim
from plait_abi import operator

__all__ = ["cases"]

RNG = np.random.default_rng(0)
aten = torch.ops.aten
BY_INPUT, BY_WEIGHT = operator("conv2d_backward_input"), operator("conv2d_backward_weight")
BAR = 1.1  # of what DCGAN consists of: 1, and a tenth for noise

Size = tuple[str, tuple[int, ...], tuple[int, ...], int, int, float | None]
PLAIN: list[Size] = [  # images, filters, stride, padding, bar
    ("DCGAN 1-16, 4x4 by 2 @28", (64, 1, 28, 28), (16, 1, 4, 4), 2, 1, BAR),
    ("DCGAN 16-32, 4x4 by 2 @14", (64, 16, 14, 14), (32, 16, 4, 4), 2, 1, BAR),
    ("DCGAN 32-1, 7x7 @7", (64, 32, 7, 7), (1, 32, 7, 7), 1, 0, BAR),
    ("LeNet 1-6, 5x5 @28", (128, 1, 28, 28), (6, 1, 5, 5), 1, 2, None),
    ("LeNet 6-16, 5x5 @14", (128, 6, 14, 14), (16, 6, 5, 5), 1, 0, None),
    ("ResNet 64-64, 3x3 @56", (8, 64, 56, 56), (64, 64, 3, 3), 1, 1, None),
    ("ResNet 128-256, 3x3 by 2 @28", (8, 128, 28, 28), (256, 128, 3, 3), 2, 1, None),
    ("ResNet 256-256, 3x3 @14", (8, 256, 14, 14), (256, 256, 3, 3), 1, 1, None),
    ("ResNet 512-512, 3x3 @7", (8, 512, 7, 7), (512, 512, 3, 3), 1, 1, None),
    ("ResNet 3-64, 7x7 by 2 @224", (4, 3, 224, 224), (64, 3, 7, 7), 2, 3, None),
    ("ResNet 64-256, 1x1 @56", (8, 64, 56, 56), (256, 64, 1, 1), 1, 0, None),
]
TRANSPOSED: list[Size] = [  # images, weight, stride, padding, bar
    ("DCGAN 64-64, 7x7 @1", (64, 64, 1, 1), (64, 64, 7, 7), 1, 0, BAR),
    ("DCGAN 64-32, 4x4 by 2 @7", (64, 64, 7, 7), (64, 32, 4, 4), 2, 1, BAR),
    ("DCGAN 32-1, 4x4 by 2 @14", (64, 32, 14, 14), (32, 1, 4, 4), 2, 1, BAR),
    ("U-Net 256-128, 2x2 by 2 @32", (2, 256, 32, 32), (256, 128, 2, 2), 2, 0, None),
    ("DCGAN 64-3, 4x4 by 2 @32", (16, 64, 32, 32), (64, 3, 4, 4), 2, 1, None),
]


def draw(*shape: int) -> tuple[Any, Any]:
    """The same normal float32 numbers for plait and for torch."""
    array = RNG.standard_normal(shape).astype(np.float32)
    return pc.from_numpy(array), torch.from_numpy(array.copy())


def passes(size: Size, transposed: bool) -> Iterator[Case]:
    """Forward, and the derivatives by the input and by the weight."""
    name, shape, filters, stride, padding, bar = size
    (x, y), (w, v) = draw(*shape), draw(*filters)
    kind = "conv_transpose2d" if transposed else "conv2d"
    peer = getattr(torch.nn.functional, kind)
    ours = getattr(F, kind)
    g, h = draw(*peer(y, v, stride=stride, padding=padding).shape)
    rest = ([stride] * 2, [padding] * 2, [1, 1])

    def derivative(wanted: list[bool]) -> Callable[[], Any]:
        options = (*rest, transposed, [0, 0], 1, wanted)
        return lambda: aten.convolution_backward(h, y, v, None, *options)

    def by_input() -> Any:
        if transposed:
            return pc.conv2d(g, w, None, stride, padding)
        return BY_INPUT(g, w, x.shape, *rest, 1)

    def by_weight() -> Any:
        image, gradient = (g, x) if transposed else (x, g)
        return BY_WEIGHT(gradient, image, w.shape, *rest, 1)

    yield (
        f"{kind} {name}",
        lambda: ours(x, w, None, stride, padding),
        lambda: peer(y, v, None, stride, padding),
        bar,
    )
    yield f"{kind} {name}, by input", by_input, derivative([True, False, False]), bar
    yield f"{kind} {name}, by weight", by_weight, derivative([False, True, False]), bar


def networks(layers: Any) -> tuple[Any, Any]:
    """Generator and discriminator of examples/dcgan.py."""
    generator = layers.Sequential(
        layers.ConvTranspose2d(64, 64, 7, bias=False),
        layers.BatchNorm2d(64),
        layers.ReLU(),
        layers.ConvTranspose2d(64, 32, 4, stride=2, padding=1, bias=False),
        layers.BatchNorm2d(32),
        layers.ReLU(),
        layers.ConvTranspose2d(32, 1, 4, stride=2, padding=1),
        layers.Tanh(),
    )
    discriminator = layers.Sequential(
        layers.Conv2d(1, 16, 4, stride=2, padding=1),
        layers.LeakyReLU(0.2),
        layers.Conv2d(16, 32, 4, stride=2, padding=1, bias=False),
        layers.BatchNorm2d(32),
        layers.LeakyReLU(0.2),
        layers.Conv2d(32, 1, 7),
        layers.Flatten(0),
    )
    return generator, discriminator


def dcgan(tensors: Any, layers: Any, functional: Any, optimizers: Any) -> Callable[[], None]:
    """One step of both networks, batch of 64."""
    made, judged = networks(layers)
    steps = [optimizers.Adam(model.parameters(), lr=5e-4) for model in (judged, made)]
    real, ones, zeros = tensors.randn(64, 1, 28, 28), tensors.ones(64), tensors.zeros(64)
    loss = functional.binary_cross_entropy_with_logits

    def step() -> None:
        steps[0].zero_grad()
        fake = made(tensors.randn(64, 64, 1, 1))
        (loss(judged(real), ones) + loss(judged(fake.detach()), zeros)).backward()
        steps[0].step()
        steps[1].zero_grad()
        loss(judged(fake), ones).backward()
        steps[1].step()

    return step


def cases() -> Iterator[Case]:
    """The cases: see `timing.Case`."""
    for size in PLAIN:
        yield from passes(size, False)
    for size in TRANSPOSED:
        yield from passes(size, True)
    peer = dcgan(torch, torch.nn, torch.nn.functional, torch.optim)
    yield "DCGAN, training step, batch of 64", dcgan(pc, nn, F, optim), peer, 1.0
