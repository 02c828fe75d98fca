"""What `plait_run_memory` tells before a run is what the run takes, for whole models."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait
import plait_abi
from plait import nn
from plait_graph import export

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "packages" / "graph" / "tests" / "programs" / "memory_of_runs.cpp"
sys.path.insert(0, str(ROOT / "benchmarks"))

import models  # noqa: E402

Measure = Callable[[Path, int], list[int]]


def mlp() -> tuple[Any, Any]:
    sizes = (784, 512, 512, 10)
    layers = [
        layer for i, n in enumerate(sizes[1:]) for layer in (nn.Linear(sizes[i], n), nn.ReLU())
    ]
    return nn.Sequential(*layers[:-1]), plait.randn(64, 784)


def lenet() -> tuple[Any, Any]:
    def block(channels: int, filters: int) -> list[Any]:
        return [nn.Conv2d(channels, filters, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]

    rest = [nn.Flatten(), nn.Linear(784, 120), nn.ReLU(), nn.Linear(120, 10)]
    return nn.Sequential(*block(1, 6), *block(6, 16), *rest), plait.randn(1, 1, 28, 28)


def lstm() -> tuple[Any, Any]:
    return nn.LSTM(64, 128, num_layers=2, batch_first=True), plait.randn(4, 20, 64)


def model(name: str, batch: int = 1, length: int = 0, **options: Any) -> tuple[Any, Any]:
    """Return a model of the benchmarks and a batch of its data."""
    more = {"length": length, "words": options.get("words", 1000)} if length else {}
    (x, *_) = models.MODELS[name].data(batch, **more)
    return models.MODELS[name].build(plait, **options), plait.from_numpy(x)


MODELS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "mlp": mlp,
    "lenet": lenet,
    "lstm": lstm,
    "mobilenet": lambda: model("mobilenet"),
    "resnet50": lambda: model("resnet50"),
    "bert": lambda: model("bert", length=128, layers=2),
    "gpt2": lambda: model("gpt2", length=32, layers=2, words=1000),
}


@pytest.fixture(scope="module")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """Return what the program tells of a file: told, taken by the question and by runs, grown."""
    if "-fsanitize" in os.environ.get("PLAIT_BUILD_FLAGS", ""):
        pytest.skip("the sanitizer takes memory of its own")
    folder = tmp_path_factory.mktemp("memory")
    graph, abi = plait_abi.paths("plait_graph"), plait_abi.paths("plait_abi")
    command = [*os.environ.get("CXX", "c++").split(), "-std=c++17", "-O1", "-Wall", "-Wextra"]
    command += [f"-I{graph['include']}", f"-I{abi['include']}", str(PROGRAM)]
    command += [graph["libplait_run.so"], f"-Wl,-rpath,{graph['lib']}", "-ldl"]
    subprocess.run([*command, "-o", str(folder / "memory")], check=True)
    packages = ("abi", "ops", "core", "optim", "graph")
    libraries = ":".join(plait_abi.paths(f"plait_{name}")["lib"] for name in packages)
    small = folder / "small.safetensors"
    write(nn.Linear(8, 8), plait.randn(1, 8), small)

    def run(path: Path, threads: int) -> list[int]:
        done = subprocess.run(
            [folder / "memory", libraries, small, str(threads)],
            input=f"{path}\n",
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.stderr == ""
        _, kind, *numbers = done.stdout.split()
        assert kind == "fixed"
        return list(map(int, numbers))

    return run


def write(module: Any, x: Any, path: Path) -> None:
    with plait.no_grad():
        export(module.eval(), (x,), path)


def check(measure: Measure, path: Path) -> None:
    """Compare what is told with what is taken."""
    for threads in (1, 2):
        told, asking, taken, grown = measure(path, threads)
        assert asking <= told, threads
        assert taken <= told <= 1.1 * taken, threads
        if told > 50 << 20:
            code = 16 << 20  # pages of code, and lists of the graph, at most
            assert told / 1.1 <= grown <= 1.1 * told + code, threads


@pytest.mark.parametrize("name", MODELS)
def test_inference(name: str, measure: Measure, tmp_path: Path) -> None:
    path = tmp_path / "f.safetensors"
    write(*MODELS[name](), path)
    check(measure, path)


def test_training(measure: Measure, tmp_path: Path) -> None:
    network, x = model("mobilenet", 2, width=0.5, classes=10)
    optimizer = plait.optim.AdamW(network.parameters(), lr=1e-3)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        return loss

    path = tmp_path / "step.safetensors"
    export(step, (x, plait.tensor([1, 2])), path, training=True)
    check(measure, path)
