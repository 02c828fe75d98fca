"""MobileNetV2 without its classifier: images to vectors of 1280 numbers (Sandler et al. 2018)."""

from plait import Tensor, nn

# expansion, channels, blocks, stride of the first one
STAGES = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
]


def convolution(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> list:
    conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs)]


class Bottleneck(nn.Module):
    """Widen, filter each channel, narrow; around it a shortcut where shapes agree."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        widen = [*convolution(inputs, wide, 1), nn.ReLU6()] if expansion != 1 else []
        filters = [*convolution(wide, wide, 3, stride, groups=wide), nn.ReLU6()]
        self.conv = nn.Sequential(*widen, *filters, *convolution(wide, outputs, 1))
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.shortcut else self.conv(x)


class MobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Sequential(*convolution(3, 32, 3, 2), nn.ReLU6())]
        channels = 32
        for expansion, outputs, blocks, stride in STAGES:
            for block in range(blocks):
                layers.append(Bottleneck(channels, outputs, 1 if block else stride, expansion))
                channels = outputs
        layers.append(nn.Sequential(*convolution(channels, 1280, 1), nn.ReLU6()))
        self.features = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.features(x).mean((2, 3))
