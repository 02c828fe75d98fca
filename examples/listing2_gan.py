"""Listing 2 of the PyTorch paper: a generative adversarial network, here of MNIST digits.

Paszke et al., "PyTorch: An Imperative Style, High-Performance Deep Learning Library" (2019), after
Goodfellow et al., "Generative adversarial networks" (2014). `step` is the paper's but for the two
lines with ``zero_grad``, which its "simplified training" leaves out. The discriminator gives two
scores, fake and real, so that the loss is the cross-entropy.

    python examples/listing2_gan.py --epochs 20

The picture ``results/gan.png`` shows what the generator makes of the same noise after training.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mnist_files
import numpy as np
import pictures

import plait
from plait import nn, optim
from plait.utils.data import DataLoader, TensorDataset
from plait.utils.data.datasets import MNIST

__all__ = ["GAN", "create_discriminator", "create_generator", "main"]

NOISE = 64
PIXELS = 28 * 28


class Tanh(nn.Module):
    """Brings the generator's pixels into [-1, 1], where the digits' are."""

    def forward(self, x):
        return plait.tanh(x)


class LeakyReLU(nn.Module):
    """max(x, 0.2 x): lets a gradient through to the generator where ReLU would not."""

    def forward(self, x):
        return plait.relu(0.8 * x) + 0.2 * x


def create_generator():
    return nn.Sequential(
        nn.Linear(NOISE, 256),
        LeakyReLU(),
        nn.Linear(256, 512),
        LeakyReLU(),
        nn.Linear(512, PIXELS),
        Tanh(),
    )


def create_discriminator():
    return nn.Sequential(
        nn.Linear(PIXELS, 512),
        LeakyReLU(),
        nn.Dropout(0.3),
        nn.Linear(512, 256),
        LeakyReLU(),
        nn.Dropout(0.3),
        nn.Linear(256, 2),
    )


class GAN:
    """Both networks with their optimizers, and the step of the paper."""

    def __init__(self, batch_size):
        discriminator = create_discriminator()
        generator = create_generator()
        optimD = optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
        optimG = optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
        loss = nn.CrossEntropyLoss()
        real_label = plait.ones(batch_size, dtype=plait.int64)
        fake_label = plait.zeros(batch_size, dtype=plait.int64)

        def get_noise():
            return plait.randn(batch_size, NOISE)

        def step(real_sample):
            # (1) Update Discriminator
            optimD.zero_grad()
            errD_real = loss(discriminator(real_sample), real_label)
            errD_real.backward()
            fake = generator(get_noise())
            errD_fake = loss(discriminator(fake.detach()), fake_label)
            errD_fake.backward()
            optimD.step()
            # (2) Update Generator
            optimG.zero_grad()
            errG = loss(discriminator(fake), real_label)
            errG.backward()
            optimG.step()
            return (errD_real + errD_fake).item(), errG.item()

        self.discriminator = discriminator
        self.generator = generator
        self.step = step

    def images(self, noise):
        """The generator's pictures of the noise: a NumPy array (n, 28, 28) in [0, 1]."""
        with plait.no_grad():
            pixels = self.generator(noise).numpy()
        return pixels.reshape(-1, 28, 28) / 2 + 0.5


def digits(folder, limit):
    """The training digits in rows of 784 pixels in [-1, 1]."""
    images = MNIST(folder).data[:limit]
    pixels = images.reshape(-1, PIXELS).astype(np.float32) / 127.5 - 1
    return TensorDataset(plait.from_numpy(pixels))


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train the GAN of Listing 2 on MNIST.")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="train on the first LIMIT digits only")
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder of gan.png")
    parser.add_argument("--data", type=Path, default=mnist_files.default_folder())
    flags = parser.parse_args(arguments)

    plait.manual_seed(flags.seed)
    mnist_files.write_files(flags.data)
    loader = DataLoader(
        digits(flags.data, flags.limit), flags.batch_size, shuffle=True, drop_last=True
    )
    gan = GAN(flags.batch_size)
    noise = plait.randn(64, NOISE)
    history = []
    for epoch in range(1, flags.epochs + 1):
        errors = [gan.step(real_sample) for (real_sample,) in loader]
        history.append(np.mean(errors, axis=0).tolist())
        print(f"epoch {epoch}: discriminator {history[-1][0]:.3f}, generator {history[-1][1]:.3f}")
    images = gan.images(noise)
    path = flags.output / "gan.png"
    if pictures.digit_grid(path, images, f"Generated after {flags.epochs} epochs") is not None:
        print(f"picture: {path}")
    return history, images


if __name__ == "__main__":
    main()
