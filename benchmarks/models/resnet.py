"""ResNet-50: He et al., "Deep residual learning for image recognition" (2015), with the stride in
the 3x3 convolution of a block, as most implementations have it."""

from __future__ import annotations

from typing import Any

__all__ = ["STAGES", "build"]

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Inner channels, number of blocks, and stride of the first one."""


def build(torch: Any, width: float = 1.0, classes: int = 1000) -> Any:
    """Return the network for (n, 3, h, w) images; ``width`` multiplies all channels."""
    nn = torch.nn

    def convolution(before: int, after: int, size: int, stride: int = 1) -> list[Any]:
        layer = nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False)
        return [layer, nn.BatchNorm2d(after)]

    class Bottleneck(nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, inner: int, stride: int) -> None:
            super().__init__()
            self.main = nn.Sequential(
                *convolution(before, inner, 1),
                nn.ReLU(inplace=True),
                *convolution(inner, inner, 3, stride),
                nn.ReLU(inplace=True),
                *convolution(inner, 4 * inner, 1),
            )
            same = stride == 1 and before == 4 * inner
            self.short = (
                nn.Identity() if same else nn.Sequential(*convolution(before, 4 * inner, 1, stride))
            )
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            return self.relu(self.main(x) + self.short(x))

    def w(channels: int) -> int:
        return max(4, int(channels * width))

    layers = [*convolution(3, w(64), 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    before = w(64)
    for inner, count, stride in STAGES:
        for i in range(count):
            layers.append(Bottleneck(before, w(inner), stride if i == 0 else 1))
            before = 4 * w(inner)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))
