"""`vmap` against a loop over samples: operators, gradients of samples, Jacobians, ensembles.

    python benchmarks/bench_vmap.py

Each line has the time of both in microseconds, the best of turns, and their ratio, for a batch of
256; for operators also the time of the operator on all samples, written by hand, where there is
one: what `vmap` adds to it is its own cost, and the loop's time divided by it is the largest ratio
that there can be. Samples have the sizes that those of per-sample gradients have: 16 numbers, 8 x 8
matrices and images.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import plait
import plait.nn.functional as F
from plait import nn
from plait.func import grad, jacrev, stack_module_state, vmap
from plait.nn import functional_call

BATCH = 256
TURNS = 9


def microseconds(call: Callable[[], Any], rounds: int) -> float:
    """Return the time of one call."""
    begin = time.perf_counter()
    for _ in range(rounds):
        call()
    return (time.perf_counter() - begin) / rounds * 1e6


def compare(
    name: str,
    at_once: Callable[[], Any],
    one_by_one: Callable[[], Any],
    by_hand: Callable[[], Any] | None = None,
) -> None:
    """Print the best of turns."""
    at_once()
    rounds = max(1, round(2e3 / microseconds(at_once, 1)))
    best = [float("inf")] * 3
    for _ in range(TURNS):
        best[0] = min(best[0], microseconds(at_once, rounds))
        best[1] = min(best[1], microseconds(one_by_one, 1))
        if by_hand is not None:
            best[2] = min(best[2], microseconds(by_hand, rounds))
    hand = f"{best[2]:9.1f}" if by_hand else " " * 9
    print(f"{name:28} {best[0]:9.1f} {best[1]:11.1f} {best[1] / best[0]:7.1f} times {hand}")


def operators() -> list[tuple[str, Callable[..., Any], tuple[Any, ...], Callable[[], Any]]]:
    """Return operators on small samples: name, function, arguments, and the call by hand."""
    x, y, w, b = plait.randn(BATCH, 16), plait.randn(BATCH, 16), plait.randn(16, 16), plait.ones(16)
    matrices, images = plait.randn(BATCH, 8, 8), plait.randn(BATCH, 1, 1, 8, 8)
    kernel, table = plait.randn(4, 1, 3, 3), plait.randn(50, 16)
    words, labels = plait.randint(0, 50, (BATCH, 8)), plait.randint(0, 16, (BATCH,))
    return [
        ("x + y", lambda a, c: a + c, (x, y), lambda: x + y),
        ("x * y", lambda a, c: a * c, (x, y), lambda: x * y),
        ("x * 2", lambda a: a * 2, (x,), lambda: x * 2),
        ("x / y", lambda a, c: a / c, (x, y), lambda: x / y),
        ("x ** 2", lambda a: a**2, (x,), lambda: x**2),
        ("exp", plait.exp, (x,), lambda: plait.exp(x)),
        ("sin", plait.sin, (x,), lambda: plait.sin(x)),
        ("tanh", plait.tanh, (x,), lambda: plait.tanh(x)),
        ("relu", plait.relu, (x,), lambda: plait.relu(x)),
        ("sigmoid", plait.sigmoid, (x,), lambda: plait.sigmoid(x)),
        ("gelu", F.gelu, (x,), lambda: F.gelu(x)),
        ("where", lambda a, c: plait.where(a > 0, a, c), (x, y), lambda: plait.where(x > 0, x, y)),
        ("sum", plait.sum, (x,), lambda: x.sum(1)),
        ("mean", plait.mean, (x,), lambda: x.mean(1)),
        ("amax", plait.amax, (x,), lambda: x.amax(1)),
        ("softmax", lambda a: a.softmax(0), (x,), lambda: x.softmax(1)),
        ("log_softmax", lambda a: a.log_softmax(0), (x,), lambda: x.log_softmax(1)),
        ("layer_norm", lambda a: F.layer_norm(a, (16,)), (x,), lambda: F.layer_norm(x, (16,))),
        ("dot", plait.dot, (x, y), lambda: (x * y).sum(1)),
        ("vector @ matrix", lambda a: a @ w, (x,), lambda: x @ w),
        ("matrix @ matrix", plait.mm, (matrices, matrices), lambda: matrices @ matrices),
        ("linear", lambda a: F.linear(a, w, b), (x,), lambda: F.linear(x, w, b)),
        (
            "conv2d", lambda a: F.conv2d(a, kernel), (images,),
            lambda: F.conv2d(images[:, 0], kernel),
        ),
        (
            "embedding", lambda a: F.embedding(a, table), (words,),
            lambda: F.embedding(words, table),
        ),
        ("mse_loss", F.mse_loss, (x, y), lambda: ((x - y) ** 2).mean(1)),
        (
            "cross_entropy", F.cross_entropy, (x, labels),
            lambda: F.cross_entropy(x, labels, reduction="none"),
        ),
        ("transpose", lambda a: a.T, (matrices,), lambda: matrices.transpose(1, 2)),
        ("x[0]", lambda a: a[0], (x,), lambda: x[:, 0]),
    ]  # fmt: skip


def main() -> None:
    """Run all comparisons."""
    plait.manual_seed(0)
    print(f"{'':28} {'vmap':>9} {'loop':>11} {'ratio':>7}       {'by hand':>9}")
    for name, f, args, by_hand in operators():
        compare(
            name,
            lambda f=f, args=args: vmap(f)(*args),
            lambda f=f, args=args: plait.stack([f(*each) for each in zip(*args, strict=True)]),
            by_hand,
        )
    x = plait.randn(BATCH, 64)
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
    small = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))
    weights = {key: value.detach() for key, value in small.named_parameters()}
    inputs, classes = plait.randn(BATCH, 16), plait.randint(0, 4, (BATCH,))

    def mlp_loss(params: Any, a: Any, b: Any) -> Any:
        return F.cross_entropy(functional_call(small, params, (a,)), b)

    compare(
        "gradients, small MLP",
        lambda: vmap(grad(mlp_loss), (None, 0, 0))(weights, inputs, classes),
        lambda: [grad(mlp_loss)(weights, a, b) for a, b in zip(inputs, classes, strict=True)],
    )
    mlp = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 16))
    compare(
        "Jacobian of an MLP",
        lambda: vmap(jacrev(mlp))(x),
        lambda: [jacrev(mlp)(each) for each in x],
    )
    ensemble("256 MLPs 16-16-4, 1 input", (16, 16, 4), 1)
    ensemble("256 MLPs 64-32-8, 4 inputs", (64, 32, 8), 4)


def ensemble(name: str, sizes: tuple[int, int, int], count: int) -> None:
    """Compare models with stacked parameters, without derivatives.

    By hand are the two products of batches alone.
    """
    first, middle, last = sizes
    models = [
        nn.Sequential(nn.Linear(first, middle), nn.ReLU(), nn.Linear(middle, last))
        for _ in range(BATCH)
    ]
    stacked = stack_module_state(models)
    x, hidden = plait.randn(count, first), plait.randn(BATCH, count, middle)
    inputs = x.expand(BATCH, count, first)
    weights = [each.detach().transpose(1, 2) for each in stacked[0].values() if each.ndim == 3]
    with plait.no_grad():
        compare(
            name,
            lambda: vmap(lambda p, b: functional_call(models[0], (p, b), (x,)))(*stacked),
            lambda: [model(x) for model in models],
            lambda: (plait.bmm(inputs, weights[0]), plait.bmm(hidden, weights[1])),
        )


if __name__ == "__main__":
    main()
