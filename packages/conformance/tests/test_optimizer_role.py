"""Role ``optimizer``: our own pass, others pass, and one that forgets its state fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

OTHERS = '''
import plait_optim


class EvenMomentum(plait_optim.Optimizer):
    """Steps of nearly one size, on any arrays with arithmetic."""

    def __init__(self, params, lr=1e-3, momentum=0.9, maximize=False):
        if lr < 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, {"lr": lr, "momentum": momentum, "maximize": maximize})

    def update(self, group, params, grads, states):
        for p, g, state in zip(params, grads, states):
            g = -g if group["maximize"] else g
            m = state["average"] = state.get("average", g * 0) * group["momentum"] + g
            p -= group["lr"] * (m / (abs(m) + 1e-9))


class InTheOldWay(plait_optim.Optimizer):
    """Overrides `step`, as programs written for PyTorch do."""

    def __init__(self, params, lr=1e-2):
        if lr < 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    state = self.state[p]
                    state["sum"] = state.get("sum", 0.0) + float((p.grad * p.grad).sum())
                    p -= group["lr"] * p.grad
        return loss


class Forgetful(EvenMomentum):
    def state_dict(self):
        return {**super().state_dict(), "state": {}}
'''


def run_role(folder: Path, *options: str) -> tuple[dict[str, int], str]:
    (folder / "others.py").write_text(OTHERS)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--pyargs", "plait_conformance", "--role", "optimizer", *options],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    counts = re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout[-300:])
    return {word: int(number) for number, word in counts}, done.stdout + done.stderr


def test_our_own_pass(tmp_path: Path) -> None:
    counts, text = run_role(tmp_path)
    assert set(counts) == {"passed"}, text
    assert counts["passed"] > 500


def test_others_pass(tmp_path: Path) -> None:
    counts, text = run_role(tmp_path, "--provider", "others:EvenMomentum,others:InTheOldWay")
    assert set(counts) == {"passed"}, text
    assert counts["passed"] > 60


def test_one_that_forgets_fails(tmp_path: Path) -> None:
    counts, text = run_role(tmp_path, "--provider", "others:Forgetful")
    assert counts["failed"] >= 1
    assert "FAILED" in text and "test_training_continues_from_a_saved_state" in text
