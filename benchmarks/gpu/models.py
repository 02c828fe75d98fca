"""The paper's Table 1 on a GPU: training steps of six models, and the cost of a launch."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from models import MODELS, PAPER, fill

from gpu.sides import Options, Side, in_turns, sides

__all__ = ["run", "training"]

BATCHES = {
    "alexnet": 256,
    "vgg19": 64,
    "resnet50": 64,
    "mobilenet": 96,
    "gnmt": 128,
    "neumf": 16384,
}
"""Samples of a step: so many that the device is busy."""

DTYPES = ("float32", "bfloat16")


def run(options: Options) -> dict[str, Any]:
    """Return the time of a step of each model and dtype on each side, and that of a small call."""
    present = sides(options)
    end = time.monotonic() + options.seconds
    result: dict[str, Any] = {"launch": launch_cost(present, options), "models": {}}
    pairs = [(name, dtype) for dtype in DTYPES for name in PAPER]
    for number, (name, dtype) in enumerate(pairs):
        rest = (end - time.monotonic()) / (len(pairs) - number)
        if rest < 1 and not options.small:
            result["models"][f"{name} {dtype}"] = {"left_out": "no time was left"}
            continue
        result["models"][f"{name} {dtype}"] = model_times(present, name, dtype, options, rest / 2)
    return result


def launch_cost(present: list[Side], options: Options) -> dict[str, float]:
    """Return the seconds that the host spends on one call of a small operator."""
    costs = {}
    for side in present:
        x = side.library.ones(1, device=options.device)
        count = 200 if options.small else 20000
        for _ in range(count // 10):
            x.add_(1.0)
        side.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            x.add_(1.0)
        costs[side.name] = (time.perf_counter() - begin) / count
        side.synchronize()
    return costs


def model_times(
    present: list[Side], name: str, dtype: str, options: Options, seconds: float
) -> dict[str, Any]:
    """Return the median seconds of a step on each side, or the error of the first that fails."""
    steps = {}
    for side in present:
        try:
            _, steps[side] = training(side, name, dtype, options)
            steps[side]()
        except Exception as error:
            return {"error": f"{side.name}: {type(error).__name__}: {str(error)[:300]}"}
    return in_turns(steps, seconds)


def training(side: Side, name: str, dtype: str, options: Options) -> tuple[Any, Callable[[], Any]]:
    """Return a model whose weights lie on the device, and a training step of it."""
    library, model = side.library, MODELS[name]
    sizes, shapes = model.small if options.small else ({}, {})
    network = fill(library, model.build(library, **sizes)).to(options.device)
    batch = 2 if options.small else BATCHES[name]
    *inputs, target = [
        library.from_numpy(each).to(options.device) for each in model.data(batch, **shapes)
    ]
    optimizer = model.optimizer(library, network.parameters())

    def region() -> contextlib.AbstractContextManager[Any]:
        if dtype == "float32":
            return contextlib.nullcontext()
        if side.name == "plait":  # the name belongs to programs for PyTorch
            from plait_torch._autocast import autocast
        else:
            autocast = library.autocast
        result: contextlib.AbstractContextManager[Any] = autocast(
            options.device, dtype=getattr(library, dtype)
        )
        return result

    def step() -> None:
        optimizer.zero_grad()
        with region():
            loss = model.loss(library, network(*inputs), target)
        loss.backward()
        optimizer.step()

    return network, step
