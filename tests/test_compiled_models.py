"""The models of the benchmarks, compiled: the bits of eager training and inference."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import plait
from plait_graph import compile

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import models  # noqa: E402

TRAINED = [name for name, model in models.MODELS.items() if model.trained]


def bits(tensors: Any) -> list[bytes]:
    # memory that NumPy has had is no longer plait's alone
    return [t.detach().clone().contiguous().numpy().tobytes() for t in tensors]


class Training:
    """Steps of a small model, eager or compiled.

    Args:
        part: what is compiled: ``"step"``, ``"forward"``, or nothing.
        frozen: whether Python does not run.
    """

    def __init__(self, name: str, part: str, frozen: bool = True) -> None:
        self.model = models.MODELS[name]
        self.module = models.fill(plait, self.model.build(plait, **self.model.small[0])).train()
        self.optimizer = self.model.optimizer(plait, self.module.parameters())
        self.forward = compile(self.module, frozen=frozen) if part == "forward" else self.module
        self.calls = 0
        self.step = compile(self._step, frozen=frozen) if part == "step" else self._step

    def _step(self, inputs: Any, target: Any) -> Any:
        self.calls += 1
        self.optimizer.zero_grad()
        loss = self.model.loss(plait, self.forward(*inputs), target)
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self, k: int) -> tuple[list[bytes], ...]:
        arrays = self.model.data(4, seed=k, **self.model.small[1])
        *inputs, target = [plait.from_numpy(array).clone() for array in arrays]
        plait.manual_seed(k)
        loss = self.step(inputs, target)
        parameters = list(self.module.parameters())
        grads = [p.grad for p in parameters if p.grad is not None]
        return bits([loss]), bits(grads), bits(parameters), bits(self.module.buffers())


@pytest.mark.parametrize(
    ("part", "frozen"), [("step", True), ("forward", True), ("step", False), ("forward", False)]
)
@pytest.mark.parametrize("name", TRAINED)
def test_training(name: str, part: str, frozen: bool) -> None:
    eager, compiled = Training(name, "none"), Training(name, part, frozen)
    for k in range(5):
        for what, x, y in zip(
            ("loss", "gradients", "parameters", "buffers"),
            eager.run(k),
            compiled.run(k),
            strict=True,
        ):
            assert x == y, (k, what)
    assert part == "forward" or not frozen or compiled.calls <= 3
    assert frozen or (compiled.step if part == "step" else compiled.forward).graphs()


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("name", list(models.MODELS))
def test_inference(name: str, frozen: bool) -> None:
    model = models.MODELS[name]
    module = models.fill(plait, model.build(plait, **model.small[0])).eval()
    compiled = compile(module, frozen=frozen)
    with plait.no_grad():
        for k in range(4):
            arrays = model.data(2, seed=k, **model.small[1])
            if model.trained:
                arrays = arrays[:-1]
            inputs = [plait.from_numpy(array).clone() for array in arrays]
            assert bits([compiled(*inputs)]) == bits([module(*inputs)]), k
