"""Models that others trained give in plait what they give in torch, to 1e-4."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from pretrained_torch import FOLDER, outputs, sample, trained

REFERENCE = json.loads((FOLDER / "reference.json").read_text())


@pytest.mark.parametrize("name", trained.MODELS)
def test_outputs(name: str) -> None:
    expected = outputs(name)
    np.testing.assert_allclose(trained.outputs(name), expected, rtol=1e-4, atol=1e-4)
    own = sample(expected)  # the committed numbers are torch's
    assert own["shape"] == REFERENCE[name]["shape"]
    flat = expected.reshape(-1)[REFERENCE[name]["places"]]
    np.testing.assert_allclose(flat, REFERENCE[name]["values"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(own["norm"], REFERENCE[name]["norm"], rtol=1e-5)


def other(name: str, generator: Any) -> Any:
    if name == "g2p":
        return ("sesquipedalian", "quux", "a")
    shape = np.shape(trained.MODELS[name].inputs())
    return generator.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("name", trained.MODELS)
def test_outputs_for_noise(name: str) -> None:
    inputs = other(name, np.random.default_rng(3))
    if name == "resemblyzer":
        inputs = np.abs(inputs) * 0.1
    if name == "silero":
        inputs = inputs * 0.1
    expected, got = outputs(name, inputs), trained.outputs(name, inputs)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
