"""torchsummary: the printed summary of VGG and of a model with two inputs."""

import contextlib
import io

import torch
import torchvision
from recording import record
from torchsummary import summary

with contextlib.redirect_stdout(io.StringIO()) as text:
    summary(torchvision.models.vgg11(), (3, 64, 64), device="cpu")


class Two(torch.nn.Module):
    """A model with two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(1, 4, 3), torch.nn.Conv2d(3, 4, 3)

    def forward(self, one, two):
        """Return both."""
        return self.first(one), self.second(two)


with contextlib.redirect_stdout(text):
    summary(Two(), [(1, 16, 16), (3, 28, 28)], device="cpu")
record("text", text.getvalue())
