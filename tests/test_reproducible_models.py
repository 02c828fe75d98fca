"""The first steps of six models in the reproducible mode, with each instruction set."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait
from plait_core.instruction_sets import kernel_levels

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import models  # noqa: E402

STEPS = 2
PIXELS = 64


def model_of(name: str, whole: bool) -> models.Model:
    """Return a model for images of 64 pixels; all its channels if `whole`."""
    model = models.MODELS[name]
    build, data = (dict(options) for options in model.small)
    if model.images:
        data["size"] = PIXELS
    if whole:
        build["width"] = 1
    return dataclasses.replace(model, small=(build, data))


def digest(tensors: Any) -> str:
    result = hashlib.sha256()
    for tensor in tensors:
        result.update(np.ascontiguousarray(tensor.detach().numpy()).tobytes())
    return result.hexdigest()[:16]


def step_digests(name: str, whole: bool) -> list[str]:
    """Return digests of the losses, gradients and weights of the first steps, with dropout."""
    model = model_of(name, whole)
    plait.manual_seed(1)
    module = models.fill(plait, model.build(plait, **model.small[0]))
    optimizer = model.optimizer(plait, module.parameters())
    results = []
    for step in range(STEPS):
        *inputs, target = map(plait.from_numpy, model.data(2, seed=step, **model.small[1]))
        optimizer.zero_grad()
        loss = model.loss(plait, module(*inputs), target)
        loss.backward()
        gradients = [p.grad for p in module.parameters() if p.grad is not None]
        assert np.isfinite(loss.item())
        results += [digest([loss]), digest(gradients)]
        optimizer.step()
        results.append(digest(module.parameters()))
    module.eval()
    with plait.no_grad():
        *inputs, _ = map(plait.from_numpy, model.data(2, seed=STEPS, **model.small[1]))
        results.append(digest([module(*inputs)]))
    return results


TRAINED = [name for name, model in models.MODELS.items() if model.trained]


def in_a_child(level: str, threads: int, whole: bool) -> dict[str, list[str]]:
    result = subprocess.run(
        [sys.executable, __file__, *(["whole"] if whole else [])],
        env={**os.environ, "PLAIT_CPU": level, "PLAIT_NUM_THREADS": str(threads)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    value: dict[str, list[str]] = json.loads(result.stdout)
    return value


@pytest.mark.skipif(len(kernel_levels()) < 2, reason="there is one instruction set")
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_first_steps_of_the_models(whole: bool) -> None:
    best = in_a_child("", 2, whole)
    assert sorted(best) == sorted(TRAINED)
    assert in_a_child("avx2", 1, whole) == best
    assert in_a_child("base", 1, whole) == best


@pytest.mark.parametrize("name", models.MODELS)
def test_a_sample_does_not_depend_on_the_others(name: str) -> None:
    model = model_of(name, whole=False)
    module = models.fill(plait, model.build(plait, **model.small[0])).eval()
    arrays = model.data(17, seed=3, **model.small[1])
    inputs = arrays[:-1] if model.trained else arrays

    def outcome(first: int, count: int) -> Any:
        with plait.no_grad():
            result = module(*(plait.from_numpy(x[first : first + count].copy()) for x in inputs))
        return result if isinstance(result, plait.Tensor) else result[0]

    plait.set_reproducible(True)
    try:
        together = outcome(0, 17)
        for first, count in ((0, 1), (16, 1), (3, 2), (0, 8), (8, 9), (0, 16)):
            assert plait.equal(outcome(first, count), together[first : first + count]), count
    finally:
        plait.set_reproducible(False)


if __name__ == "__main__":
    plait.set_reproducible(True)
    json.dump({name: step_digests(name, len(sys.argv) > 1) for name in TRAINED}, sys.stdout)
