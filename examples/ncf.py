"""Neural collaborative filtering: which film does a user watch next?

He et al., "Neural collaborative filtering" (2017): the product of two vectors, joined with a
network over two others (NeuMF), trained to tell films that a user rated from films drawn by chance.
Each user's last film is held out and has to come among the first ten (HR@10) of itself and 99 films
that the user never rated.

    pip install --no-deps recbole==1.2.1
    python examples/ncf.py --epochs 15

The picture ``results/ncf.png`` shows HR@10 by epoch beside that of popularity.

The ratings are MovieLens 100k, GroupLens, University of Minnesota: for research, and not to be
redistributed.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import packaged
import pictures

import plait
from plait import nn, optim
from plait.nn import functional as F

__all__ = ["NeuMF", "candidates", "hit_rate", "main", "split", "train_epoch"]


class NeuMF(nn.Module):
    """The logit of "this user rates this film", for (n,) users and (n,) films."""

    def __init__(self, users, films, width=16):
        super().__init__()
        self.user_product, self.film_product = (
            nn.Embedding(users, width),
            nn.Embedding(films, width),
        )
        self.user_mlp, self.film_mlp = nn.Embedding(users, width), nn.Embedding(films, width)
        self.mlp = nn.Sequential(
            nn.Linear(2 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width), nn.ReLU()
        )
        self.score = nn.Linear(2 * width, 1)
        for module in self.children():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, 0.0, 0.05)

    def forward(self, user, film):
        product = self.user_product(user) * self.film_product(film)
        deep = self.mlp(plait.cat([self.user_mlp(user), self.film_mlp(film)], dim=-1))
        return self.score(plait.cat([product, deep], dim=-1)).squeeze(-1)


def split(ratings):
    """The pairs (user, film) to train on, each user's last film, and the matrix of what was rated.

    Users and films are numbered from 0. Of films rated at the same time the later line is the last.
    """
    pairs = ratings[:, :2] - 1
    order = np.lexsort((np.arange(len(pairs)), ratings[:, 3], pairs[:, 0]))
    pairs = pairs[order]
    last = np.append(pairs[1:, 0] != pairs[:-1, 0], True)
    seen = np.zeros(pairs.max(0) + 1, dtype=bool)
    seen[pairs[:, 0], pairs[:, 1]] = True
    return pairs[~last], pairs[last, 1], seen


def candidates(last, seen, generator):
    """For each user the film held out, then 99 that the user never rated: (users, 100)."""
    others = [generator.choice(np.flatnonzero(~row), 99, replace=False) for row in seen]
    return np.column_stack([last, np.array(others)])


def hit_rate(scores, n=10):
    """The share of rows whose first score is among the n highest; a tie counts as a miss."""
    return float(((scores[:, 1:] >= scores[:, :1]).sum(1) < n).mean())


def train_epoch(model, optimizer, pairs, films, negatives, batch, generator):
    """Each pair once, with `negatives` films drawn by chance beside it; returns the mean loss."""
    user = np.repeat(pairs[:, 0], 1 + negatives)
    film = generator.integers(0, films, size=(len(pairs), 1 + negatives))
    film[:, 0] = pairs[:, 1]
    label = np.zeros(film.shape, dtype=np.float32)
    label[:, 0] = 1
    order = generator.permutation(len(user))
    columns = [plait.tensor(c.reshape(-1)[order]) for c in (user, film, label)]
    losses = []
    for user, film, label in zip(*[c.split(batch) for c in columns], strict=True):
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(user, film), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.mean(losses)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train NeuMF on MovieLens 100k.")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument(
        "--negatives", type=int, default=4, help="films by chance to each rated one"
    )
    parser.add_argument("--limit", type=int, help="train on so many pairs an epoch only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder of ncf.png")
    flags = parser.parse_args(arguments)

    plait.manual_seed(flags.seed)
    generator = np.random.default_rng(flags.seed)
    pairs, last, seen = split(packaged.movie_ratings())
    users, films = seen.shape
    options = candidates(last, seen, generator)
    popularity = np.bincount(pairs[:, 1], minlength=films)
    print(f"{len(pairs)} pairs of {users} users and {films} films")
    popular = hit_rate(popularity[options])
    print(f"popularity: HR@10 {popular:.3f}")
    pairs = generator.permutation(pairs)[: flags.limit]

    model = NeuMF(users, films)
    optimizer = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    user, film = plait.arange(users)[:, None].expand(users, 100), plait.tensor(options)
    history, start = [], time.perf_counter()
    for epoch in range(1, flags.epochs + 1):
        loss = train_epoch(
            model, optimizer, pairs, films, flags.negatives, flags.batch_size, generator
        )
        with plait.no_grad():
            history.append((loss, hit_rate(model(user, film).numpy())))
        seconds = time.perf_counter() - start
        print(f"epoch {epoch}: loss {loss:.4f}, HR@10 {history[-1][1]:.3f}, {seconds:.0f} s")
    path = flags.output / "ncf.png"
    rates = [rate for _, rate in history]
    if (
        pictures.learning_curve(path, rates, ("epoch", "HR@10"), {"popularity": popular})
        is not None
    ):
        print(f"picture: {path}")
    return history


if __name__ == "__main__":
    main()
