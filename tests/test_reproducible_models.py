"""The first steps of six models in the reproducible mode, with each instruction set."""

from __future__ import annotations

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
from plait_core._startup import kernel_library

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import models  # noqa: E402

STEPS = 2


def digest(tensors: Any) -> str:
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(np.ascontiguousarray(tensor.detach().numpy()).tobytes())
    return found.hexdigest()[:16]


def step_digests(name: str) -> list[str]:
    """Return digests of the losses, gradients and weights of the first steps, with dropout."""
    model = models.MODELS[name]
    plait.manual_seed(1)
    module = models.fill(plait, model.build(plait, **model.small[0]))
    optimizer = model.optimizer(plait, module.parameters())
    found = []
    for step in range(STEPS):
        *inputs, target = map(plait.from_numpy, model.data(2, seed=step, **model.small[1]))
        optimizer.zero_grad()
        loss = model.loss(plait, module(*inputs), target)
        loss.backward()
        gradients = [p.grad for p in module.parameters() if p.grad is not None]
        assert np.isfinite(loss.item())
        found += [digest([loss]), digest(gradients)]
        optimizer.step()
        found.append(digest(module.parameters()))
    module.eval()
    with plait.no_grad():
        *inputs, _ = map(plait.from_numpy, model.data(2, seed=STEPS, **model.small[1]))
        found.append(digest([module(*inputs)]))
    return found


TRAINED = [name for name, model in models.MODELS.items() if model.trained]


def in_a_child(level: str, threads: int) -> dict[str, list[str]]:
    result = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "PLAIT_CPU": level, "PLAIT_NUM_THREADS": str(threads)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    found: dict[str, list[str]] = json.loads(result.stdout)
    return found


@pytest.mark.skipif(kernel_library() == "plait_cpu_base", reason="there is one instruction set")
def test_the_first_steps_of_the_models() -> None:
    best = in_a_child("", 2)
    assert sorted(best) == sorted(TRAINED)
    assert in_a_child("avx2", 1) == best
    assert in_a_child("base", 1) == best


if __name__ == "__main__":
    plait.set_reproducible(True)
    json.dump({name: step_digests(name) for name in TRAINED}, sys.stdout)
