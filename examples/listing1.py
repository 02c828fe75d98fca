"""Listing 1 of the PyTorch paper: a custom layer as a building block of a complete model.

Paszke et al., "PyTorch: An Imperative Style, High-Performance Deep Learning Library" (2019). The
two classes are the paper's but for the module's name and two lines that the paper leaves out: the
convolution's result is flattened before the matrix product, and softmax is told its dimension. The
model then learns to say which of the nine pixels of a 3x3 image is bright, or that none is.

    python examples/listing1.py
"""

from __future__ import annotations

import argparse

import plait
from plait import nn, optim
from plait.nn import Module

__all__ = ["FullBasicModel", "LinearLayer", "main", "sample", "train"]


class LinearLayer(Module):
    def __init__(self, in_sz, out_sz):
        super().__init__()
        t1 = plait.randn(in_sz, out_sz)
        self.w = nn.Parameter(t1)
        t2 = plait.randn(out_sz)
        self.b = nn.Parameter(t2)

    def forward(self, activations):
        t = plait.mm(activations, self.w)
        return t + self.b


class FullBasicModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 128, 3)
        self.fc = LinearLayer(128, 10)

    def forward(self, x):
        t1 = self.conv(x)
        t2 = nn.functional.relu(t1)
        t2 = t2.flatten(1)  # (n, 128, 1, 1) to (n, 128)
        t3 = self.fc(t2)
        return nn.functional.softmax(t3, dim=1)


def sample(count):
    """Noisy 3x3 images (count, 1, 3, 3), and which pixel is bright: 0 to 8, or 9 for none."""
    labels = plait.randint(0, 10, (count,))
    bright = (labels.reshape(count, 1) == plait.arange(9)).float()
    images = bright.reshape(count, 1, 3, 3) + 0.1 * plait.randn(count, 1, 3, 3)
    return images, labels


def train(model, steps, batch_size=64):
    """Trains on fresh samples; returns the loss of each step."""
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        images, labels = sample(batch_size)
        probabilities = model(images)
        # -log p(label): the model ends in softmax, so that no loss on scores applies
        choice = (labels.reshape(batch_size, 1) == plait.arange(10)).float()
        loss = -((probabilities + 1e-12).log() * choice).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train the model of Listing 1.")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args(arguments)
    plait.manual_seed(flags.seed)
    model = FullBasicModel()
    losses = train(model, flags.steps)
    with plait.no_grad():
        images, labels = sample(1000)
        accuracy = (model(images).argmax(1) == labels).float().mean().item()
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy {100 * accuracy:.1f} %")
    return losses, accuracy


if __name__ == "__main__":
    main()
