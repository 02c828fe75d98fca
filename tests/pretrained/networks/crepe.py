"""CREPE: the pitch in 1024 samples at 16 kHz, as chances of 360 steps of 20 cents (Kim 2018)."""

import plait
from plait import Tensor, nn
from plait.nn import functional as F

CHANNELS = {
    "tiny": (128, 16, 16, 16, 32, 64),
    "full": (1024, 128, 128, 128, 256, 512),
}


class Crepe(nn.Module):
    def __init__(self, size: str = "tiny") -> None:
        super().__init__()
        inputs = 1
        for i, outputs in enumerate(CHANNELS[size], 1):
            height, stride = (64, 1) if i > 1 else (512, 4)
            setattr(self, f"conv{i}", nn.Conv2d(inputs, outputs, (height, 1), (stride, 1)))
            setattr(self, f"conv{i}_BN", nn.BatchNorm2d(outputs, eps=0.0010000000474974513))
            inputs = outputs
        self.classifier = nn.Linear(4 * inputs, 360)

    def forward(self, frames: Tensor) -> Tensor:
        frames = frames - frames.mean(1, keepdim=True)
        frames = frames / frames.std(1, keepdim=True).clamp(min=1e-10)
        x = frames[:, None, :, None]
        for i in range(1, 7):
            x = F.pad(x, (0, 0, 254, 254) if i == 1 else (0, 0, 31, 32))
            x = getattr(self, f"conv{i}_BN")(getattr(self, f"conv{i}")(x).relu())
            x = F.max_pool2d(x, (2, 1))
        return self.classifier(x.permute(0, 2, 1, 3).flatten(1)).sigmoid()


def hertz(chances: Tensor) -> Tensor:
    """Return the frequency of the likeliest step, averaged with the steps around it."""
    near = (chances.argmax(1, keepdim=True) + plait.arange(-4, 5)).clamp(0, 359)
    weight = chances.gather(1, near)
    cents = (weight * (20.0 * near + 1997.3794084376191)).sum(1) / weight.sum(1)
    return 10 * 2 ** (cents / 1200)
