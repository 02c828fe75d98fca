"""Random programs of views and in-place operators give correct gradients or errors."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import plait_autograd as pa
import plait_core as pc
from plait_autograd import forward_ad

SHAPES = [(3, 4), (3, 4), (4,)]
Step = Callable[[list[Any]], Any]
REASONS = ("was overwritten", "share one place", "returned by a Function", "in place since")


class Same(pa.Function):
    """Returns its input."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class Rows(pa.Function):
    """Returns a view of its input."""

    @staticmethod
    def forward(ctx, x):
        return x.unsqueeze(0)

    @staticmethod
    def backward(ctx, g):
        return g.squeeze(0)


class Twice(pa.Function):
    """Returns a view of a tensor of its own."""

    @staticmethod
    def forward(ctx, x):
        return (x * 2).unsqueeze(0)

    @staticmethod
    def backward(ctx, g):
        return g.squeeze(0) * 2


def fits(target: tuple[int, ...], source: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(target, source) == target
    except ValueError:
        return False


def view(draw: random.Random, i: int, shape: tuple[int, ...]) -> tuple[Step, tuple[int, ...]]:
    """A view of tensor i and its shape."""
    kind = draw.choice(["select", "narrow", "transpose", "expand", "unsqueeze"])
    if not shape or kind == "unsqueeze":
        return lambda ts: ts[i].unsqueeze(0), (1, *shape)
    d = draw.randrange(len(shape))
    if kind == "select":
        at = draw.randrange(shape[d])
        return lambda ts: ts[i].select(d, at), shape[:d] + shape[d + 1 :]
    if kind == "narrow":
        start = draw.randrange(shape[d])
        length = draw.randint(1, shape[d] - start)
        return lambda ts: ts[i].narrow(d, start, length), (*shape[:d], length, *shape[d + 1 :])
    if kind == "transpose":
        last = len(shape) - 1
        swapped = list(shape)
        swapped[d], swapped[last] = swapped[last], swapped[d]
        return lambda ts: ts[i].transpose(d, last), tuple(swapped)
    return lambda ts: ts[i].expand((2, *shape)), (2, *shape)


def write(draw: random.Random, i: int, j: int) -> Step:
    """An in-place operator on tensor i, which may read tensor j."""
    kinds: list[Step] = [
        lambda ts: ts[i].mul_(ts[j]),
        lambda ts: ts[i].mul_(ts[j].clone()),
        lambda ts: ts[i].add_(ts[j]),
        lambda ts: ts[i].copy_(ts[j]),
        lambda ts: ts[i].mul_(1.3),
        lambda ts: ts[i].sin_(),
        lambda ts: ts[i].zero_(),
        lambda ts: ts[i].mul_(ts[i]),
        lambda ts: ts[i].absolute_(),
        lambda ts: ts[i].clamp_(-0.9, 0.9),
        lambda ts: ts[i].clamp_(ts[j] - 0.4, ts[j] + 0.6),
    ]
    return draw.choice(kinds)


def program(seed: int, functions: bool) -> tuple[list[tuple[str, Step]], list[float]]:
    """Steps that append a tensor ("new") or write one, and a weight for each tensor."""
    draw = random.Random(seed)
    shapes, steps = list(SHAPES), []
    for _ in range(draw.randint(5, 14)):
        i, j, kind = draw.randrange(len(shapes)), draw.randrange(len(shapes)), draw.random()
        if kind < 0.15:
            step, shape = (
                draw.choice([lambda ts, i=i: (ts[i] * 0.3).exp(), lambda ts, i=i: ts[i].sin()]),
                shapes[i],
            )
        elif kind < 0.3 and fits(shapes[i], shapes[j]):
            step, shape = lambda ts, i=i, j=j: ts[i] * ts[j], shapes[i]
        elif 0.3 <= kind < 0.35 and functions:
            function = draw.choice([Same, Rows, Twice])
            step = lambda ts, i=i, function=function: function.apply(ts[i])  # noqa: E731
            shape = shapes[i] if function is Same else (1, *shapes[i])
        elif kind < 0.35:
            step, shape = lambda ts: pc.zeros(3, 4, dtype=pc.float64), (3, 4)
        elif kind < 0.65:
            step, shape = view(draw, i, shapes[i])
        else:
            if fits(shapes[i], shapes[j]):
                steps.append(("write", write(draw, i, j)))
            continue
        steps.append(("new", step))
        shapes.append(shape)
    return steps, [draw.uniform(0.5, 2) for _ in shapes]


def run(steps: list[tuple[str, Step]], weights: list[float], leaves: list[Any]) -> Any:
    tensors = [leaf * 1 for leaf in leaves]
    for kind, step in steps:
        result = step(tensors)
        if kind == "new":
            tensors.append(result)
    total = pc.zeros((), dtype=pc.float64)
    for tensor, weight in zip(tensors, weights, strict=True):
        total = total + (tensor * weight).sum()
    return total


def compare(seed: int, functions: bool = False) -> bool:
    """Return whether backward gave a gradient; assert that it is the one of finite differences."""
    steps, weights = program(seed, functions)
    rng = np.random.default_rng(seed)
    values = [rng.uniform(-1, 1, shape) for shape in SHAPES]
    directions = [rng.uniform(-1, 1, shape) for shape in SHAPES]
    leaves = [pc.tensor(v, requires_grad=True) for v in values]
    try:
        run(steps, weights, leaves).backward()
    except (RuntimeError, ValueError) as error:
        text = str(error)
        assert any(reason in text for reason in REASONS[: 4 if functions else 2]), (seed, text)
        return False
    slope = sum(
        float((leaf.grad.numpy() * d).sum())
        for leaf, d in zip(leaves, directions, strict=True)
        if leaf.grad is not None
    )
    ends = []
    for step in (1e-6, -1e-6):
        moved = [pc.tensor(v + step * d) for v, d in zip(values, directions, strict=True)]
        with pa.no_grad():
            ends.append(run(steps, weights, moved).item())
    expected = (ends[0] - ends[1]) / 2e-6
    assert abs(slope - expected) <= 1e-4 + 1e-5 * abs(expected), (seed, slope, expected)
    return True


def test_gradients_are_right_or_refused() -> None:
    right = sum(compare(seed) for seed in range(600))
    assert 200 <= right <= 590


def test_gradients_through_functions_are_right_or_refused() -> None:
    right = sum(compare(seed, functions=True) for seed in range(600))
    assert 200 <= right <= 590


def forward(seed: int) -> bool:
    """Whether forward mode gave a slope, with and without a backward pass; asserts that these are
    the slopes of the values and of the gradients.
    """
    steps, weights = program(seed, False)
    rng = np.random.default_rng(seed)
    values = [rng.uniform(-1, 1, shape) for shape in SHAPES]
    directions = [rng.uniform(-1, 1, shape) for shape in SHAPES]
    back = [rng.uniform(-1, 1, shape) for shape in SHAPES]

    def slope(gradients: list[Any]) -> float:
        pairs = [(g, b) for g, b in zip(gradients, back, strict=True) if g is not None]
        return float(sum((g.detach().numpy() * b).sum() for g, b in pairs))

    try:
        with forward_ad.dual_level():
            leaves = [
                forward_ad.make_dual(pc.tensor(v, requires_grad=True), pc.tensor(d))
                for v, d in zip(values, directions, strict=True)
            ]
            y = run(steps, weights, leaves)
            tangent = forward_ad.unpack_dual(y).tangent
            gradients = pa.grad(y, leaves, allow_unused=True)
            gradient_slope = slope(
                [g if g is None else forward_ad.unpack_dual(g).tangent for g in gradients]
            )
    except (RuntimeError, ValueError) as error:
        assert any(reason in str(error) for reason in REASONS[:2]), (seed, str(error))
        return False
    values_at, gradients_at = [], []
    for step in (1e-6, -1e-6):
        moved = [
            pc.tensor(v + step * d, requires_grad=True)
            for v, d in zip(values, directions, strict=True)
        ]
        y = run(steps, weights, moved)
        values_at.append(y.item())
        gradients_at.append(slope(list(pa.grad(y, moved, allow_unused=True))))
    for got, (above, below) in ((tangent.item(), values_at), (gradient_slope, gradients_at)):
        expected = (above - below) / 2e-6
        assert abs(got - expected) <= 1e-4 + 1e-5 * abs(expected), (seed, got, expected)
    return True


def test_forward_mode_is_right_or_refused() -> None:
    right = sum(forward(seed) for seed in range(400))
    assert 150 <= right <= 395
