"""Convolutions, plain and transposed, each pass separately, and a training step of DCGAN.

The peer of a 3x3 layer is the faster of PyTorch's two memory formats.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
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
]
DIRECT: list[Size] = [  # 1x1, depthwise, grouped, strided; the groups follow from the filters
    ("MobileNet 3-32, 3x3 by 2 @224", (16, 3, 224, 224), (32, 3, 3, 3), 2, 1, None),
    ("MobileNet 16-96, 1x1 @112", (16, 16, 112, 112), (96, 16, 1, 1), 1, 0, None),
    ("MobileNet 32-192, 1x1 @28", (16, 32, 28, 28), (192, 32, 1, 1), 1, 0, None),
    ("MobileNet 96-576, 1x1 @14", (16, 96, 14, 14), (576, 96, 1, 1), 1, 0, None),
    ("MobileNet 960-160, 1x1 @7", (16, 960, 7, 7), (160, 960, 1, 1), 1, 0, None),
    ("MobileNet 32 depthwise @112", (16, 32, 112, 112), (32, 1, 3, 3), 1, 1, None),
    ("MobileNet 96 depthwise by 2 @112", (16, 96, 112, 112), (96, 1, 3, 3), 2, 1, None),
    ("MobileNet 144 depthwise @56", (16, 144, 56, 56), (144, 1, 3, 3), 1, 1, None),
    ("MobileNet 384 depthwise @14", (16, 384, 14, 14), (384, 1, 3, 3), 1, 1, None),
    ("MobileNet 960 depthwise @7", (16, 960, 7, 7), (960, 1, 3, 3), 1, 1, None),
    ("EfficientNet 240 depthwise 5x5 @28", (16, 240, 28, 28), (240, 1, 5, 5), 1, 2, None),
    ("ResNet 3-64, 7x7 by 2 @224", (8, 3, 224, 224), (64, 3, 7, 7), 2, 3, None),
    ("ResNet 64-256, 1x1 @56", (8, 64, 56, 56), (256, 64, 1, 1), 1, 0, None),
    ("ResNet 256-1024, 1x1 @14", (8, 256, 14, 14), (1024, 256, 1, 1), 1, 0, None),
    ("ResNet 2048-512, 1x1 @7", (8, 2048, 7, 7), (512, 2048, 1, 1), 1, 0, None),
    ("ResNet 512-1024, 1x1 by 2 @28", (8, 512, 28, 28), (1024, 512, 1, 1), 2, 0, None),
    ("ResNet 256-256, 3x3 by 2 @28", (8, 256, 28, 28), (256, 256, 3, 3), 2, 1, None),
    ("ResNeXt 128, 32 groups @56", (8, 128, 56, 56), (128, 4, 3, 3), 1, 1, None),
    ("ResNeXt 512, 32 groups @14", (8, 512, 14, 14), (512, 16, 3, 3), 1, 1, None),
    ("AlexNet 3-64, 11x11 by 4 @224", (32, 3, 224, 224), (64, 3, 11, 11), 4, 2, None),
    ("AlexNet 64-192, 5x5 @27", (32, 64, 27, 27), (192, 64, 5, 5), 1, 2, None),
]
LAYERS = [  # network, images, channels, filters, height and width; 3x3 windows of stride 1
    *(("VGG", 4, 3, 64, 224), ("VGG", 4, 64, 64, 224), ("VGG", 4, 64, 128, 112)),
    *(("VGG", 4, 128, 128, 112), ("VGG", 4, 128, 256, 56), ("VGG", 4, 256, 256, 56)),
    *(("VGG", 4, 256, 512, 28), ("VGG", 4, 512, 512, 28), ("VGG", 4, 512, 512, 14)),
    *(
        ("ResNet", n, c, c, h)
        for n in (1, 8, 16)
        for c, h in ((64, 56), (128, 28), (256, 14), (512, 7))
    ),
    *(("AlexNet", 32, 192, 384, 13), ("AlexNet", 32, 384, 256, 13), ("AlexNet", 32, 256, 256, 13)),
]
TRANSPOSED: list[Size] = [  # images, weight, stride, padding, bar
    ("DCGAN 64-64, 7x7 @1", (64, 64, 1, 1), (64, 64, 7, 7), 1, 0, BAR),
    ("DCGAN 64-32, 4x4 by 2 @7", (64, 64, 7, 7), (64, 32, 4, 4), 2, 1, BAR),
    ("DCGAN 32-1, 4x4 by 2 @14", (64, 32, 14, 14), (32, 1, 4, 4), 2, 1, BAR),
    ("U-Net 256-128, 2x2 by 2 @32", (2, 256, 32, 32), (256, 128, 2, 2), 2, 0, None),
    ("DCGAN 64-3, 4x4 by 2 @32", (16, 64, 32, 32), (64, 3, 4, 4), 2, 1, None),
]


def last(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """The same tensors with their channels side by side."""
    return [x.contiguous(memory_format=torch.channels_last) for x in tensors]


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

    def derivative(required: list[bool]) -> Callable[[], Any]:
        options = (*rest, transposed, [0, 0], 1, required)
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


class Fastest:
    """Calls the function of several that was the fastest when it was called first."""

    def __init__(self, *functions: Callable[[], Any]) -> None:
        self.functions = functions
        self.chosen: Callable[[], Any] | None = None

    def __call__(self) -> Any:
        if self.chosen is None:
            self.chosen = min(self.functions, key=self.seconds)
        return self.chosen()

    @staticmethod
    def seconds(function: Callable[[], Any]) -> float:
        """The shortest of five calls, after one that is not counted."""
        function()
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            function()
            times.append(time.perf_counter() - begin)
        return min(times)


def layers_3x3() -> Iterator[Case]:
    """The three passes of convolutional layers of networks."""
    rest = ([1, 1], [1, 1], [1, 1])
    formats = (torch.contiguous_format, torch.channels_last)
    for network, n, c, k, size in LAYERS:
        drawn = [draw(n, c, size, size), draw(k, c, 3, 3), draw(n, k, size, size)]
        x, w, g = (pair[0] for pair in drawn)
        peers = [[t.contiguous(memory_format=f) for _, t in drawn] for f in formats]

        def forward(x: Any, w: Any, g: Any) -> Callable[[], Any]:
            return lambda: torch.nn.functional.conv2d(x, w, None, 1, 1)

        def by_input(x: Any, w: Any, g: Any) -> Callable[[], Any]:
            options = (*rest, False, [0, 0], 1, [True, False, False])
            return lambda: aten.convolution_backward(g, x, w, None, *options)

        def by_weight(x: Any, w: Any, g: Any) -> Callable[[], Any]:
            options = (*rest, False, [0, 0], 1, [False, True, False])
            return lambda: aten.convolution_backward(g, x, w, None, *options)

        ours: list[tuple[str, Callable[[], Any], Callable[..., Callable[[], Any]]]] = [
            ("", partial(pc.conv2d, x, w, None, 1, 1), forward),
            (", by input", partial(BY_INPUT, g, w, x.shape, *rest, 1), by_input),
            (", by weight", partial(BY_WEIGHT, g, x, w.shape, *rest, 1), by_weight),
        ]
        for name, function, peer in ours:
            yield (
                f"conv2d {network} {c}-{k}, 3x3 @{size}, {n} images{name}",
                function,
                Fastest(*(peer(*tensors) for tensors in peers)),
                None,
            )


def direct(size: Size) -> Iterator[Case]:
    """The three passes against torch's faster layout, chosen at the first call."""
    name, shape, filters, stride, padding, bar = size
    groups = shape[1] // filters[1]
    (x, y), (w, v) = draw(*shape), draw(*filters)
    rest = ([stride] * 2, [padding] * 2, [1, 1])
    g, h = draw(*torch.nn.functional.conv2d(y, v, None, *rest, groups).shape)

    def peer(required: list[bool] | None) -> Callable[[], Any]:
        def of(y: torch.Tensor, v: torch.Tensor, h: torch.Tensor) -> Callable[[], Any]:
            if required is None:
                return lambda: torch.nn.functional.conv2d(y, v, None, *rest, groups)
            options = (*rest, False, [0, 0], groups, required)
            return lambda: aten.convolution_backward(h, y, v, None, *options)

        return Fastest(of(y, v, h), of(*last(y, v, h)))

    yield f"conv2d {name}", lambda: pc.conv2d(x, w, None, *rest, groups), peer(None), bar
    by_input = peer([True, False, False])
    yield f"conv2d {name}, by input", lambda: BY_INPUT(g, w, x.shape, *rest, groups), by_input, bar
    by_weight = peer([False, True, False])
    yield (
        f"conv2d {name}, by weight",
        lambda: BY_WEIGHT(g, x, w.shape, *rest, groups),
        by_weight,
        bar,
    )


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
    result, judged = networks(layers)
    steps = [optimizers.Adam(model.parameters(), lr=5e-4) for model in (judged, result)]
    real, ones, zeros = tensors.randn(64, 1, 28, 28), tensors.ones(64), tensors.zeros(64)
    loss = functional.binary_cross_entropy_with_logits

    def step() -> None:
        steps[0].zero_grad()
        fake = result(tensors.randn(64, 64, 1, 1))
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
    yield from layers_3x3()
    for size in DIRECT:
        yield from direct(size)
    for size in TRANSPOSED:
        yield from passes(size, True)
    peer = dcgan(torch, torch.nn, torch.nn.functional, torch.optim)
    yield "DCGAN, training step, batch of 64", dcgan(pc, nn, F, optim), peer, 1.0
