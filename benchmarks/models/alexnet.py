"""AlexNet in its form of one tower: Krizhevsky, "One weird trick for parallelizing convolutional
neural networks" (2014)."""

from __future__ import annotations

from typing import Any

__all__ = ["build"]


def build(torch: Any, width: float = 1.0, classes: int = 1000, dropout: float = 0.0) -> Any:
    """Return the network for (n, 3, h, w) images; ``width`` multiplies all channels."""
    nn = torch.nn

    def w(channels: int) -> int:
        return max(4, int(channels * width))

    return nn.Sequential(
        nn.Conv2d(3, w(64), 11, stride=4, padding=2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(w(64), w(192), 5, padding=2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(w(192), w(384), 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(w(384), w(256), 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(w(256), w(256), 3, padding=1),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2),
        nn.AdaptiveAvgPool2d(6),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(w(256) * 36, w(4096)),
        nn.ReLU(inplace=True),
        nn.Dropout(dropout),
        nn.Linear(w(4096), w(4096)),
        nn.ReLU(inplace=True),
        nn.Linear(w(4096), classes),
    )
