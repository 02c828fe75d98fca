"""Results on the device against those on the CPU: operators, and trainings of small models."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time
from typing import Any

from models import MODELS, PAPER, fill

from gpu.sides import Options

__all__ = ["run"]

TESTS = pathlib.Path(__file__).resolve().parents[2] / "packages" / "cuda" / "tests"


def run(options: Options) -> dict[str, Any]:
    """Return the outcome of the suites, loss curves of six trainings, and counts of a step."""
    import plait

    plait.accelerator.set_tf32(convolutions=False)  # the CPU does not round operands either
    begin = time.monotonic()
    curves = {name: training(name, options) for name in PAPER}
    rest = options.seconds - (time.monotonic() - begin)
    return {"trainings": curves, "operators": suite(["test_samples.py"], rest)}


def suite(files: list[str], seconds: float) -> dict[str, Any]:
    """Run test files on the device that is there; return counts and the last lines."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    # the tests choose the emulation where the environment says nothing
    environment = {"PLAIT_CUDA_EMULATION": "0", **os.environ}
    try:
        done = subprocess.run(
            [*words, *(str(TESTS / name) for name in files)],
            capture_output=True,
            text=True,
            timeout=max(30.0, seconds),
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        text = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        return {"status": "stopped", "seconds": seconds, "tail": text.splitlines()[-5:]}
    return {"status": done.returncode, "tail": done.stdout.splitlines()[-30:]}


def training(name: str, options: Options, steps: int = 3) -> dict[str, Any]:
    """Train the small version of a model on both devices, and return how far the losses differ.

    In float32 the curves of a small batch part after some steps, as rounding grows there: the first
    loss is compared. In float64 all losses are.
    """
    import plait

    result: dict[str, Any] = {}
    for dtype in ("float32", "float64"):
        curves = [
            losses(name, device, getattr(plait, dtype), steps) for device in ("cpu", options.device)
        ]
        result[dtype] = {"cpu": curves[0], options.device: curves[1]}
        compared = 1 if dtype == "float32" else steps
        pairs = list(zip(*curves, strict=True))[:compared]
        result[dtype]["difference"] = max(abs(a - b) / max(1.0, abs(a)) for a, b in pairs)
    return result


def losses(name: str, device: str, dtype: Any, steps: int) -> list[float]:
    """Return the losses of a training."""
    import plait

    model = MODELS[name]
    sizes, shapes = model.small
    network = fill(plait, model.build(plait, **sizes)).to(device).to(dtype)
    data = [plait.from_numpy(each).to(device) for each in model.data(4, **shapes)]
    *inputs, target = [x.to(dtype) if x.is_floating_point() else x for x in data]
    optimizer = model.optimizer(plait, network.parameters())
    result = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model.loss(plait, network(*inputs), target)
        loss.backward()
        optimizer.step()
        result.append(loss.detach())
    return [loss.item() for loss in result]
