"""MobileNetV2: Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks" (2018)."""

from __future__ import annotations

from typing import Any

__all__ = ["STAGES", "build"]

STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, number of blocks, and stride of the first one."""


def build(torch: Any, width: float = 1.0, classes: int = 1000, dropout: float = 0.0) -> Any:
    """Return the network for (n, 3, h, w) images; ``width`` multiplies all channels."""
    nn = torch.nn

    def convolution(before: int, after: int, size: int, stride: int = 1, groups: int = 1) -> Any:
        layer = nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)
        return [layer, nn.BatchNorm2d(after)]

    class InvertedResidual(nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, after: int, stride: int, expansion: int) -> None:
            super().__init__()
            inner = before * expansion
            layers: list[Any] = []
            if expansion != 1:
                layers += [*convolution(before, inner, 1), nn.ReLU6(inplace=True)]
            self.main = nn.Sequential(
                *layers,
                *convolution(inner, inner, 3, stride, groups=inner),
                nn.ReLU6(inplace=True),
                *convolution(inner, after, 1),
            )
            self.residual = stride == 1 and before == after

        def forward(self, x: Any) -> Any:
            return x + self.main(x) if self.residual else self.main(x)

    def w(channels: int) -> int:
        return max(4, int(channels * width))

    layers = [*convolution(3, w(32), 3, 2), nn.ReLU6(inplace=True)]
    before = w(32)
    for expansion, channels, count, stride in STAGES:
        for i in range(count):
            first = stride if i == 0 else 1
            layers.append(InvertedResidual(before, w(channels), first, expansion))
            before = w(channels)
    layers += [*convolution(before, w(1280), 1), nn.ReLU6(inplace=True)]
    return nn.Sequential(
        *layers,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(w(1280), classes),
    )
