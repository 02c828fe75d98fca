"""Models in onnxruntime, beside plait."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "packages" / "onnx" / "tests"))
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))


@pytest.fixture(name="run")
def run_in_onnxruntime() -> Any:
    """A function that runs a model of the package `onnx` with arrays by name."""
    runtime = pytest.importorskip("onnxruntime")

    def run(model: Any, feed: dict[str, Any]) -> Any:
        text = model.SerializeToString()
        session = runtime.InferenceSession(text, providers=["CPUExecutionProvider"])
        read = {entry.name for entry in session.get_inputs()}
        return session.run(None, {name: array for name, array in feed.items() if name in read})

    return run
