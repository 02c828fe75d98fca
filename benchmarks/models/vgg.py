"""VGG-19 (configuration E): Simonyan and Zisserman, "Very deep convolutional networks for
large-scale image recognition" (2014)."""

from __future__ import annotations

from typing import Any

__all__ = ["STAGES", "build"]

STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))
"""Channels and number of convolutions before each pooling."""


def build(torch: Any, width: float = 1.0, classes: int = 1000, dropout: float = 0.0) -> Any:
    """Return the network for (n, 3, h, w) images; ``width`` multiplies all channels."""
    nn = torch.nn

    def w(channels: int) -> int:
        return max(4, int(channels * width))

    layers: list[Any] = []
    before = 3
    for channels, count in STAGES:
        for _ in range(count):
            layers += [nn.Conv2d(before, w(channels), 3, padding=1), nn.ReLU(inplace=True)]
            before = w(channels)
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(
        *layers,
        nn.AdaptiveAvgPool2d(7),
        nn.Flatten(),
        nn.Linear(before * 49, w(4096)),
        nn.ReLU(inplace=True),
        nn.Dropout(dropout),
        nn.Linear(w(4096), w(4096)),
        nn.ReLU(inplace=True),
        nn.Dropout(dropout),
        nn.Linear(w(4096), classes),
    )
