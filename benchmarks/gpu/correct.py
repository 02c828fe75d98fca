"""Results on the device against those on the CPU: operators, and trainings of small models, whose
steps neither wait nor ask for memory.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from models import MODELS, PAPER, fill

from gpu.sides import Options, Side, timed

__all__ = ["run", "suite"]

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "packages" / "cuda" / "tests"
LARGEST = {"float32": 1e-4, "float64": 1e-6}
"""How far losses may differ from those of the CPU, as a share of them."""

SMALL_KIT = "add,where,softmax,sum,cumsum,gather,index_put_,mm,conv2d,sort,layer_norm,dropout,rand"
"""Operators of the conformance kit in small sizes: all of them take minutes on the emulation."""

STEPS = 4
"""Steps whose requests of memory are counted."""


def run(options: Options) -> dict[str, Any]:
    """Return loss curves of trainings, what their steps ask of the device, and the outcome of the
    operators' suite and of the conformance kit.
    """
    import plait

    plait.accelerator.set_tf32(convolutions=False)  # the CPU does not round operands either
    end = time.monotonic() + options.limit
    names = [*PAPER, "gpt2"]
    result: dict[str, Any] = {
        "trainings": {name: training(name, options) for name in names},
        "steps": {name: steps(name, options) for name in names},
    }
    rest = end - time.monotonic()
    result["operators"] = suite([str(TESTS / "test_samples.py")], rest / 2)
    if importlib.util.find_spec("plait_conformance") is None:
        result["kit"] = {"left_out": "plait-conformance is not installed"}
    else:
        words = ["--pyargs", "plait_conformance", "--role", "device", "--device", "cuda"]
        words += ["--operators", SMALL_KIT] if options.small else []
        result["kit"] = suite(words, end - time.monotonic())
    return result


def suite(
    words: list[str], seconds: float, command: Sequence[str] = (sys.executable,), **more: str
) -> dict[str, Any]:
    """Run pytest on the device that is there; return its status and the last lines."""
    if importlib.util.find_spec("pytest") is None:
        return {"left_out": "pytest is not installed"}
    words = [*command, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", *words]
    # the tests choose the emulation where the environment says nothing
    environment = {"PLAIT_CUDA_EMULATION": "0", **os.environ, **more}
    with tempfile.TemporaryFile("w+") as output:
        try:
            status: int | str = subprocess.run(
                words, stdout=output, stderr=subprocess.STDOUT, timeout=seconds, env=environment
            ).returncode
        except subprocess.TimeoutExpired:
            status = f"stopped after {seconds:.0f} s"
        output.seek(0)
        return {"status": status, "tail": output.read().splitlines()[-30:]}


def training(name: str, options: Options, count: int = 3) -> dict[str, Any]:
    """Train the small version of a model on both devices, and return how far the losses differ.

    In float32 the curves of a small batch part after some steps, as rounding grows there: the first
    loss is compared. In float64 all losses are.
    """
    import plait

    result: dict[str, Any] = {}
    for dtype in ("float32", "float64"):
        curves = [
            losses(name, device, getattr(plait, dtype), count) for device in ("cpu", options.device)
        ]
        result[dtype] = {"cpu": curves[0], options.device: curves[1]}
        compared = 1 if dtype == "float32" else count
        pairs = list(zip(*curves, strict=True))[:compared]
        difference = max(abs(a - b) / max(1.0, abs(a)) for a, b in pairs)
        result[dtype]["difference"] = difference
        if not difference <= LARGEST[dtype]:
            result[dtype]["error"] = f"losses differ by {difference:.1e}"
    return result


def losses(name: str, device: str, dtype: Any, count: int) -> list[float]:
    """Return the losses of a training."""
    step = step_of(name, device, dtype)
    result = [step() for _ in range(count)]
    return [loss.item() for loss in result]


def step_of(name: str, device: str, dtype: Any) -> Callable[[], Any]:
    """Return a training step of the small version of a model; it returns the loss."""
    import plait

    model = MODELS[name]
    sizes, shapes = model.small
    network = fill(plait, model.build(plait, **sizes)).to(device).to(dtype)
    data = [plait.from_numpy(each).to(device) for each in model.data(4, **shapes)]
    *inputs, target = data if model.trained else [*data, data[0]]  # words that repeat themselves
    inputs = [x.to(dtype) if x.is_floating_point() else x for x in inputs]
    target = target.to(dtype) if target.is_floating_point() else target
    optimizer = model.optimizer(plait, network.parameters())

    def step() -> Any:
        optimizer.zero_grad()
        output = network(*inputs)
        if model.trained:
            loss = model.loss(plait, output, target)
        else:
            loss = plait.nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def steps(name: str, options: Options) -> dict[str, Any]:
    """Return how often each step asked the driver for memory, and whether steps waited for the
    device.
    """
    import plait

    plait.cuda.synchronize()
    plait.cuda.empty_cache()
    step = step_of(name, options.device, plait.float32)
    requests, hosts = [], []
    for _ in range(STEPS):
        before = plait.cuda.memory_stats()["segment.all.allocated"]
        begin = time.perf_counter()
        step()
        hosts.append(time.perf_counter() - begin)
        requests.append(plait.cuda.memory_stats()["segment.all.allocated"] - before)
    # other programs of the machine may hold one step up, but not each
    waited = all(waits(step, hosts[-1], options) for _ in range(3))
    row: dict[str, Any] = {"requests": requests, "waited": waited}
    if any(requests[2:]):
        row["error"] = f"later steps ask the driver for memory: {requests}"
    return row


def waits(step: Callable[[], Any], host: float, options: Options) -> bool:
    """Return whether work that was queued before a step is done as the step returns. The work
    takes longer than the seconds `host` of a step.
    """
    import plait

    side = Side("plait", plait)
    size = 128 if options.small else 4096
    x = plait.ones(size, size, device=options.device)
    for _ in range(2):
        once = timed(side, lambda: x @ x, 1)
    event = plait.cuda.Event()
    for _ in range(min(500, 2 + int(4 * host / once))):
        x @ x
    event.record()
    step()
    result = bool(event.query())
    side.synchronize()
    return result
