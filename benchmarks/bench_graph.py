"""Compiled functions of plait-graph beside the functions themselves: both sides are plait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from models import MODELS, fill
from timing import Case

import plait
from plait import nn, optim
from plait_graph import compile

__all__ = ["CHEAP", "FIGURES", "cases"]

CHEAP = False  # fills networks
FIGURES: dict[str, Callable[[], Any]] = {}


def inference(build: Callable[[], Any], x: Any, *, frozen: bool = True) -> tuple[Any, Any]:
    """Return the compiled call of a model in evaluation, and the call."""
    model = build().eval()
    compiled = compile(model, frozen=frozen)

    def call(function: Any) -> Callable[[], object]:
        def run() -> object:
            with plait.no_grad():
                return function(x)

        for _ in range(3):
            run()
        return run

    return call(compiled), call(model)


def network(name: str) -> Callable[[], Any]:
    """Return a function that builds a model of the benchmarks."""
    return lambda: fill(plait, MODELS[name].build(plait))


def mlp() -> Any:
    """Three layers of eight."""
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))


def training(
    build: Callable[[], Any], data: tuple[Any, ...], loss: Any, *, frozen: bool = True
) -> tuple[Any, Any]:
    """Return the compiled step of training with AdamW, and the step; each has its own model."""
    return tuple(_step(build(), data, loss, each) for each in (frozen, None))


def _step(
    model: Any, data: tuple[Any, ...], loss: Any, frozen: bool | None
) -> Callable[[], object]:
    optimizer = optim.AdamW(model.parameters(), lr=1e-4)
    *x, y = data

    def step(*given: Any) -> Any:
        optimizer.zero_grad()
        result = loss(model(*given[:-1]), given[-1])
        result.backward()
        optimizer.step()
        return result

    function = step if frozen is None else compile(step, frozen=frozen)
    for _ in range(3):
        function(*x, y)
    return lambda: function(*x, y)


def chain(n: int) -> tuple[Any, Any]:
    """Return a compiled chain of calls whose work is small, and the chain: what a call costs."""

    def negate(x: Any) -> Any:
        for _ in range(n):
            x = x.neg()
        return x

    compiled, x = compile(negate), plait.randn(4)
    for _ in range(3):
        compiled(x)
    return lambda: compiled(x), lambda: negate(x)


def words(output: Any, y: Any) -> Any:
    """Cross entropy of each word."""
    return nn.functional.cross_entropy(output.reshape(-1, output.shape[-1]), y.reshape(-1))


def gpt(length: int) -> tuple[Any, Any]:
    """Return the steps of a GPT of four layers, with the next word as the target."""
    options = {"width": 1 / 2, "layers": 4, "words": 8192}
    text = plait.randint(0, options["words"], (4, length + 1))
    data = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    return training(lambda: fill(plait, MODELS["gpt2"].build(plait, **options)), data, words)


def ten_operators(x: Any) -> Any:
    """Ten pointwise operators."""
    y = (x * 1.5 + 0.5).relu() * x - 1.0
    return -(y.abs() * 0.25 + x).maximum(x)


def one_pass() -> tuple[Any, Any]:
    """Return the compiled chain on 64 MB, and one pointwise operator."""
    x, frozen = plait.randn(16 << 20), compile(ten_operators, frozen=True)
    for _ in range(3):
        frozen(x)
    return lambda: frozen(x), lambda: -x


def arrays(name: str, batch: int, **options: Any) -> tuple[Any, ...]:
    """Return a batch of a model's data."""
    arrays = MODELS[name].data(batch, **options)
    return tuple(plait.from_numpy(array).clone() for array in arrays)  # memory of plait's own


def cases() -> Iterator[Case]:
    """Bars are the goals: a compiled function is not slower."""
    for name, title, batch, options in (
        ("resnet50", "ResNet-50, 1 picture", 1, {}),
        ("resnet50", "ResNet-50, 16 pictures", 16, {}),
        ("mobilenet", "MobileNetV2, 1 picture", 1, {}),
        ("bert", "BERT, 1 x 128", 1, {"length": 128}),
        ("bert", "BERT, 8 x 128", 8, {"length": 128}),
        ("gpt2", "GPT-2, prompt of 64 words", 1, {"length": 64}),
    ):
        yield title, *inference(network(name), arrays(name, batch, **options)[0]), 1.0
    yield "MLP of three layers of 8", *inference(mlp, plait.randn(1, 8)), 1.0
    yield "ten pointwise operators on 64 MB beside one", *one_pass(), 1.2
    cross_entropy = nn.functional.cross_entropy
    data = plait.randn(16, 8), plait.randint(0, 8, (16,))
    yield "a step of the MLP", *training(mlp, data, cross_entropy), 1 / 1.15
    for name, loss in (("mobilenet", cross_entropy), ("gnmt", words)):
        model = MODELS[name]
        batch = arrays(name, 8)
        yield f"a step of {model.title}, 8", *training(network(name), batch, loss), 1 / 1.15
    yield "a step of a GPT, 4 x 64", *gpt(64), 1 / 1.15
    # Python runs at each call, as in the function itself; there is no goal
    pictures = arrays("mobilenet", 1)[0]
    yield (
        "MobileNetV2, 1 picture, deferred",
        *inference(network("mobilenet"), pictures, frozen=False),
        None,
    )
    prompt = arrays("gpt2", 1, length=64)[0]
    yield (
        "GPT-2, prompt of 64 words, deferred",
        *inference(network("gpt2"), prompt, frozen=False),
        None,
    )
    one = plait.randn(1, 8)
    yield "MLP of three layers of 8, deferred", *inference(mlp, one, frozen=False), None
    yield "a step of the MLP, deferred", *training(mlp, data, cross_entropy, frozen=False), None
    yield "1000 negations of 4 numbers, deferred", *chain(1000), None
