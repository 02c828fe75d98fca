"""Work in a notebook: Ctrl-C in a cell leaves everything usable, and objects are shown as HTML."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("ipykernel")
jupyter = pytest.importorskip("jupyter_client.manager")

PREPARED = """
import contextlib, gc, os, threading, time
import plait
from plait import nn, optim
from plait.utils.data import DataLoader, Dataset

class Points(Dataset):  # defined in a cell, as readers do
    def __getitem__(self, index):
        x = plait.full((256,), index / 512)
        return x, x[:1]

    def __len__(self):
        return 512

def children():
    folder = f"/proc/{os.getpid()}/task"
    found = []
    for thread in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError), open(f"{folder}/{thread}/children") as file:
            found += file.read().split()
    return found

plait.manual_seed(0)
before = children()
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = optim.Adam(model.parameters(), lr=1e-3)

def train(epochs, workers=2, **options):
    losses = []
    for epoch in range(epochs):
        loader = DataLoader(Points(), 32, shuffle=True, num_workers=workers, **options)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == 2:
                print("started", flush=True)
    return losses
"""
ENDLESS = {
    "training with workers": "train(10**6)",
    "training with kept workers": "train(10**6, persistent_workers=True)",
    "training with threads": "train(10**6, multiprocessing_context='thread')",
    "products": """
x = plait.rand(400, 400, requires_grad=True)
print("started", flush=True)
while True:
    y = x
    for _ in range(20):
        y = (y @ x) / 100
    y.sum().backward()
    x.grad = None
""",
}
AFTER = """
gc.collect()
for _ in range(200):
    if children() == before:
        break
    time.sleep(0.1)
assert children() == before, children()
optimizer.zero_grad()
losses = train(2)
assert sum(losses[-8:]) < 8, losses  # finite, and not lost
big = plait.ones(300, 300)
assert (big @ big)[0, 0].item() == 300
print("trained")
"""


class Kernel:
    """A running kernel, and what the cells that it ran have answered."""

    def __init__(self) -> None:
        self.manager, self.client = jupyter.start_new_kernel(kernel_name="python3")

    def run(self, code: str, interrupt_after: float | None = None) -> tuple[list[Any], str]:
        """Run a cell; return its outputs and the name of the exception that ended it, if any.

        Args:
            interrupt_after: seconds after "started" was printed at which Ctrl-C is pressed.
        """
        cell = self.client.execute(code)
        outputs, interrupted, end = [], False, time.monotonic() + 300
        while True:
            message = self.client.get_iopub_msg(timeout=max(end - time.monotonic(), 0.1))
            if message["parent_header"].get("msg_id") != cell:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind in ("stream", "execute_result", "display_data", "error"):
                outputs.append(content)
            printed = content.get("text", "") if kind == "stream" else ""
            if interrupt_after is not None and not interrupted and "started" in printed:
                time.sleep(interrupt_after)
                self.manager.interrupt_kernel()
                interrupted = True
        errors = [output["ename"] for output in outputs if "ename" in output]
        return outputs, errors[0] if errors else ""

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(name="kernel", scope="module")
def running_kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    try:
        outputs, error = kernel.run(PREPARED)
        assert not error, outputs
        yield kernel
    finally:
        kernel.close()


@pytest.mark.parametrize(("name", "delay"), list(zip(ENDLESS, (0.4, 0.05, 0.2, 0.1), strict=True)))
def test_an_interrupted_cell_leaves_everything_usable(
    kernel: Kernel, name: str, delay: float
) -> None:
    outputs, error = kernel.run(ENDLESS[name], interrupt_after=delay)
    assert error == "KeyboardInterrupt", outputs
    outputs, error = kernel.run(AFTER)
    assert not error, outputs
    assert any("trained" in output.get("text", "") for output in outputs)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("plait.zeros(2, 3)", "Tensor: shape (2, 3), float32, cpu, 24 bytes"),
        ("model", "<b>Sequential</b>"),
        ("nn.summary(model, (1, 256))", "<table"),
        ("Points()", "<div>Points<table>"),
        ("DataLoader(Points(), 32)", "<div>DataLoader<table>"),
    ],
)
def test_what_a_cell_returns_is_shown_as_html(kernel: Kernel, code: str, text: str) -> None:
    outputs, error = kernel.run(code)
    assert not error, outputs
    html = [output["data"].get("text/html", "") for output in outputs if "data" in output]
    assert len(html) == 1 and text in html[0]


def test_a_profile_is_shown_as_html(kernel: Kernel) -> None:
    code = """
from plait.profiler import profile
with profile() as p:
    plait.ones(3) + 1
p.key_averages()
"""
    outputs, error = kernel.run(code)
    assert not error, outputs
    assert any("<table" in output.get("data", {}).get("text/html", "") for output in outputs)
