"""`vmap` against a loop over the samples: gradients of single samples, Jacobians, an ensemble.

    python benchmarks/bench_vmap.py

Each line has the milliseconds of both, medians of turns, and their ratio, for a batch of 256.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import plait
import plait.nn.functional as F
from plait import nn
from plait.nn import functional_call
from plait_torch._func import grad, jacrev, stack_module_state
from plait_torch._vmap import vmap

BATCH = 256
TURNS = 5


def seconds(call: Callable[[], Any]) -> float:
    """Return the time of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def compare(name: str, at_once: Callable[[], Any], one_by_one: Callable[[], Any]) -> None:
    """Print the medians of turns."""
    at_once()
    pairs = [(seconds(at_once), seconds(one_by_one)) for _ in range(TURNS)]
    fast, slow = (statistics.median(column) * 1e3 for column in zip(*pairs, strict=True))
    print(f"{name:28} {fast:9.3f} ms {slow:9.3f} ms  {slow / fast:7.1f} times")


def main() -> None:
    """Run all comparisons."""
    plait.manual_seed(0)
    x, y, w = plait.randn(BATCH, 64), plait.randn(BATCH, 64), plait.randn(64, 64)
    for name, f, args in (
        ("dot", plait.dot, (x, y)),
        ("vector @ matrix", lambda a: a @ w, (x,)),
        ("tanh(x) * x + 1", lambda a: a.tanh() * a + 1, (x,)),
        ("softmax", lambda a: a.softmax(0), (x,)),
        ("sum of squares", lambda a: (a * a).sum(), (x,)),
    ):
        compare(
            name,
            lambda f=f, args=args: vmap(f)(*args),
            lambda f=f, args=args: plait.stack([f(*each) for each in zip(*args, strict=True)]),
        )
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 25, 10)
    )
    params = {key: value.detach() for key, value in net.named_parameters()}
    images, labels = plait.randn(BATCH, 1, 12, 12), plait.randint(0, 10, (BATCH,))

    def loss(params: Any, image: Any, label: Any) -> Any:
        logits = functional_call(net, params, (image.unsqueeze(0),))
        return F.cross_entropy(logits, label.unsqueeze(0))

    compare(
        "gradients, small CNN",
        lambda: vmap(grad(loss), (None, 0, 0))(params, images, labels),
        lambda: [grad(loss)(params, a, b) for a, b in zip(images, labels, strict=True)],
    )
    mlp = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 16))
    compare(
        "Jacobian of an MLP",
        lambda: vmap(jacrev(mlp))(x),
        lambda: [jacrev(mlp)(each) for each in x],
    )
    models = [nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)) for _ in range(BATCH)]
    stacked = stack_module_state(models)
    compare(
        "ensemble of 256 MLPs",
        lambda: vmap(lambda p, b: functional_call(models[0], (p, b), (x[:4],)))(*stacked),
        lambda: [model(x[:4]) for model in models],
    )


if __name__ == "__main__":
    main()
