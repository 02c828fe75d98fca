"""How far a training in float32 ends from the same one in float64: plait beside PyTorch.

    python benchmarks/accuracy.py                     the six models of the table, 20 steps each
    python benchmarks/accuracy.py --small             small versions: seconds
    python benchmarks/accuracy.py resnet50 --steps 5

Each library trains a model several times, from the same weights, on other batches, without dropout:
in float64 and in float32. ``losses`` is the root mean square of the differences of the losses over
that of the float64 losses; ``weights`` the length of the difference of all weights at the end, over
the length of the way that the float64 run went. Both are root mean squares over the batches. plait
passes if they are at most twice PyTorch's. Without PyTorch only plait's own are printed.

Networks with batch normalisation multiply differences from step to step, at the training's rate
until nothing is left of the kernels' accuracy; they get a low rate and more batches. In about half
of ResNet-50's batches some ReLU has an input so near 0 that float32 and float64 disagree on its
sign, and the weights' distance is then 20 times as large, in any library. A median over few
batches says which library met one; a root mean square over 10 or more is within a third of its
value over 100.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from models import MODELS, PAPER, fill

__all__ = ["BATCHES", "LIMIT", "RATES", "Distance", "distance", "main", "trained"]

RATES = {"alexnet": 1e-3, "resnet50": 1e-5, "mobilenet": 1e-5}
"""Learning rates other than the training's, at which AlexNet without dropout diverges."""

BATCHES = 20
"""Batches of the models in `RATES`, of whose distances the mean is wanted."""

LIMIT = 2.0
"""The largest ratio of plait's distance to PyTorch's that passes."""


@dataclass(frozen=True)
class Distance:
    """How far a float32 training is from float64, relative; see the module."""

    losses: float
    weights: float


def trained(
    torch: Any, name: str, dtype: str, *, steps: int, batch: int, small: bool, seed: int
) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Train a model; return its losses, its weights before, and its weights after, in float64."""
    model = MODELS[name]
    options, data_options = model.small if small else ({}, {})
    network = fill(torch, model.build(torch, **options).to(getattr(torch, dtype)))
    data = []
    for array in model.data(batch, seed, **data_options):
        tensor = torch.from_numpy(array)
        data.append(tensor.to(getattr(torch, dtype)) if array.dtype.kind == "f" else tensor)
    before = _weights(network)
    optimizer = model.optimizer(torch, network.parameters())
    for group in optimizer.param_groups:
        group["lr"] = RATES.get(name, group["lr"])
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model.loss(torch, network(*data[:-1]), data[-1])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses), before, _weights(network)


def _weights(network: Any) -> list[np.ndarray]:
    return [p.detach().numpy().astype(np.float64) for p in network.parameters()]


def _length(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    squares = (float(((a - b) ** 2).sum()) for a, b in zip(one, other, strict=True))
    return math.sqrt(sum(squares))


def _root_mean_square(values: list[float]) -> float:
    return math.sqrt(sum(value * value for value in values) / len(values))


def distance(
    torch: Any, name: str, *, steps: int, batch: int, small: bool, batches: int = 1
) -> Distance:
    """Train in float64 and in float32, and compare: root mean squares over ``batches``."""
    losses, weights = [], []
    for seed in range(batches):
        sizes: dict[str, Any] = {"steps": steps, "batch": batch, "small": small, "seed": seed}
        exact, before, after = trained(torch, name, "float64", **sizes)
        result, _, ended = trained(torch, name, "float32", **sizes)
        losses.append(float(np.sqrt(np.mean((result - exact) ** 2) / np.mean(exact**2))))
        weights.append(_length(after, ended) / max(_length(after, before), 1e-300))
    return Distance(_root_mean_square(losses), _root_mean_square(weights))


def main(arguments: list[str] | None = None) -> int:
    """Read the flags, train, print a line for each model, and return the exit status."""
    parser = argparse.ArgumentParser("benchmarks/accuracy.py", description=__doc__)
    parser.add_argument("models", nargs="*", default=PAPER, metavar="MODEL")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, help="samples of a step (default: 8, NeuMF 1024)")
    parser.add_argument(
        "--batches", type=int, help=f"different ones (default: 3, with batch norm {BATCHES})"
    )
    parser.add_argument("--small", action="store_true", help="narrow models, small images")
    flags = parser.parse_args(arguments)
    import plait

    libraries: dict[str, Any] = {"plait": plait}
    try:
        import torch

        libraries["torch"] = torch
    except ImportError:
        print("torch is not installed: plait's distances alone")
    failed = 0
    for name in flags.models:
        if name not in MODELS or not MODELS[name].trained:
            parser.error(f"unknown model {name!r}, there are {', '.join(PAPER)}")
        batch = flags.batch or (1024 if name == "neumf" else 8)
        batches = flags.batches or (BATCHES if name in RATES else 3)
        row = f"{MODELS[name].title:12s}"
        results = {
            key: distance(
                *(library, name),
                steps=flags.steps,
                batch=batch,
                small=flags.small,
                batches=batches,
            )
            for key, library in libraries.items()
        }
        for attribute in ("losses", "weights"):
            values = {key: getattr(value, attribute) for key, value in results.items()}
            row += f"  {attribute}" + "".join(f" {key} {v:.2e}" for key, v in values.items())
            if "torch" in values:
                # below float32's rounding of a single number both are right
                ratio = max(values["plait"], 1e-8) / max(values["torch"], 1e-8)
                row += f" ratio {ratio:.2f}"
                failed += ratio > LIMIT
        print(row, flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
