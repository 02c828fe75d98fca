"""Models that others trained: their files are read, nothing is unpickled, and the numbers are those
of torch, of which reference.json keeps some (tests/oracle/pretrained_torch.py writes it).
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import trained  # noqa: E402
from networks.crepe import hertz  # noqa: E402

import plait  # noqa: E402

REFERENCE = json.loads((FOLDER / "reference.json").read_text())


@pytest.mark.parametrize("name", trained.MODELS)
def test_outputs_are_those_of_torch(name: str) -> None:
    expected, got = REFERENCE[name], trained.outputs(name)
    assert list(got.shape) == expected["shape"]
    flat = got.reshape(-1)[expected["places"]]
    np.testing.assert_allclose(flat, expected["values"], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(got), expected["norm"], rtol=1e-4)


@pytest.mark.parametrize("name", trained.MODELS)
def test_weights_are_read_and_not_unpickled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("unpickled")

    for each in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, each, refuse)
    own = trained.MODELS[name].build().state_dict()
    result = trained.weights(name)
    assert set(result) == set(own)
    for key, value in result.items():
        assert value.shape == own[key].shape
        assert bool(value.isfinite().all())


def test_the_file_names_its_device() -> None:
    """Resemblyzer's weights were saved on a GPU."""
    path = trained.installed("resemblyzer", "pretrained.pt")
    with pytest.raises(plait.CheckpointError, match=r"cuda:0.*map_location"):
        plait.load(path)


@pytest.mark.parametrize("size", ["crepe", "crepe-full"])
def test_pitches(size: str) -> None:
    result = hertz(plait.tensor(trained.outputs(size))).numpy()
    np.testing.assert_allclose(result, [110, 220, 440, 880], rtol=5e-3)


def test_words() -> None:
    network = trained.load("g2p")
    assert network.phonemes("plait") == ["P", "L", "EY1", "T"]
    assert network.phonemes("xylophone") == ["Z", "AY1", "L", "AH0", "F", "OW2", "N"]


def test_silence_is_no_speech() -> None:
    chances = trained.outputs("silero", np.zeros(8000, np.float32))
    assert chances.max() < 0.1


def test_voices_are_unit_vectors() -> None:
    vectors = trained.outputs("resemblyzer")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_trained_weights_go_on_training() -> None:
    """Backward runs through a loaded model, and a step makes the loss smaller."""
    model = trained.load("mobilenet")
    x = plait.tensor(trained.picture()[:, :, :32, :32])
    optimizer = plait.optim.SGD(model.parameters(), lr=1e-4)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[2] < losses[1] < losses[0]
