"""The memory of a long training does not grow with the number of steps."""

from __future__ import annotations

import subprocess
import sys

import pytest

TRAINING = """
import os
import plait_core as pc, plait_nn as nn, plait_optim as optim

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 2))
optimizer = optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
x, target = pc.randn(8, 4), pc.tensor([0, 1] * 4)

def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        criterion(model(x), target).backward()
        optimizer.step()

train(10_000)
before = resident()
train(100_000)
print(resident() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_hundred_thousand_steps_keep_less_than_a_byte_each() -> None:
    run = [sys.executable, "-c", TRAINING]
    grown = int(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    assert grown < 100_000
